import type { ConfigReader } from "../config.ts";
import type {
  PooledHead,
  Stack,
  StackAttention,
  StackBlock,
  StackLimits,
  StackRun,
  TextInput,
  VocabularyHead,
} from "../stacks.ts";
import { labels } from "./base.ts";
import { activationOf } from "./shapes.ts";

/** Parts of stacks as most families have them; families lay what differs over them. */

export const PLAIN_ATTENTION: StackAttention = {
  rotary: false,
  ordered: false,
  softmaxFull: false,
  alwaysMasked: false,
  caches: false,
  positionBias: null,
  disentangled: null,
};

export const NO_LIMITS: StackLimits = {
  eagerOnly: false,
  noFlash: false,
  noCheckpointing: false,
  unmeasured: [],
  lengthless: false,
};

export const NO_DROPOUT: StackBlock["dropout"] = {
  attention: false,
  attended: false,
  fed: false,
  inner: false,
};

export interface BlockSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly ffn: number;
}

/** BERT's layer: biases, LayerNorm after each sum, plain feed-forward. */
export function bertBlock(sizes: BlockSizes, traits: Partial<StackBlock> = {}): StackBlock {
  return {
    ...sizes,
    headDim: Math.max(1, Math.floor(sizes.hidden / sizes.heads)),
    norm: "layer",
    placement: "post",
    attention: PLAIN_ATTENTION,
    mlp: "plain",
    activation: "gelu",
    biases: { query: true, key: true, value: true, out: true, mlp: true },
    dropout: NO_DROPOUT,
    layerScale: false,
    dropPath: false,
    keepsInner: false,
    adapted: { inputs: true, output: false },
    ...traits,
  };
}

/** All layers alike. */
export function alike(layers: number): readonly StackRun[] {
  return [{ layers, shared: false, window: null, normed: true }];
}

export function textInput(vocab: number, width: number, traits: Partial<TextInput> = {}): TextInput {
  return {
    kind: "text",
    vocab,
    width,
    sharesTable: false,
    positions: null,
    tokenTypes: 0,
    scaled: false,
    norm: null,
    masked: false,
    dropout: false,
    projection: null,
    longest: null,
    ...traits,
  };
}

/** One encoder. */
export function encoder(
  input: Stack["input"],
  block: StackBlock,
  runs: readonly StackRun[],
  traits: Partial<Stack> = {},
): Stack {
  return {
    input,
    block,
    runs,
    finalNorm: null,
    finalDropout: false,
    crosses: false,
    causal: false,
    keepsLookup: false,
    ...traits,
  };
}

export function vocabularyHead(vocab: number, traits: Partial<VocabularyHead> = {}): VocabularyHead {
  return {
    kind: "vocabulary",
    vocab,
    transform: null,
    tied: true,
    bias: false,
    secondBias: false,
    scaled: false,
    added: false,
    upcast: false,
    ...traits,
  };
}

export function classifier(config: ConfigReader, traits: Partial<PooledHead> = {}): PooledHead {
  return {
    kind: "pooled",
    pool: "first",
    dropoutBefore: false,
    dense: null,
    dropout: false,
    classes: labels(config),
    adapted: false,
    ...traits,
  };
}

/** Names of activations that only these families have. */
export function stackActivation(
  config: ConfigReader,
  key: string | readonly string[],
  fallback: string,
): { readonly activation: StackBlock["activation"]; readonly assumed: readonly string[] } {
  const name = config.text(key, fallback);
  if (name === "quick_gelu") return { activation: "quick-gelu", assumed: [] };
  return activationOf(config, key, fallback);
}

export const BARE_NOTE = "a model without a head: the mean of what it returns stands for the loss";
