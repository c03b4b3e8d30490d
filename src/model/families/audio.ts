import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, nearest, partsStructure } from "./base.ts";
import { encoderShape } from "./encoder-shape.ts";

function sizes(config: ConfigReader, key: string, fallback: readonly number[]): number[] {
  const list = config.list(key);
  if (list === null) return [...fallback];
  return list.map((value) =>
    typeof value === "number" && value >= 1 && value < 1e6 ? Math.trunc(value) : 1,
  );
}

/** The convolutions over the waveform: a norm on the first alone (`group`) or on each (`layer`). */
function featureExtractor(config: ConfigReader): { readonly count: number; readonly width: number } {
  const widths = sizes(config, "conv_dim", [512, 512, 512, 512, 512, 512, 512]).slice(0, 64);
  const kernels = sizes(config, "conv_kernel", [10, 3, 3, 3, 3, 2, 2]);
  const bias = config.flag("conv_bias", false);
  const everyNorm = config.text("feat_extract_norm", "group") === "layer";
  let inputs = 1;
  let count = 0;
  widths.forEach((width, index) => {
    count += inputs * width * (kernels[index] ?? 1) + (bias ? width : 0);
    if (everyNorm || index === 0) count += layerNorm(width);
    inputs = width;
  });
  return { count, width: inputs };
}

function audioHead(
  config: ConfigReader,
  name: string,
  hidden: number,
  vocab: number,
  features: number,
): ParamGroup {
  const project = config.size("classifier_proj_size", 256);
  if (name.endsWith("ForCTC")) return { name: "output head", count: linear(hidden, vocab, true) };
  if (name.endsWith("ForSequenceClassification"))
    return {
      name: "classifier",
      count: linear(hidden, project, true) + linear(project, labels(config), true),
    };
  if (name === "Wav2Vec2ForPreTraining") {
    const groups = config.size("num_codevector_groups", 2);
    const vectors = config.size("num_codevectors_per_group", 320);
    const width = config.size("codevector_dim", 256);
    const projected = config.size("proj_codevector_dim", 256);
    return {
      name: "quantiser and projections",
      count:
        groups * vectors * Math.floor(width / groups) +
        linear(features, groups * vectors, true) +
        linear(hidden, projected, true) +
        linear(width, projected, true),
    };
  }
  return { name: "head", count: 0 };
}

/** wav2vec 2.0 and HuBERT: the positional convolution is weight-normalised, so its gain is a parameter too. */
export const wav2vec2: FamilyReader = {
  types: ["wav2vec2", "hubert"],
  read(config) {
    const type = config.text("model_type", "wav2vec2");
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const heads = config.size("num_attention_heads", 12);
    const ffn = config.size("intermediate_size", 3072);
    const vocab = config.size("vocab_size", 32);
    const features = featureExtractor(config);
    const kernel = config.size("num_conv_pos_embeddings", 128);
    const convGroups = config.size("num_conv_pos_embedding_groups", 16);
    const batchNorm = type === "hubert" && config.flag("conv_pos_batch_norm", false);
    const masked = config.number("mask_time_prob", 0.05) > 0 || config.number("mask_feature_prob", 0) > 0;
    const projectionNorm = type !== "hubert" || config.flag("feat_proj_layer_norm", true);
    const groups: ParamGroup[] = [
      { name: "feature extractor", count: features.count },
      {
        name: "feature projection",
        count: (projectionNorm ? layerNorm(features.width) : 0) + linear(features.width, hidden, true),
      },
      { name: "mask vector", count: masked ? hidden : 0 },
      {
        name: "positional convolution",
        count:
          hidden * Math.floor(hidden / convGroups) * kernel +
          hidden +
          (batchNorm ? layerNorm(hidden) : kernel),
      },
      { name: "encoder layers", count: layers * encoderLayer(hidden, ffn) + layerNorm(hidden) },
      audioHead(config, config.architecture(), hidden, vocab, features.width),
    ];
    return partsStructure(type, groups, encoderShape({ layers, hidden, heads, ffn, vocab }), {
      assumed: [nearest("gpt2"), "an encoder; the convolutions over the waveform are not counted"],
    });
  },
};

export const AUDIO: readonly FamilyReader[] = [wav2vec2];
