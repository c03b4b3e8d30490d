import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { gatedMlp, layerNorm, linear } from "../parts.ts";
import type { StackHead, StackNorm, StackRun } from "../stacks.ts";
import { contextTokens, labels, partsStructure } from "./base.ts";
import { type EncoderSizes, encoderShape } from "./encoder-shape.ts";
import { drops } from "./shapes.ts";
import {
  BARE_NOTE,
  bertBlock,
  encoder,
  NO_LIMITS,
  PLAIN_ATTENTION,
  stackActivation,
  textInput,
  vocabularyHead,
} from "./stack-parts.ts";

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
    const step = modernbertStacks(
      config,
      { hidden, layers, heads, ffn, vocab },
      bare ? "none" : classes > 0 ? "classes" : "lm",
    );
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
      {
        contextTokens: contextTokens(config),
        stacks: step.stacks,
        assumed: step.assumed,
        notes: bare ? [BARE_NOTE] : [],
      },
    );
  },
};

/** Layers that see all tokens and those that see a window, the first apart: it has no norm before attention. */
function runsOf(config: ConfigReader, layers: number): readonly StackRun[] {
  const types = config.list("layer_types");
  const every = config.size("global_attn_every_n_layers", 3);
  const half = Math.floor(config.size("local_attention", 128) / 2);
  const windowed = (index: number) =>
    types === null ? index % every !== 0 : types[index] === "sliding_attention";
  let local = 0;
  for (let index = 1; index < layers; index++) if (windowed(index)) local += 1;
  const runs: StackRun[] = [
    { layers: 1, shared: false, window: windowed(0) ? half : null, normed: false },
    { layers: layers - 1 - local, shared: false, window: null, normed: true },
    { layers: local, shared: false, window: half, normed: true },
  ];
  return runs.filter((run) => run.layers > 0);
}

function modernbertStacks(config: ConfigReader, sizes: EncoderSizes, head: "lm" | "classes" | "none") {
  const { hidden, layers, heads, ffn, vocab } = sizes;
  const norm: StackNorm = config.flag("norm_bias", false) ? "layer" : "layer-no-bias";
  const bias = config.flag("attention_bias", false);
  const { activation, assumed } = stackActivation(config, "hidden_activation", "gelu");
  const said = stackActivation(config, "classifier_activation", "gelu");
  const attention = drops(config, "attention_dropout", 0);
  const name = config.architecture();
  const block = bertBlock(
    { hidden, heads, ffn },
    {
      norm,
      placement: "pre",
      attention: { ...PLAIN_ATTENTION, rotary: true, softmaxFull: true },
      mlp: "gated-fused",
      activation,
      biases: { query: bias, key: bias, value: bias, out: bias, mlp: config.flag("mlp_bias", false) },
      dropout: { attention, attended: attention, fed: false, inner: drops(config, "mlp_dropout", 0) },
    },
  );
  const dense = { width: hidden, bias: config.flag("classifier_bias", false) };
  const heading: Record<typeof head, StackHead> = {
    none: { kind: "bare", pooler: null, returnsFirst: false },
    classes: {
      kind: "pooled",
      pool: config.text("classifier_pooling", "cls") === "mean" ? "masked-mean" : "first",
      dropoutBefore: false,
      dense: { ...dense, norm },
      dropout: drops(config, "classifier_dropout", 0),
      classes: name.endsWith("ForMultipleChoice") ? 1 : labels(config),
      adapted: false,
    },
    lm: vocabularyHead(vocab, {
      transform: { ...dense, activation: said.activation, norm },
      tied: config.flag("tie_word_embeddings", true),
      bias: config.flag("decoder_bias", true),
      upcast: true,
    }),
  };
  const tokenwise = /For(TokenClassification|QuestionAnswering|MultipleChoice)$/.test(name);
  const input = textInput(vocab, hidden, { norm, dropout: drops(config, "embedding_dropout", 0) });
  return {
    stacks: {
      stacks: [encoder(input, block, runsOf(config, layers), { finalNorm: norm })],
      head: heading[head],
      limits: NO_LIMITS,
    },
    assumed: tokenwise
      ? [...assumed, `The loss of ${name.slice(0, 60)} was never measured.`]
      : [...assumed, ...said.assumed],
  };
}
