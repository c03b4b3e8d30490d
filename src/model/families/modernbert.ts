import type { FamilyReader } from "../family.ts";
import { gatedMlp, layerNorm, linear } from "../parts.ts";
import { contextTokens, labels, partsStructure } from "./base.ts";
import { ENCODER, encoderShape } from "./encoder-shape.ts";

/** ModernBERT: gated feed-forward, rotary positions, no biases; the first layer has no norm before attention. */
export const modernbert: FamilyReader = {
  types: ["modernbert"],
  read(config) {
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const heads = config.size("num_attention_heads", 12);
    const ffn = config.size("intermediate_size", 1152);
    const vocab = config.size("vocab_size", 50368);
    const norm = config.flag("norm_bias", false) ? layerNorm(hidden) : hidden;
    const attendBias = config.flag("attention_bias", false);
    const mlpBias = config.flag("mlp_bias", false);
    const name = config.architecture();
    const bare = name.endsWith("Model");
    const tied = config.flag("tie_word_embeddings", true);
    const dense = linear(hidden, hidden, config.flag("classifier_bias", false)) + norm;
    const classifier = /For(SequenceClassification|TokenClassification|QuestionAnswering)$/.test(name);
    const classes = classifier ? labels(config) : name.endsWith("ForMultipleChoice") ? 1 : 0;
    const decoder = (config.flag("decoder_bias", true) ? vocab : 0) + (tied ? 0 : vocab * hidden);
    return partsStructure(
      "modernbert",
      [
        { name: "embeddings", count: vocab * hidden + norm },
        {
          name: "attention",
          count: layers * (linear(hidden, 3 * hidden, attendBias) + linear(hidden, hidden, attendBias)),
        },
        { name: "feed-forward", count: layers * gatedMlp(hidden, ffn, mlpBias) },
        { name: "layer norms", count: (2 * layers - 1) * norm },
        { name: "final norm", count: norm },
        { name: "head", count: bare ? 0 : dense },
        {
          name: classes > 0 ? "classifier" : "output bias",
          count: bare ? 0 : classes > 0 ? linear(hidden, classes, true) : decoder,
        },
      ],
      encoderShape(
        { layers, hidden, heads, ffn, vocab },
        {
          mlp: "gated-fused",
          normPlacement: "pre",
          finalNorm: true,
          rotary: 1,
          bias: { qkv: attendBias, out: attendBias, mlp: mlpBias, head: false },
          dropout: { attention: false, residual: false, embedding: false },
        },
      ),
      { contextTokens: contextTokens(config), assumed: ENCODER },
    );
  },
};
