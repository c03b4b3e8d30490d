import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, nearest, partsStructure } from "./base.ts";
import { encoderShape } from "./encoder-shape.ts";
import { whisperStacks } from "./seq2seq-stacks.ts";
import { BARE_NOTE } from "./stack-parts.ts";
import { TWO_STACKS, withCross } from "./two-stacks.ts";

/** Whisper: two convolutions over the spectrogram, key projections without bias, positions as parameters. */
export const whisper: FamilyReader = {
  types: ["whisper"],
  read(config) {
    const hidden = config.size(["d_model", "hidden_size"]);
    const encoderLayers = config.size(["encoder_layers", "num_hidden_layers"]);
    const decoderLayers = config.size("decoder_layers", 4);
    const heads = config.size("encoder_attention_heads", 6);
    const decoderHeads = config.size("decoder_attention_heads", 6);
    const encoderFfn = config.size("encoder_ffn_dim", 1536);
    const decoderFfn = config.size("decoder_ffn_dim", 1536);
    const vocab = config.size("vocab_size", 51865);
    const mels = config.size("num_mel_bins", 80);
    const sources = config.size("max_source_positions", 1500);
    const targets = config.size("max_target_positions", 448);
    const name = config.architecture();
    const classifier = /For(Audio|Sequence)Classification$/.test(name);
    const tied = config.flag("tie_word_embeddings", true);
    const bare = name.endsWith("Model");
    const keyBias = hidden;
    const cross = 4 * linear(hidden, hidden, true) - keyBias + layerNorm(hidden);
    const project = config.size("classifier_proj_size", 256);
    // The encoder always sees all source positions, the decoder the target's: its layers count by their length.
    const walked = Math.ceil((encoderLayers * sources) / targets) + withCross(decoderLayers);
    const groups: ParamGroup[] = [
      { name: "convolutions", count: mels * hidden * 3 + hidden + hidden * hidden * 3 + hidden },
      { name: "source positions", count: sources * hidden },
      {
        name: "encoder",
        count: encoderLayers * (encoderLayer(hidden, encoderFfn) - keyBias) + layerNorm(hidden),
      },
      { name: "token embedding", count: classifier ? 0 : vocab * hidden },
      { name: "target positions", count: classifier ? 0 : targets * hidden },
      {
        name: "decoder",
        count: classifier
          ? 0
          : decoderLayers * (encoderLayer(hidden, decoderFfn) - keyBias + cross) + layerNorm(hidden),
      },
      { name: "output head", count: tied || bare || classifier ? 0 : vocab * hidden },
      {
        name: "classifier",
        count: classifier ? linear(hidden, project, true) + linear(project, labels(config), true) : 0,
      },
    ];
    const step = classifier
      ? null
      : whisperStacks(
          config,
          {
            encoderLayers,
            decoderLayers,
            hidden,
            encoderHeads: heads,
            decoderHeads,
            encoderFfn,
            decoderFfn,
            vocab,
            positions: targets,
            mels,
            sources,
          },
          tied,
        );
    return partsStructure(
      "whisper",
      groups,
      encoderShape(
        { layers: walked, hidden, heads, ffn: encoderFfn, vocab },
        { normPlacement: "pre", finalNorm: true, embedNorm: false },
      ),
      step === null
        ? { contextTokens: targets, assumed: [nearest("gpt2"), TWO_STACKS] }
        : {
            contextTokens: targets,
            stacks: step.stacks,
            assumed: step.assumed,
            notes: bare ? [BARE_NOTE] : [],
          },
    );
  },
};
