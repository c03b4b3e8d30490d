import type { ConfigReader } from "../config.ts";
import type { StackBlock, StackHead, StackModel, TextInput } from "../stacks.ts";
import { labels } from "./base.ts";
import { drops } from "./shapes.ts";
import {
  alike,
  BARE_NOTE,
  bertBlock,
  classifier,
  encoder,
  NO_LIMITS,
  stackActivation,
  textInput,
  vocabularyHead,
} from "./stack-parts.ts";

/** How a family of BERT's kind departs from it, as far as its step is concerned. */
export interface BertTraits {
  readonly pooler: boolean;
  readonly denseClassifier: boolean;
  readonly biasTied: boolean;
  /** Positions are counted from each sample's ids, the first rows being kept for padding. */
  readonly reservedPositions: number;
  readonly tokenTypes: number;
  /** Keys of dropout probabilities: on scores, after attention (absent = none), elsewhere. */
  readonly dropout: { readonly attention: string; readonly attended: string | null; readonly hidden: string };
  /** The key of the activation; the head's own is a GELU but in BERT itself. */
  readonly activation: string;
  readonly headActivation: boolean;
  /** LoRA on "attention" adapts the output projection too. */
  readonly outputAdapted: boolean;
  readonly keepsInner: boolean;
  /** The class scores' matrix bears a name that LoRA on "attention" adapts. */
  readonly scorerAdapted: boolean;
  /** Class defaults where they are not BERT's (ALBERT). */
  readonly dropoutDefault?: number;
  readonly activationDefault?: string;
}

export interface BertSizes {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly ffn: number;
  readonly vocab: number;
  readonly positions: number;
  /** Width of the embedding table; projected where it differs from `hidden`. */
  readonly width: number;
}

export interface StacksRead {
  readonly stacks: StackModel;
  readonly assumed: readonly string[];
  readonly notes: readonly string[];
}

/** An encoder of BERT's kind with the head that the architecture asks for. */
export function bertStacks(config: ConfigReader, sizes: BertSizes, traits: BertTraits): StacksRead {
  const { layers, hidden, heads, ffn, vocab, positions, width } = sizes;
  const { activation, assumed } = stackActivation(
    config,
    traits.activation,
    traits.activationDefault ?? "gelu",
  );
  const chance = traits.dropoutDefault ?? 0.1;
  const dropout = drops(config, traits.dropout.hidden, chance);
  const input: TextInput = textInput(vocab, width, {
    positions: {
      rows: positions,
      perSample: traits.reservedPositions > 0,
      reserved: traits.reservedPositions,
    },
    tokenTypes: traits.tokenTypes,
    norm: "layer",
    dropout,
    projection: width === hidden ? null : { bias: true, beforeNorm: false },
  });
  const block = bertBlock(
    { hidden, heads, ffn },
    {
      activation,
      dropout: {
        attention: drops(config, traits.dropout.attention, chance),
        attended: traits.dropout.attended !== null && drops(config, traits.dropout.attended, chance),
        fed: dropout,
        inner: false,
      },
      adapted: { inputs: true, output: traits.outputAdapted },
      keepsInner: traits.keepsInner,
    },
  );
  const head = bertHeadOf(config, sizes, traits, activation, dropout);
  return {
    stacks: { stacks: [encoder(input, block, alike(layers))], head: head.head, limits: NO_LIMITS },
    assumed: [...assumed, ...head.assumed],
    notes: head.head.kind === "bare" ? [BARE_NOTE] : [],
  };
}

/** The head by the last words of the architecture's name. */
export function bertHeadOf(
  config: ConfigReader,
  { hidden, vocab, width }: BertSizes,
  traits: BertTraits,
  activation: StackBlock["activation"],
  dropout: boolean,
): { readonly head: StackHead; readonly assumed: readonly string[] } {
  const name = config.architecture();
  const never = [`The loss of ${name.slice(0, 60)} was never measured.`];
  const dense = { width: hidden, bias: true, norm: null };
  const dropped = config.has("classifier_dropout") ? drops(config, "classifier_dropout", 0.1) : dropout;
  const tied = config.flag("tie_word_embeddings", true);
  const words = vocabularyHead(vocab, {
    transform: {
      width,
      bias: true,
      activation: traits.headActivation ? activation : "gelu",
      norm: "layer",
    },
    tied,
    bias: true,
    secondBias: !tied && traits.biasTied,
  });
  const classes = (count: number) =>
    classifier(config, {
      dense,
      dropoutBefore: traits.denseClassifier && dropped,
      dropout: dropped,
      classes: count,
      adapted: traits.scorerAdapted,
    });
  const tokens = (count: number): StackHead => ({
    kind: "tokens",
    dense: false,
    dropout: dropped,
    classes: count,
    loss: "classes",
  });
  if (name.endsWith("ForSequenceClassification")) return { head: classes(labels(config)), assumed: [] };
  if (name.endsWith("ForTokenClassification")) return { head: tokens(labels(config)), assumed: [] };
  if (name.endsWith("ForQuestionAnswering")) return { head: tokens(labels(config)), assumed: never };
  if (name.endsWith("ForMultipleChoice")) return { head: classes(1), assumed: never };
  if (name.endsWith("ForNextSentencePrediction")) return { head: classes(2), assumed: never };
  if (/Model$/.test(name) && !/LMHeadModel$/.test(name))
    return {
      head: { kind: "bare", pooler: traits.pooler ? { width: hidden } : null, returnsFirst: false },
      assumed: [],
    };
  return { head: words, assumed: name.endsWith("ForPreTraining") ? never : [] };
}
