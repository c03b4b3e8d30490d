import type { AdapterProjector, Merger, PerceptronProjector, Tower } from "../../model/tower-types.ts";
import { type Projection, project } from "../programs/context.ts";
import { type Norm, norm, normalize } from "../programs/norms.ts";
import { replaced } from "../stacks/kernels.ts";
import {
  activated,
  apply,
  linear,
  matrix,
  normalized,
  parameter,
  type Shop,
  stackNorm,
} from "../stacks/modules.ts";
import type { StackOps } from "../stacks/ops.ts";
import type { Leaf, Tensor } from "../tape.ts";

/** From what a tower returned, which is borrowed, to features as wide as the decoder; owned by the caller. */
export type Project = (features: readonly Tensor[]) => Tensor;

/** Makes a projector's modules and returns its program. */
export function projectorOf(shop: Shop, tower: Tower, width: number): Project {
  const { projector, stack, tokens } = tower;
  const { hidden } = stack.block;
  switch (projector.kind) {
    case "pooled":
      return pooled(shop, hidden, tokens, width);
    case "linear": {
      const layer = linear(shop, hidden, projector.width, true);
      return ([x]) => apply(shop.ops, x!, layer);
    }
    case "perceptron":
      return perceptron(shop, projector, tower, width);
    case "shuffle": {
      const layer = linear(shop, hidden * projector.factor ** 2, width, false);
      const { ops } = shop;
      return ([x]) => replaced(ops, shuffled(ops, x!), (t) => apply(ops, t, layer));
    }
    case "adapter":
      return adapter(shop, projector, hidden, width);
    case "merger":
      return mergerOf(shop, projector);
  }
}

/** Squares of patches side by side: rows are put in order twice, once for each side of a square. */
function shuffled(ops: StackOps, x: Tensor): Tensor {
  const once = replaced(ops, ops.reordered(x), (t) => ops.copy(t));
  const twice = replaced(ops, ops.reordered(once), (t) => ops.copy(t));
  ops.drop(once);
  return twice;
}

function adapter(shop: Shop, { factor, inner }: AdapterProjector, hidden: number, width: number): Project {
  const { ops } = shop;
  const first = linear(shop, hidden * factor ** 2, inner, false);
  const second = linear(shop, inner, inner, false);
  const last = linear(shop, inner, width, false);
  return ([x]) => {
    const seen = ops.picked(x!, x!.per - hidden);
    let out = replaced(ops, seen, (t) => shuffled(ops, t));
    for (const layer of [first, second]) {
      out = replaced(ops, out, (t) => apply(ops, t, layer));
      out = replaced(ops, out, (t) => activated(ops, t, "gelu"));
    }
    return replaced(ops, out, (t) => apply(ops, t, last));
  };
}

function pooled(shop: Shop, hidden: number, tokens: number, width: number): Project {
  const { ops } = shop;
  const weight: Leaf = matrix(shop, hidden, width);
  const made: Norm = norm({ ...shop, shape: { splitBiases: false } }, "rms-plus-one", hidden);
  const layer: Projection = {
    weight,
    bias: null,
    features: width,
    splitBias: false,
    adapter: null,
    // A parameter of the projector itself, not a linear layer.
    quantiser: null,
  };
  return ([x]) => {
    const inOrder = ops.copy(x!);
    const means = ops.record(
      ops.tensor(0, tokens * hidden, inOrder.width),
      [inOrder],
      [inOrder.storage],
      () => [ops.like(inOrder)],
    );
    ops.drop(inOrder);
    const normed = replaced(ops, means, (t) => ops.within("norms", () => normalize(ops, t, made)));
    const out = replaced(ops, normed, (t) => project(ops, t, layer));
    return replaced(ops, out, (t) => ops.cast(t, x!.width));
  };
}

function perceptron(
  shop: Shop,
  { skipsClass, bias, activation, layers, newline }: PerceptronProjector,
  { stack, tokens }: Tower,
  width: number,
): Project {
  const { ops } = shop;
  const { hidden } = stack.block;
  const first = linear(shop, hidden * layers, width, bias);
  const second = linear(shop, width, width, bias);
  const end = newline ? parameter(shop, width) : null;
  return (features) => {
    const { input } = stack;
    const tiles = (input.kind === "patches" ? input.tiles : 1) ?? 1;
    const without = (t: Tensor) => (skipsClass ? ops.picked(t, t.per - tiles * hidden) : ops.alias(t));
    const seen = features.map(without);
    let x = seen[0]!;
    if (layers > 1) {
      const whole = ops.tensor(0, x.per * layers, x.width);
      x = ops.record(whole, seen, [], (grad) => seen.map((one) => ops.view(grad, 0, one.per)));
      ops.dropAll(seen);
    } else if (skipsClass && !ops.autocast) x = replaced(ops, x, (t) => ops.copy(t));
    x = replaced(ops, x, (t) => apply(ops, t, first));
    x = replaced(ops, x, (t) => activated(ops, t, activation));
    x = replaced(ops, x, (t) => apply(ops, t, second));
    return end === null ? x : rowsEnded(ops, x, end, tokens * width, tiles);
  };
}

/** The image as a whole, then its tiles as one, cut to its shape, each row of which ends with `end`. */
function rowsEnded(ops: StackOps, x: Tensor, end: Leaf, per: number, tiles: number): Tensor {
  const tile = x.per / tiles;
  const cut = ops.picked(x, x.per - tile);
  const inOrder = replaced(ops, cut, (t) => ops.copy(t));
  const unpadded = ops.picked(inOrder, tile);
  ops.drop(inOrder);
  const ended = ops.record(ops.tensor(0, per - tile, x.width), [unpadded, end], [], (grad) => [
    ops.view(grad, 0, tile),
    ops.view(grad, 0, per - 2 * tile),
  ]);
  ops.drop(unpadded);
  const base = ops.picked(x, tile);
  const whole = ops.record(ops.tensor(0, per, x.width), [base, ended], [], (grad) => [
    ops.view(grad, 0, tile),
    ops.view(grad, 0, per - tile),
  ]);
  ops.drop(base, ended, x);
  return whole;
}

/** Norm, squares of patches side by side, two layers; windows go back to their places. */
export function mergerOf(shop: Shop, merger: Merger): Project {
  const { ops } = shop;
  const { width, output, normsJoined, reorders } = merger;
  const made = stackNorm(shop, merger.norm, normsJoined ? width : merger.inner);
  const first = linear(shop, width, width, true);
  const second = linear(shop, width, output, true);
  return ([x]) => {
    let out = replaced(ops, normalized(ops, x!, made), (t) => apply(ops, t, first));
    out = replaced(ops, out, (t) => activated(ops, t, "gelu"));
    out = replaced(ops, out, (t) => apply(ops, t, second));
    if (!reorders) return out;
    return replaced(ops, out, (t) => ops.record(ops.like(t), [t], [], (grad) => [ops.like(grad)]));
  };
}
