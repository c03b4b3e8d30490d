import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, nearest, partsStructure } from "./base.ts";
import { encoderShape } from "./encoder-shape.ts";
import { type BartKind, bartStacks } from "./seq2seq-stacks.ts";
import { BARE_NOTE } from "./stack-parts.ts";
import { withCross } from "./two-stacks.ts";

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
