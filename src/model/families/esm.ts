import { decoderStructure, type FamilyReader } from "../family.ts";
import { layerNorm, linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { labels, nearest, readShape } from "./base.ts";

/**
 * ESM-2, of proteins: an encoder with rotary positions (ESM-1: a table) and norms before each part. Walked as a decoder of
 * the same layers: which tokens a token sees is no matter to memory.
 */
export const esm: FamilyReader = {
  types: ["esm"],
  read(config) {
    const rotary = config.text("position_embedding_type", "absolute") === "rotary";
    const positions = config.size("max_position_embeddings", 1026);
    const bias = { qkv: true, out: true, mlp: true, head: false };
    const shape = readShape(
      config,
      {
        hidden: 768,
        layers: 12,
        vocab: 33,
        ffn: 3072,
        heads: 12,
        kvHeads: "heads",
        headDim: "split",
        tied: true,
      },
      {
        norm: "layer",
        mlp: "plain",
        activation: "gelu-erf",
        bias,
        rotary: rotary ? 1 : 0,
        queryScaledFirst: true,
        positionRows: rotary ? 0 : positions,
        positionsPerSample: true,
        outputUnadapted: true,
        tiedHead: true,
        dropout: {
          attention: config.number("attention_probs_dropout_prob", 0.1) > 0,
          residual: config.number("hidden_dropout_prob", 0.1) > 0,
          embedding: false,
        },
      },
    );
    const { hidden, layers, heads, vocab } = shape;
    const name = config.architecture();
    const dense = linear(hidden, hidden, true);
    const classes = linear(hidden, labels(config), true);
    const head: Readonly<Record<string, number>> = {
      Model: dense,
      ForSequenceClassification: dense + classes,
      ForTokenClassification: classes,
    };
    const kind = /(Model|For\w+)$/.exec(name)?.[0] ?? "";
    const outside: ParamGroup[] = [
      { name: "contact head", count: layers * heads + 1 },
      { name: "embedding norm", count: config.flag("emb_layer_norm_before", false) ? layerNorm(hidden) : 0 },
      { name: "head", count: head[kind] ?? dense + layerNorm(hidden) + vocab },
    ];
    const scores = {
      of: kind === "Model" ? "nothing" : kind === "ForTokenClassification" ? "tokens" : "samples",
      labels: 0,
      bias: false,
      dropout: false,
    } as const;
    return decoderStructure("esm", kind in head ? { ...shape, scores } : shape, {
      contextTokens: positions - 2,
      outside,
      assumed: [nearest("gpt2")],
    });
  },
};
