import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { encoderLayer, gatedMlp, layerNorm, linear, plainMlp } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, nearest, partsStructure } from "./base.ts";
import { encoderShape } from "./encoder-shape.ts";
import { type BartKind, bartStacks, t5Stacks, whisperStacks } from "./seq2seq-stacks.ts";
import { BARE_NOTE } from "./stack-parts.ts";

const TWO_STACKS = "encoder and decoder walked as one stack, cross attention as more layers";

/** Layers that hold what decoder layers with cross attention hold. */
function withCross(layers: number): number {
  return Math.ceil(1.5 * layers);
}

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

/** In what models of BART's kind differ. */
const BART_KINDS: Readonly<Record<string, BartKind>> = {
  bart: {
    pre: false,
    positions: "learned",
    embedNorm: true,
    added: true,
    activation: "gelu",
    attentionDropout: 0,
  },
  mbart: {
    pre: true,
    positions: "learned",
    embedNorm: true,
    added: true,
    activation: "gelu",
    attentionDropout: 0,
  },
  marian: {
    pre: false,
    positions: "sines",
    embedNorm: false,
    added: true,
    activation: "gelu",
    attentionDropout: 0,
  },
  pegasus: {
    pre: true,
    positions: "sines",
    embedNorm: false,
    added: true,
    activation: "gelu",
    attentionDropout: 0,
  },
  m2m_100: {
    pre: true,
    positions: "buffer",
    embedNorm: false,
    added: false,
    activation: "relu",
    attentionDropout: 0.1,
  },
};

/** Rows of the position table of each stack that are parameters. */
function positionRows({ positions }: BartKind, longest: number): number {
  return positions === "learned" ? longest + 2 : positions === "sines" ? longest : 0;
}

/**
 * BART and mBART: learned positions with two rows kept; mBART norms each stack's output too. Marian (OPUS-MT), Pegasus
 * and M2M-100 (NLLB) have sines for positions and no norm after them.
 */
export const bart: FamilyReader = {
  types: Object.keys(BART_KINDS),
  read(config) {
    const type = config.text("model_type", "bart");
    const kind = BART_KINDS[type]!;
    const hidden = config.size(["d_model", "hidden_size"]);
    const encoderLayers = config.size(["encoder_layers", "num_hidden_layers"]);
    const decoderLayers = config.size("decoder_layers", 12);
    const heads = config.size(["encoder_attention_heads", "num_attention_heads"], 16);
    const decoderHeads = config.size(["decoder_attention_heads", "num_attention_heads"], 16);
    const encoderFfn = config.size("encoder_ffn_dim", 4096);
    const decoderFfn = config.size("decoder_ffn_dim", 4096);
    const vocab = config.size("vocab_size", 50265);
    const positions = config.size("max_position_embeddings", 1024);
    const name = config.architecture();
    const bare = name.endsWith("Model");
    const tied = config.flag("tie_word_embeddings", true);
    const cross = 4 * linear(hidden, hidden, true) + layerNorm(hidden);
    const classifier = name.endsWith("ForSequenceClassification");
    const count = config.has(["num_labels", "id2label"]) ? labels(config) : 3;
    const groups: ParamGroup[] = [
      { name: "token embedding", count: vocab * hidden * (tied ? 1 : 3) },
      {
        name: "positions and their norms",
        count: 2 * (positionRows(kind, positions) * hidden + (kind.embedNorm ? layerNorm(hidden) : 0)),
      },
      { name: "encoder", count: encoderLayers * encoderLayer(hidden, encoderFfn) },
      { name: "decoder", count: decoderLayers * (encoderLayer(hidden, decoderFfn) + cross) },
      { name: "final norms", count: kind.pre ? 2 * layerNorm(hidden) : 0 },
      { name: "output head", count: tied || bare || classifier ? 0 : vocab * hidden },
      {
        name: "classifier",
        count: classifier ? linear(hidden, hidden, true) + linear(hidden, count, true) : 0,
      },
    ];
    const step = bartStacks(
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
        positions,
      },
      kind,
      tied,
    );
    return partsStructure(
      type,
      groups,
      encoderShape(
        { layers: encoderLayers + withCross(decoderLayers), hidden, heads, ffn: encoderFfn, vocab },
        { positionRows: positions, tiedHead: true },
      ),
      {
        contextTokens: positions,
        stacks: step.stacks,
        assumed: type === "marian" ? [...step.assumed, nearest("pegasus")] : step.assumed,
        notes: bare ? [BARE_NOTE] : [],
      },
    );
  },
};

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

export const SEQ2SEQ: readonly FamilyReader[] = [t5, bart, whisper];
