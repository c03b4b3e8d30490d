import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { encoderLayer, layerNorm, linear } from "../parts.ts";
import type { Stack, StackModel, StackRun, TextInput } from "../stacks.ts";
import type { ParamGroup } from "../types.ts";
import { labels, partsStructure } from "./base.ts";
import { type BertSizes, type BertTraits, bertStacks, type StacksRead } from "./bert-stacks.ts";
import { encoderShape } from "./encoder-shape.ts";
import { BARE_NOTE, NO_LIMITS } from "./stack-parts.ts";

/** What ELECTRA has in common with BERT in a training step. */
const BERT_STEP: Omit<BertTraits, "tokenTypes"> = {
  pooler: false,
  denseClassifier: true,
  biasTied: false,
  reservedPositions: 0,
  dropout: {
    attention: "attention_probs_dropout_prob",
    attended: "hidden_dropout_prob",
    hidden: "hidden_dropout_prob",
  },
  activation: "hidden_act",
  headActivation: false,
  outputAdapted: false,
  keepsInner: true,
  scorerAdapted: true,
};

/** ELECTRA: embeddings of their own width, projected; the discriminator has a head of one output. */
export const electra: FamilyReader = {
  types: ["electra"],
  read(config) {
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const width = config.size("embedding_size", 128);
    const heads = config.size("num_attention_heads", 4);
    const ffn = config.size("intermediate_size", 1024);
    const vocab = config.size("vocab_size", 30522);
    const positions = config.size("max_position_embeddings", 512);
    const name = config.architecture();
    const tied = config.flag("tie_word_embeddings", true);
    const dense = linear(hidden, hidden, true);
    let top: ParamGroup = { name: "head", count: 0 };
    if (name.endsWith("ForSequenceClassification"))
      top = { name: "classifier", count: dense + linear(hidden, labels(config), true) };
    else if (name.endsWith("ForTokenClassification"))
      top = { name: "classifier", count: linear(hidden, labels(config), true) };
    else if (name.endsWith("ForQuestionAnswering"))
      top = { name: "classifier", count: linear(hidden, labels(config), true) };
    else if (name.endsWith("ForMaskedLM") || name.endsWith("ForCausalLM"))
      top = {
        name: "masked-language head",
        count: linear(hidden, width, true) + layerNorm(width) + vocab + (tied ? 0 : vocab * width),
      };
    else if (name.endsWith("ForMultipleChoice"))
      top = { name: "classifier", count: dense + linear(hidden, 1, true) };
    else if (!name.endsWith("Model"))
      top = { name: "discriminator head", count: dense + linear(hidden, 1, true) };
    const types = config.sizeOrZero("type_vocab_size", 2);
    const sizes = { layers, hidden, heads, ffn, vocab, positions, width };
    const read = bertStacks(config, sizes, { ...BERT_STEP, tokenTypes: types });
    const discriminator = name === "" || /For(PreTraining)$/.test(name);
    const stacks: StackModel = discriminator
      ? {
          ...read.stacks,
          head: { kind: "tokens", dense: true, dropout: false, classes: 1, loss: "binary" },
        }
      : read.stacks;
    return partsStructure(
      "electra",
      [
        { name: "embeddings", count: (vocab + positions + types) * width + layerNorm(width) },
        { name: "embedding projection", count: width === hidden ? 0 : linear(width, hidden, true) },
        { name: "encoder layers", count: layers * encoderLayer(hidden, ffn) },
        top,
      ],
      encoderShape({ layers, hidden, heads, ffn, vocab }, { positionRows: positions, embedWidth: width }),
      {
        contextTokens: positions,
        stacks,
        assumed: discriminator ? [] : read.assumed,
        notes: stacks.head.kind === "bare" ? [BARE_NOTE] : [],
      },
    );
  },
};

/** ALBERT: one set of layer weights for all layers of a group, factorised embeddings. */
export const albert: FamilyReader = {
  types: ["albert"],
  read(config) {
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const width = config.size("embedding_size", 128);
    const heads = config.size("num_attention_heads", 64);
    const ffn = config.size("intermediate_size", 16384);
    const vocab = config.size("vocab_size", 30000);
    const positions = config.size("max_position_embeddings", 512);
    const types = config.sizeOrZero("type_vocab_size", 2);
    const shared = config.size("num_hidden_groups", 1) * config.size("inner_group_num", 1);
    const name = config.architecture();
    const tied = config.flag("tie_word_embeddings", true);
    const pooler =
      (name.endsWith("Model") && !name.endsWith("LMHeadModel")) ||
      /For(SequenceClassification|PreTraining|MultipleChoice)$/.test(name);
    const lm = linear(hidden, width, true) + layerNorm(width) + vocab + (tied ? 0 : vocab * (width + 1));
    let top = lm;
    if (/For(SequenceClassification|TokenClassification|QuestionAnswering)$/.test(name))
      top = linear(hidden, labels(config), true);
    else if (name.endsWith("ForMultipleChoice")) top = linear(hidden, 1, true);
    else if (name.endsWith("ForPreTraining")) top = lm + linear(hidden, labels(config), true);
    else if (pooler) top = 0;
    const sizes = { layers, hidden, heads, ffn, vocab, positions, width };
    const step = albertStacks(config, sizes, types);
    return partsStructure(
      "albert",
      [
        { name: "embeddings", count: (vocab + positions + types) * width + layerNorm(width) },
        { name: "embedding projection", count: linear(width, hidden, true) },
        { name: "shared encoder layers", count: shared * encoderLayer(hidden, ffn) },
        { name: "pooler", count: pooler ? linear(hidden, hidden, true) : 0 },
        { name: "head", count: top },
      ],
      encoderShape({ layers, hidden, heads, ffn, vocab }, { positionRows: positions, embedWidth: width }),
      {
        contextTokens: positions,
        stacks: step.stacks,
        assumed: step.assumed,
        notes: [...step.notes, "layers share their weights"],
      },
    );
  },
};

/**
 * ALBERT's step: as BERT's, but without dropout after the feed-forward, and with one set of weights for the layers
 * of a group. transformers does not checkpoint it.
 */
function albertStacks(config: ConfigReader, sizes: BertSizes, tokenTypes: number): StacksRead {
  const read = bertStacks(config, sizes, {
    ...BERT_STEP,
    tokenTypes,
    pooler: true,
    denseClassifier: false,
    biasTied: true,
    headActivation: true,
    keepsInner: false,
    scorerAdapted: false,
    dropoutDefault: 0,
    activationDefault: "gelu_new",
  });
  const [encoder] = read.stacks.stacks as readonly [Stack];
  const groups = config.size("num_hidden_groups", 1);
  const inner = config.size("inner_group_num", 1);
  const runs: StackRun[] = [];
  for (let group = 0; group < groups * inner; group++) {
    const first = Math.ceil((Math.floor(group / inner) * sizes.layers) / groups);
    const next = Math.ceil(((Math.floor(group / inner) + 1) * sizes.layers) / groups);
    if (next > first) runs.push({ layers: next - first, shared: true, window: null, normed: true });
  }
  const stack: Stack = {
    ...encoder,
    input: {
      ...(encoder.input as TextInput),
      // Projected whether or not the widths differ.
      projection: { bias: true, beforeNorm: false },
    },
    block: { ...encoder.block, dropout: { ...encoder.block.dropout, fed: false } },
    runs,
  };
  return {
    ...read,
    stacks: { ...read.stacks, stacks: [stack], limits: { ...NO_LIMITS, noCheckpointing: true } },
  };
}

/** Encoders whose embeddings have a width of their own. */
export const FACTORISED: readonly FamilyReader[] = [electra, albert];
