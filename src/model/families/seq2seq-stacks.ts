import type { ConfigReader } from "../config.ts";
import type { Stack, StackBlock, StackHead, StackModel } from "../stacks.ts";
import { labels } from "./base.ts";
import { drops } from "./shapes.ts";
import {
  alike,
  bertBlock,
  encoder,
  NO_LIMITS,
  PLAIN_ATTENTION,
  stackActivation,
  textInput,
  vocabularyHead,
} from "./stack-parts.ts";

interface Depths {
  readonly encoderLayers: number;
  /** 0 = the encoder alone. */
  readonly decoderLayers: number;
}

const BARE: StackHead = { kind: "bare", pooler: null, returnsFirst: false };

interface T5Sizes extends Depths {
  readonly hidden: number;
  readonly headDim: number;
  readonly heads: number;
  readonly ffn: number;
  readonly vocab: number;
  readonly buckets: number;
}

/**
 * T5 and mT5. A decoder's cache is filled in training too: its config is a copy that `use_cache=False` does not
 * reach. `tied` is the checkpoint's head; where the file says that it has its own, outputs are not scaled.
 */
export function t5Stacks(
  config: ConfigReader,
  sizes: T5Sizes,
  gated: boolean,
  head: "lm" | "none",
  tied: boolean,
) {
  const { hidden, headDim, heads, ffn, vocab, buckets } = sizes;
  const dropout = drops(config, "dropout_rate", 0.1);
  const written = config.text("feed_forward_proj", gated ? "gated-gelu" : "relu");
  const name = written === "gated-gelu" ? "gelu_new" : (written.split("-").at(-1) ?? "relu");
  const { activation, assumed } = stackActivation(
    config.withValues({ dense_act_fn: name }),
    "dense_act_fn",
    name,
  );
  const block: StackBlock = bertBlock(
    { hidden, heads, ffn },
    {
      headDim,
      norm: "t5",
      placement: "pre",
      attention: { ...PLAIN_ATTENTION, positionBias: { buckets, perSample: false } },
      mlp: gated ? "gated" : "plain",
      activation,
      biases: { query: false, key: false, value: false, out: false, mlp: false },
      dropout: { attention: dropout, attended: dropout, fed: dropout, inner: dropout },
      adapted: { inputs: true, output: true },
    },
  );
  const traits = { finalNorm: "t5" as const, finalDropout: dropout, keepsLookup: true };
  const stacks: Stack[] = [
    encoder(textInput(vocab, hidden, { dropout }), block, alike(sizes.encoderLayers), traits),
  ];
  if (sizes.decoderLayers > 0) {
    const decoder = { ...block, attention: { ...block.attention, caches: true } };
    const input = textInput(vocab, hidden, { dropout, sharesTable: true });
    stacks.push(
      encoder(input, decoder, alike(sizes.decoderLayers), { ...traits, crosses: true, causal: true }),
    );
  }
  const scaled = config.raw_("tie_word_embeddings")?.value !== false;
  const model: StackModel = {
    stacks,
    head: head === "none" ? BARE : vocabularyHead(vocab, { tied, scaled }),
    limits: { ...NO_LIMITS, noFlash: true },
  };
  return { stacks: model, assumed };
}

interface BartSizes extends Depths {
  readonly hidden: number;
  readonly encoderHeads: number;
  readonly decoderHeads: number;
  readonly encoderFfn: number;
  readonly decoderFfn: number;
  readonly vocab: number;
  readonly positions: number;
}

export interface BartKind {
  /** Norms before each part and at each stack's end. */
  readonly pre: boolean;
  /** Positions are a table that is trained, with two rows kept; one of sines that is not; or no parameter. */
  readonly positions: "learned" | "sines" | "buffer";
  readonly embedNorm: boolean;
  /** A buffer is added to the scores. */
  readonly added: boolean;
  readonly activation: string;
  /** Class default of the dropout on probabilities. */
  readonly attentionDropout: number;
}

