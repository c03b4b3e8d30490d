import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { gatedMlp, linear, plainMlp } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, nearest, partsStructure } from "./base.ts";
import { encoderShape } from "./encoder-shape.ts";
import { t5Stacks } from "./seq2seq-stacks.ts";
import { BARE_NOTE } from "./stack-parts.ts";
import { TWO_STACKS } from "./two-stacks.ts";

/**
 * T5, mT5 and UMT5: no biases, RMS norms, relative positions in each stack's first layer (UMT5: in every
 * layer). The head is untied where the file says so (T5 1.1, flan-T5) and in mT5, as the checkpoints are, also
 * where a library ties it on loading.
 */
export const t5: FamilyReader = {
  types: ["t5", "mt5", "umt5"],
  read(config) {
    const type = config.text("model_type", "t5");
    const multilingual = type !== "t5";
    const hidden = config.size("d_model");
    const headDim = config.size("d_kv", 64);
    const heads = config.size("num_heads", multilingual ? 6 : 8);
    const ffn = config.size("d_ff", multilingual ? 1024 : 2048);
    const layers = config.size("num_layers");
    const decoderLayers = config.sizeOrNull("num_decoder_layers") ?? layers;
    const vocab = config.size("vocab_size", multilingual ? 250112 : 32128);
    const buckets = config.size("relative_attention_num_buckets", 32);
    const gated = config.text("feed_forward_proj", multilingual ? "gated-gelu" : "relu").startsWith("gated-");
    const name = config.architecture();
    const encoderOnly = name.endsWith("EncoderModel") || name.endsWith("ForTokenClassification");
    const bare = /Model$/.test(name) && !/LMHeadModel$/.test(name);
    const classifier = /For(SequenceClassification|TokenClassification|QuestionAnswering)$/.test(name);
    const tied = config.flag("tie_word_embeddings", type !== "mt5");
    const inner = heads * headDim;
    const block = 3 * linear(hidden, inner, false) + linear(inner, hidden, false);
    const mlp = gated ? gatedMlp(hidden, ffn) : plainMlp(hidden, ffn);
    const everyLayer = type === "umt5";
    const table = buckets * heads;
    const groups: ParamGroup[] = [
      { name: "token embedding", count: vocab * hidden },
      { name: "encoder", count: layers * (block + mlp + 2 * hidden) + hidden },
      { name: "encoder's relative positions", count: table * (everyLayer ? layers : 1) },
      {
        name: "decoder",
        count: encoderOnly ? 0 : decoderLayers * (2 * block + mlp + 3 * hidden) + hidden,
      },
      {
        name: "decoder's relative positions",
        count: encoderOnly ? 0 : table * (everyLayer ? decoderLayers : 1),
      },
      { name: "output head", count: bare || classifier || tied ? 0 : vocab * hidden },
      { name: "classifier", count: classifier ? classifierHead(config, name, hidden) : 0 },
    ];
    // A decoder layer has a second attention block; with the masks of relative positions it holds as much as two.
    const depth = layers + (encoderOnly ? 0 : 2 * decoderLayers);
    const sizes = {
      encoderLayers: layers,
      decoderLayers: encoderOnly ? 0 : decoderLayers,
      hidden,
      headDim,
      heads,
      ffn,
      vocab,
      buckets,
    };
    // UMT5's layers have a table each, and classifiers heads of their own.
    const step = everyLayer || classifier ? null : t5Stacks(config, sizes, gated, bare ? "none" : "lm", tied);
    return partsStructure(
      type,
      groups,
      encoderShape(
        { layers: depth, hidden, heads, ffn, vocab },
        {
          headDim,
          norm: "rms",
          normPlacement: "pre",
          finalNorm: true,
          alwaysMasked: true,
          embedNorm: false,
          tiedHead: tied || bare || classifier,
          mlp: gated ? "gated" : "plain",
          activation: gated ? "gelu-new" : "relu",
          bias: { qkv: false, out: false, mlp: false, head: false },
        },
      ),
      step === null
        ? { assumed: [nearest("llama"), TWO_STACKS] }
        : { stacks: step.stacks, assumed: step.assumed, notes: bare ? [BARE_NOTE] : [] },
    );
  },
};

function classifierHead(config: ConfigReader, name: string, hidden: number): number {
  if (/For(TokenClassification|QuestionAnswering)$/.test(name)) return linear(hidden, labels(config), true);
  return linear(hidden, hidden, true) + linear(hidden, labels(config), true);
}
