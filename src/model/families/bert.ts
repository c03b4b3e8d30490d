import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { Stack, StackBlock, StackModel } from "../stacks.ts";
import type { ParamGroup } from "../types.ts";
import { labels, partsStructure } from "./base.ts";
import { type BertTraits, bertStacks } from "./bert-stacks.ts";
import { encoderShape } from "./encoder-shape.ts";
import { NO_LIMITS } from "./stack-parts.ts";

/** What stands on top of an encoder, by the last words of the architecture's name. */
interface HeadParts {
  /** A dense layer over the first token. */
  readonly pooler: boolean;
  readonly extra: ParamGroup[];
}

interface BertLike {
  readonly types: readonly string[];
  readonly vocab: number;
  readonly tokenTypes: number;
  /** The bare model has a pooler. */
  readonly pooler: boolean;
  /** The sequence classifier goes through a dense layer of its own instead of the pooler. */
  readonly denseClassifier: boolean;
  /** Positions that are kept for padding: 2 for RoBERTa's offset. */
  readonly reservedPositions: number;
  readonly relativeBuckets?: boolean;
  /** The head's bias is a second one, equal to the first only where weights are tied. */
  readonly biasTied: boolean;
  /** The vocabulary head's activation is the layers' and not always a GELU. */
  readonly headActivation: boolean;
}

/** What BERT, RoBERTa and their like have in common in a training step. */
const BERT_STEP: Omit<BertTraits, keyof BertLike | "scorerAdapted"> = {
  dropout: {
    attention: "attention_probs_dropout_prob",
    attended: "hidden_dropout_prob",
    hidden: "hidden_dropout_prob",
  },
  activation: "hidden_act",
  outputAdapted: false,
  keepsInner: true,
};

function bertHead(config: ConfigReader, hidden: number, vocab: number, family: BertLike): HeadParts {
  const name = config.architecture();
  const tied = config.flag("tie_word_embeddings", true);
  const lm: ParamGroup = {
    name: "masked-language head",
    count:
      linear(hidden, hidden, true) +
      layerNorm(hidden) +
      vocab +
      (tied ? 0 : vocab * hidden + (family.biasTied ? vocab : 0)),
  };
  const classes = (count: number): ParamGroup => ({ name: "classifier", count: linear(hidden, count, true) });
  if (name.endsWith("ForSequenceClassification")) {
    const dense = { name: "classifier's dense layer", count: linear(hidden, hidden, true) };
    return family.denseClassifier
      ? { pooler: false, extra: [dense, classes(labels(config))] }
      : { pooler: true, extra: [classes(labels(config))] };
  }
  if (/For(TokenClassification|QuestionAnswering)$/.test(name))
    return { pooler: false, extra: [classes(labels(config))] };
  if (name.endsWith("ForMultipleChoice")) return { pooler: true, extra: [classes(1)] };
  if (name.endsWith("ForNextSentencePrediction")) return { pooler: true, extra: [classes(2)] };
  if (name.endsWith("ForPreTraining") && family.pooler) return { pooler: true, extra: [lm, classes(2)] };
  if (/Model$/.test(name) && !/LMHeadModel$/.test(name)) return { pooler: family.pooler, extra: [] };
  return { pooler: false, extra: [lm] };
}

function bertLike(family: BertLike): FamilyReader {
  return {
    types: family.types,
    read(config) {
      const hidden = config.size("hidden_size");
      const layers = config.size("num_hidden_layers");
      const heads = config.size("num_attention_heads", 12);
      const ffn = config.size("intermediate_size", 3072);
      const vocab = config.size("vocab_size", family.vocab);
      const positions = config.size("max_position_embeddings", 512);
      const types = family.tokenTypes && config.sizeOrZero("type_vocab_size", family.tokenTypes);
      // ERNIE: a further table that few of its files ask for.
      const tasks = config.flag("use_task_id", false) ? config.size("task_type_vocab_size", 3) : 0;
      const head = bertHead(config, hidden, vocab, family);
      const buckets = family.relativeBuckets ? config.size("relative_attention_num_buckets", 32) * heads : 0;
      const groups: ParamGroup[] = [
        { name: "embeddings", count: (vocab + positions + types) * hidden + layerNorm(hidden) },
        { name: "task types", count: tasks * hidden },
        { name: "encoder layers", count: layers * encoderLayer(hidden, ffn) },
        { name: "relative positions", count: buckets },
        { name: "pooler", count: head.pooler ? linear(hidden, hidden, true) : 0 },
        ...head.extra,
      ];
      const sizes = { layers, hidden, heads, ffn, vocab, positions, width: hidden };
      const step = bertStacks(config, sizes, {
        ...BERT_STEP,
        ...family,
        tokenTypes: types,
        scorerAdapted: family.denseClassifier,
      });
      const stacks = family.relativeBuckets ? withBuckets(config, step.stacks) : step.stacks;
      return partsStructure(
        config.text("model_type", family.types[0] ?? ""),
        groups,
        encoderShape({ layers, hidden, heads, ffn, vocab }, { positionRows: positions }),
        {
          contextTokens: Math.max(1, positions - family.reservedPositions),
          stacks,
          assumed: step.assumed,
          notes: step.notes,
        },
      );
    },
  };
}

