import type { DecoderShape } from "../types.ts";
import { nearest } from "./base.ts";

/** Sizes that every encoder has, whatever its keys are called. */
export interface EncoderSizes {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly ffn: number;
  readonly vocab: number;
}

/** An encoder as a decoder shape for its activations: biases, LayerNorms after the residual, plain GELU. */
export function encoderShape(sizes: EncoderSizes, traits: Partial<DecoderShape> = {}): DecoderShape {
  return {
    ...sizes,
    kvHeads: sizes.heads,
    headDim: Math.max(1, Math.floor(sizes.hidden / sizes.heads)),
    embedWidth: sizes.hidden,
    positionRows: 0,
    tiedHead: true,
    norm: "layer",
    normPlacement: "post-residual",
    finalNorm: false,
    embedNorm: true,
    qkNorm: "none",
    fusedQkv: false,
    mlp: "plain",
    activation: "gelu",
    bias: { qkv: true, out: true, mlp: true, head: false },
    rotary: 0,
    alibi: false,
    dropout: { attention: true, residual: true, embedding: true },
    windows: [{ layers: sizes.layers, window: null }],
    multipliers: { embedding: false, attention: false, residual: false, logits: false },
    softcap: { attention: false, logits: false },
    ...traits,
  };
}

/** What is assumed of every encoder. */
export const ENCODER = [nearest("gpt2"), "an encoder without a causal mask"];
