/**
 * Linear layers of a quantised base under LoRA, as bitsandbytes holds and runs them and peft adapts them. Sources:
 * bitsandbytes 0.50 (nn/modules.py, autograd/_functions.py, functional.py, backends/cuda/ops.py,
 * backends/default/ops.py), peft/tuners/lora/bnb.py.
 */

import { KINDS, rounded } from "../memory.ts";
import { FP32, HALF, type Ops } from "../ops.ts";
import type { Plan, Quantised } from "../recipe.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { besideAdapter, type Projection, type Quantiser } from "./context.ts";

const BYTE = 1;
/** Weights that share a scale, and scales that share one of their own. */
const BLOCK = 64;
const BLOCK_OF_SCALES = 256;
const CODE_BYTES = 16 * FP32;
const CODE_OF_SCALES_BYTES = 256 * FP32;

export function quantiser({ how, wholeWidth }: Quantised, { autocast, weightWidth }: Plan): Quantiser {
  const inputsOf = ({ weight, features }: Projection) => weight.fixed / features;
  if (how === "nf4") {
    const base = (ops: Ops, x: Tensor, layer: Projection) => fourBits(ops, x, layer, wholeWidth);
    return {
      // The layer makes its bias anew in the dtype of its products.
      biasWidth: HALF,
      pack: packFourBits,
      project: (ops, x, layer) => adapted(ops, x, layer, base, true),
      beforeRecompute: (ops, layer) =>
        layer.adapter === null
          ? ops.perToken(inputsOf(layer), autocast ? FP32 : HALF)
          : ops.perToken(layer.features, HALF),
    };
  }
  return {
    biasWidth: autocast ? FP32 : weightWidth,
    pack: packEightBits,
    project: (ops, x, layer) => adapted(ops, x, layer, eightBits, false),
    // Under autocast the gradient of the sum with the residual is cast for this branch, and scaled for the adapter.
    beforeRecompute: (ops, layer) =>
      layer.adapter === null
        ? ops.perToken(inputsOf(layer), HALF)
        : ops.perToken((autocast ? 2 : 1) * layer.features, HALF),
  };
}

/** Two weights a byte; a scale of a byte a block, with scales, a mean and code books of their own. */
function packFourBits(weight: Leaf): void {
  const scales = Math.ceil(weight.fixed / BLOCK);
  weight.packedBytes =
    rounded(Math.ceil(weight.fixed / 2)) +
    rounded(scales) +
    rounded(Math.ceil(scales / BLOCK_OF_SCALES) * FP32) +
    rounded(FP32) +
    rounded(CODE_BYTES) +
    rounded(CODE_OF_SCALES_BYTES);
}

/** A byte a weight, and a scale in fp32 a row. */
function packEightBits(weight: Leaf, features: number): void {
  weight.packedBytes = rounded(weight.fixed) + rounded(features * FP32);
}

/** The base with peft's path beside it, whose input autocast casts for itself; of 4-bit layers the result is cloned. */
function adapted(
  ops: Ops,
  x: Tensor,
  layer: Projection,
  run: (ops: Ops, x: Tensor, layer: Projection) => Tensor,
  clones: boolean,
): Tensor {
  let base = run(ops, x, layer);
  const { adapter, features } = layer;
  if (adapter === null) return base;
  if (clones) {
    const cloned = ops.copy(base);
    ops.drop(base);
    base = cloned;
  }
  const input = ops.autocast ? ops.alias(x) : ops.cast(x, adapter.width);
  return besideAdapter(ops, base, input, adapter, features);
}

/** As many rows as `x` has, `features` wide. */
function rowsLike(ops: Ops, x: Tensor, { weight, features }: Projection, width: number): Tensor {
  const inputs = weight.fixed / features;
  return ops.tensor((x.fixed / inputs) * features, (x.per / inputs) * features, width);
}

/** `Linear4bit` under `MatMul4Bit`: the matrix is made whole for every product, forward and backward; nothing is saved. */
function fourBits(ops: Ops, x: Tensor, layer: Projection, wholeWidth: number): Tensor {
  const { weight } = layer;
  const input = ops.cast(x, HALF);
  const scales = () => ops.tensor(Math.ceil(weight.fixed / BLOCK), 0, FP32);
  const raised = scales();
  const shifted = scales();
  const whole = ops.like(weight, HALF, KINDS.casts);
  const product = rowsLike(ops, input, layer, HALF);
  ops.drop(raised, shifted, whole);
  const out = ops.record(product, [input], [], () => {
    const again = scales();
    let matrix = ops.like(weight, wholeWidth);
    ops.drop(again);
    if (wholeWidth !== HALF) {
      const lowered = ops.like(weight, HALF);
      ops.drop(matrix);
      matrix = lowered;
    }
    const grad = ops.like(input);
    ops.drop(matrix);
    return [grad];
  });
  ops.drop(input);
  const back = ops.cast(out, x.width);
  ops.drop(out);
  return back;
}

/**
 * `Linear8bitLt` under `MatMul8bitLt`: inputs are quantised by row, and a feature with outliers is multiplied apart,
 * which autocast does in 16 bits. The node holds its input itself, beyond backward and checkpointing, until it dies.
 */
function eightBits(ops: Ops, x: Tensor, layer: Projection): Tensor {
  const { weight, features } = layer;
  const inputs = weight.fixed / features;
  const isHalf = ops.fp16 && x.width === HALF;
  const halved = isHalf ? ops.alias(x) : ops.like(x, HALF);
  const statistics = ops.tensor(x.fixed / inputs, x.per / inputs, FP32);
  const rows = ops.like(x, BYTE);
  const sizes = ops.like(x, HALF);
  const large = ops.like(x, BYTE);
  ops.drop(sizes);
  ops.drop(large, halved);
  const apart = ops.tensor(x.fixed / inputs, x.per / inputs, x.width);
  const sums = rowsLike(ops, x, layer, FP32);
  const product = rowsLike(ops, x, layer, HALF);
  const full = isHalf ? ops.alias(product) : rowsLike(ops, x, layer, x.width);
  ops.drop(sums, product);
  const operand = ops.autocast && x.width === FP32 ? rowsLike(ops, x, layer, HALF) : null;
  const out = rowsLike(ops, x, layer, ops.autocast ? HALF : x.width);
  ops.drop(operand, full, rows, statistics);
  const result = ops.record(out, [x], [], (grad) => {
    const matrix = ops.like(weight, x.width);
    const raised = grad.width === x.width ? null : ops.like(grad, x.width);
    const gradInput = ops.like(x);
    ops.drop(raised, matrix);
    return [gradInput];
  });
  if (ops.needsGrad(x)) {
    ops.hold(x);
    ops.hold(apart);
  }
  ops.drop(apart);
  return result;
}