/** BART and its like. */
export function bartStacks(config: ConfigReader, sizes: BartSizes, kind: BartKind, tied: boolean) {
  const { hidden, vocab, positions } = sizes;
  const { pre } = kind;
  const dropout = drops(config, "dropout", 0.1);
  const { activation, assumed } = stackActivation(config, "activation_function", kind.activation);
  const block = (heads: number, ffn: number) =>
    bertBlock(
      { hidden, heads, ffn },
      {
        placement: pre ? "pre" : "post",
        attention: { ...PLAIN_ATTENTION, alwaysMasked: true },
        activation,
        dropout: {
          attention: drops(config, "attention_dropout", kind.attentionDropout),
          attended: dropout,
          fed: dropout,
          inner: drops(config, "activation_dropout", 0),
        },
        adapted: { inputs: true, output: true },
      },
    );
  const input = (perSample: boolean, sharesTable: boolean) =>
    textInput(vocab, hidden, {
      positions:
        kind.positions === "buffer"
          ? { rows: positions + 2, perSample: true, reserved: 2, buffer: true }
          : kind.positions === "sines"
            ? { rows: positions, perSample: false, reserved: 0, frozen: true }
            : { rows: positions + 2, perSample, reserved: 2 },
      scaled: true,
      norm: kind.embedNorm ? "layer" : null,
      dropout,
      sharesTable,
    });
  const traits = { finalNorm: pre ? ("layer" as const) : null, keepsLookup: true };
  const stacks: Stack[] = [
    encoder(
      input(true, false),
      block(sizes.encoderHeads, sizes.encoderFfn),
      alike(sizes.encoderLayers),
      traits,
    ),
    encoder(input(false, true), block(sizes.decoderHeads, sizes.decoderFfn), alike(sizes.decoderLayers), {
      ...traits,
      crosses: true,
      causal: true,
    }),
  ];
  const name = config.architecture();
  let head: StackHead = vocabularyHead(vocab, { tied, added: kind.added });
  const said = [...assumed];
  if (name.endsWith("Model")) head = BARE;
  else if (name.endsWith("ForSequenceClassification")) {
    head = {
      kind: "pooled",
      pool: "last",
      dropoutBefore: false,
      dense: { width: hidden, bias: true, norm: null },
      dropout: false,
      classes: config.has(["num_labels", "id2label"]) ? labels(config) : 3,
      adapted: true,
    };
    said.push(`The loss of ${name.slice(0, 60)} was never measured.`);
  }
  const model: StackModel = { stacks, head, limits: { ...NO_LIMITS, unmeasured: ["flash"] } };
  return { stacks: model, assumed: said };
}

interface WhisperSizes extends BartSizes {
  readonly mels: number;
  readonly sources: number;
}

/** Whisper: the encoder always sees all of its positions, the decoder at most its own. */
export function whisperStacks(config: ConfigReader, sizes: WhisperSizes, tied: boolean) {
  const { hidden, vocab, positions, mels, sources } = sizes;
  const dropout = drops(config, "dropout", 0);
  const { activation, assumed } = stackActivation(config, "activation_function", "gelu");
  const block = (heads: number, ffn: number) =>
    bertBlock(
      { hidden, heads, ffn },
      {
        placement: "pre",
        attention: { ...PLAIN_ATTENTION, ordered: true },
        activation,
        biases: { query: true, key: false, value: true, out: true, mlp: true },
        dropout: {
          attention: drops(config, "attention_dropout", 0),
          attended: dropout,
          fed: dropout,
          inner: drops(config, "activation_dropout", 0),
        },
        adapted: { inputs: true, output: true },
      },
    );
  const traits = { finalNorm: "layer" as const, keepsLookup: true };
  const words = textInput(vocab, hidden, {
    positions: { rows: positions, perSample: true, reserved: 0 },
    dropout,
    longest: positions,
  });
  const stacks: Stack[] = [
    encoder(
      { kind: "sound", mels, positions: sources, dropout },
      block(sizes.encoderHeads, sizes.encoderFfn),
      alike(sizes.encoderLayers),
      traits,
    ),
    encoder(words, block(sizes.decoderHeads, sizes.decoderFfn), alike(sizes.decoderLayers), {
      ...traits,
      crosses: true,
      causal: true,
    }),
  ];
  const bare = config.architecture().endsWith("Model");
  const model: StackModel = {
    stacks,
    head: bare ? BARE : vocabularyHead(vocab, { tied }),
    limits: NO_LIMITS,
  };
  return { stacks: model, assumed };
}
