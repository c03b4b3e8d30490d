import type { StackBlock, StackNorm } from "../../model/stacks.ts";
import { FP32, HALF } from "../ops.ts";
import { type Adapter, type Projection, project, projection, type Quantiser } from "../programs/context.ts";
import { activate as activateUsual } from "../programs/feed-forward.ts";
import { type Norm, norm, normalize } from "../programs/norms.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced } from "./kernels.ts";
import type { StackOps } from "./ops.ts";

/** What the modules of one model and recipe are made with. */
export interface Shop {
  readonly ops: StackOps;
  /** Bytes an element of the base weights. */
  readonly weightWidth: number;
  readonly trainBase: boolean;
  readonly quantiser: Quantiser | null;
  readonly adapter: Adapter | null;
  /** Adapters on all linear layers, not on those of attention alone. */
  readonly everywhere: boolean;
}

const ONE_OPERATION = { splitBiases: false };

/** A parameter; `factored` = elements of the row and column means that some optimizers keep of a matrix. */
export function parameter(
  { ops, weightWidth, trainBase }: Shop,
  count: number,
  factored: number = count,
): Leaf {
  return ops.leaf(count, weightWidth, trainBase, factored);
}

/** An embedding's table of so many rows. */
export function tableOf(shop: Shop, rows: number, width: number): Leaf {
  const made = matrix(shop, rows, width);
  made.isTable = true;
  return made;
}

/** A matrix of so many rows. */
export function matrix(shop: Shop, rows: number, width: number): Leaf {
  return parameter(shop, rows * width, rows + width);
}

/** A linear layer; `named` = it bears one of the names that LoRA on "attention" adapts. */
export function linear(
  shop: Shop,
  inputs: number,
  outputs: number,
  bias: boolean,
  named = false,
): Projection {
  const adapter = named || shop.everywhere ? shop.adapter : null;
  return projection({ ...shop, shape: ONE_OPERATION }, inputs, outputs, bias, adapter);
}

export function apply(ops: StackOps, x: Tensor, layer: Projection): Tensor {
  return project(ops, x, layer);
}

export interface StackNormModule {
  readonly type: StackNorm;
  readonly module: Norm;
}

export function stackNorm(shop: Shop, type: StackNorm, features: number): StackNormModule {
  const made = norm({ ...shop, shape: ONE_OPERATION }, type === "t5" ? "rms" : type, features);
  return { type, module: made };
}

export function normalized(ops: StackOps, x: Tensor, { type, module }: StackNormModule): Tensor {
  return ops.within("norms", () => (type === "t5" ? scaleOnly(ops, x, module) : normalize(ops, x, module)));
}

/** T5's norm: the variance in fp32, the product with its root in the wider dtype, cast to 16-bit weights' alone. */
function scaleOnly(ops: StackOps, x: Tensor, { features, weight }: Norm): Tensor {
  const full = ops.cast(x, FP32);
  const squares = ops.power(full);
  const variance = ops.meanOfFeatures(squares, features);
  ops.drop(full, squares);
  const inverse = ops.rsqrt(variance);
  let normed = ops.product(x, inverse);
  ops.drop(inverse);
  if (weight!.width === HALF) normed = replaced(ops, normed, (t) => ops.cast(t, HALF));
  const out = ops.scaledBy(normed, weight!);
  ops.drop(normed, variance);
  return out;
}

export function activated(ops: StackOps, x: Tensor, activation: StackBlock["activation"]): Tensor {
  if (activation !== "quick-gelu") return activateUsual(ops, x, activation);
  const gate = replaced(ops, ops.scaled(x), (t) => ops.sigmoid(t));
  const out = ops.product(x, gate);
  ops.drop(gate);
  return out;
}
