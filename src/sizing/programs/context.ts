import type { DecoderShape } from "../../model/types.ts";
import type { Ops } from "../ops.ts";
import type { Plan } from "../recipe.ts";
import type { Leaf, Tensor } from "../tape.ts";

/** The programs that few families need: evaluated at first use, and at once. */
export function rare() {
  return require("./rare.ts") as typeof import("./rare.ts");
}

/** The quantiser of a plan that has one: evaluated at first use, and at once. */
export function quantiserOf(plan: Plan): Quantiser | null {
  if (plan.quantised === null) return null;
  const { quantiser } = require("./quantised.ts") as typeof import("./quantised.ts");
  return quantiser(plan.quantised, plan);
}

/** How a layer's attention is computed, once recipe, mask and window are known. */
export interface AttentionMode {
  readonly implementation: "sdpa" | "flash" | "eager";
  /** A mask is handed to attention: bool for sdpa, of the residual's dtype for eager. */
  readonly masked: boolean;
}

/** LoRA as it is applied to one projection. */
export interface Adapter {
  readonly rank: number;
  readonly width: number;
  /** Its input is dropped out. */
  readonly dropout: boolean;
}

/** Linear layers of a quantised base, as `quantised.ts` makes and runs them. */
export interface Quantiser {
  readonly biasWidth: number;
  /** Turns a matrix into a quantised one of so many features out. */
  readonly pack: (weight: Leaf, features: number) => void;
  readonly project: (ops: Ops, x: Tensor, projection: Projection) => Tensor;
  /** The gradients that the backward of a checkpointed layer's last projection makes before it needs a saved tensor. */
  readonly beforeRecompute: (ops: Ops, projection: Projection) => Tensor;
}

/** What the programs of one model and recipe share. */
export interface Context {
  readonly ops: Ops;
  readonly shape: DecoderShape;
  /** Bytes an element of the base weights. */
  readonly weightWidth: number;
  /** Whether the base weights are trained. */
  readonly trainBase: boolean;
  readonly quantiser: Quantiser | null;
  /** The layer's last matrix is left whole where others are quantised. */
  readonly outputWhole?: boolean;
  readonly attention: Adapter | null;
  readonly feedForward: Adapter | null;
}

/** What modules are made with. */
export type Making = Pick<Context, "weightWidth" | "trainBase" | "quantiser"> & {
  readonly ops: Ops;
  readonly shape: Pick<DecoderShape, "splitBiases">;
};

/** A projection: its weights, and its adapter's two where it has one. */
export interface Projection {
  readonly weight: Leaf;
  readonly bias: Leaf | null;
  readonly features: number;
  /** The bias is an operation of its own (falcon), in the wider dtype of the two. */
  readonly splitBias: boolean;
  /** Null: the weights are as wide as the base's. */
  readonly quantiser: Quantiser | null;
  readonly adapter: {
    readonly down: Leaf;
    readonly up: Leaf;
    readonly rank: number;
    readonly width: number;
    readonly dropout: boolean;
  } | null;
}

export function projection(
  context: Making,
  inFeatures: number,
  features: number,
  bias: boolean,
  adapter: Adapter | null,
): Projection {
  const { ops, weightWidth, trainBase } = context;
  const splitBias = context.shape.splitBiases ?? false;
  // transformers quantises `nn.Linear` itself and no class made of it.
  const quantiser = splitBias ? null : context.quantiser;
  const weight = ops.leaf(inFeatures * features, weightWidth, trainBase, inFeatures + features);
  quantiser?.pack(weight, features);
  return {
    weight,
    bias: bias ? ops.leaf(features, quantiser?.biasWidth ?? weightWidth, trainBase) : null,
    features,
    splitBias,
    quantiser,
    adapter:
      adapter === null
        ? null
        : {
            down: ops.leaf(inFeatures * adapter.rank, adapter.width, true, inFeatures + adapter.rank),
            up: ops.leaf(adapter.rank * features, adapter.width, true, adapter.rank + features),
            rank: adapter.rank,
            width: adapter.width,
            dropout: adapter.dropout,
          },
  };
}

/** A linear layer, with peft's LoRA path beside it: `base(x) + up(down(dropout(x))) * scaling`. */
export function project(ops: Ops, x: Tensor, projection: Projection): Tensor {
  const { weight, bias, features, splitBias, adapter, quantiser } = projection;
  if (quantiser !== null) return quantiser.project(ops, x, projection);
  let base = ops.linear(x, weight, splitBias ? null : bias, features);
  if (splitBias && bias !== null) {
    const product = base;
    base = ops.biased(product, bias);
    ops.drop(product);
  }
  if (adapter === null) return base;
  return besideAdapter(ops, base, ops.cast(x, adapter.width), adapter, features);
}

/**
 * `base + up(down(dropout(input))) * scaling`; `base` and `input` are owned, and die once the sum is there.
 *
 * Without dropout `down` saves the input that the layers beside it save too. With dropout every adapter keeps its own
 * mask and saves an input of its own, in the dtype of its product; the dropped-out tensor dies once the product of
 * `down` is there. Source: peft/tuners/lora/layer.py, `Linear.forward`.
 */
export function besideAdapter(
  ops: Ops,
  base: Tensor,
  input: Tensor,
  adapter: NonNullable<Projection["adapter"]>,
  features: number,
): Tensor {
  const taken = adapter.dropout ? ops.dropout(input) : ops.alias(input);
  const down = ops.linear(taken, adapter.down, null, adapter.rank);
  ops.drop(taken);
  const up = ops.linear(down, adapter.up, null, features);
  ops.drop(down);
  const scaled = ops.scaled(up);
  ops.drop(up);
  const sum = ops.addition(base, scaled);
  ops.drop(scaled, base, input);
  return sum;
}