/** MPNet: biases by distance on the scores, which therefore have no kernel; transformers does not checkpoint it. */
function withBuckets(config: ConfigReader, { stacks, head }: StackModel): StackModel {
  const [encoder] = stacks as readonly [Stack];
  const buckets = config.size("relative_attention_num_buckets", 32);
  const block: StackBlock = {
    ...encoder.block,
    attention: { ...encoder.block.attention, positionBias: { buckets, perSample: true } },
    adapted: { inputs: true, output: true },
  };
  return {
    stacks: [{ ...encoder, block }],
    head,
    limits: { ...NO_LIMITS, eagerOnly: true, noCheckpointing: true },
  };
}

export const bert = bertLike({
  types: ["bert", "ernie"],
  vocab: 30522,
  tokenTypes: 2,
  pooler: true,
  denseClassifier: false,
  reservedPositions: 0,
  biasTied: true,
  headActivation: true,
});

export const roberta = bertLike({
  types: ["roberta", "data2vec-text"],
  vocab: 50265,
  tokenTypes: 2,
  pooler: true,
  denseClassifier: true,
  reservedPositions: 2,
  biasTied: true,
  headActivation: false,
});

export const xlmRoberta = bertLike({
  types: ["xlm-roberta", "camembert"],
  vocab: 30522,
  tokenTypes: 2,
  pooler: true,
  denseClassifier: true,
  reservedPositions: 2,
  biasTied: true,
  headActivation: false,
});

export const mpnet = bertLike({
  types: ["mpnet"],
  vocab: 30527,
  tokenTypes: 0,
  pooler: true,
  denseClassifier: true,
  reservedPositions: 2,
  biasTied: true,
  headActivation: false,
  relativeBuckets: true,
});

/** DistilBERT: keys of its own, no token types, no pooler. */
export const distilbert: FamilyReader = {
  types: ["distilbert"],
  read(config) {
    const hidden = config.size(["dim", "hidden_size"]);
    const layers = config.size(["n_layers", "num_hidden_layers"]);
    const heads = config.size(["n_heads", "num_attention_heads"], 12);
    const ffn = config.size("hidden_dim", 3072);
    const vocab = config.size("vocab_size", 30522);
    const positions = config.size("max_position_embeddings", 512);
    const family: BertLike = {
      types: [],
      vocab,
      tokenTypes: 0,
      pooler: false,
      denseClassifier: true,
      reservedPositions: 0,
      biasTied: false,
      headActivation: true,
    };
    const head = bertHead(config, hidden, vocab, family);
    const sizes = { layers, hidden, heads, ffn, vocab, positions, width: hidden };
    const step = bertStacks(config, sizes, {
      ...family,
      dropout: { attention: "attention_dropout", attended: null, hidden: "dropout" },
      activation: "activation",
      outputAdapted: true,
      keepsInner: false,
      scorerAdapted: false,
    });
    const choice = config.architecture().endsWith("ForMultipleChoice");
    return partsStructure(
      "distilbert",
      [
        { name: "embeddings", count: (vocab + positions) * hidden + layerNorm(hidden) },
        { name: "encoder layers", count: layers * encoderLayer(hidden, ffn) },
        { name: "pooler", count: choice ? linear(hidden, hidden, true) : 0 },
        ...head.extra,
      ],
      encoderShape({ layers, hidden, heads, ffn, vocab }, { positionRows: positions }),
      { contextTokens: positions, stacks: step.stacks, assumed: step.assumed, notes: step.notes },
    );
  },
};

export const BERTS: readonly FamilyReader[] = [bert, roberta, xlmRoberta, mpnet, distilbert];
