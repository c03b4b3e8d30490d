import type { StackBlock } from "../../model/stacks.ts";
import { split } from "../programs/attention.ts";
import type { Projection } from "../programs/context.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { type Around, type AttentionModules, attend, attentionModules } from "./attention.ts";
import { dropped, replaced } from "./kernels.ts";
import {
  activated,
  apply,
  linear,
  normalized,
  parameter,
  type Shop,
  type StackNormModule,
  stackNorm,
} from "./modules.ts";
import type { StackOps } from "./ops.ts";

/** The modules of one layer of a stack. */
export interface Block {
  readonly shape: StackBlock;
  readonly attention: AttentionModules;
  readonly attentionNorm: StackNormModule | null;
  readonly cross: { readonly attention: AttentionModules; readonly norm: StackNormModule } | null;
  readonly inputs: readonly Projection[];
  readonly output: Projection;
  readonly norm: StackNormModule;
  readonly scales: readonly [Leaf, Leaf] | null;
  readonly weightWidth: number;
}

export function block(
  shop: Shop,
  shape: StackBlock,
  traits: { readonly crosses: boolean; readonly normed: boolean },
): Block {
  const { hidden, ffn, norm, biases, mlp } = shape;
  const made = () => stackNorm(shop, norm, hidden);
  const into = (width: number) => linear(shop, hidden, width, biases.mlp);
  return {
    shape,
    attention: attentionModules(shop, shape, false),
    attentionNorm: traits.normed ? made() : null,
    cross: traits.crosses ? { attention: attentionModules(shop, shape, true), norm: made() } : null,
    inputs: mlp === "gated" ? [into(ffn), into(ffn)] : [into(mlp === "plain" ? ffn : 2 * ffn)],
    // T5 asks that its last matrix stay whole.
    output: linear(norm === "t5" ? { ...shop, quantiser: null } : shop, ffn, hidden, biases.mlp),
    norm: made(),
    scales: shape.layerScale ? [parameter(shop, hidden), parameter(shop, hidden)] : null,
    weightWidth: shop.weightWidth,
  };
}

/** One layer: `x` and `memory` are borrowed, the result owned. */
export function forwardBlock(
  ops: StackOps,
  x: Tensor,
  memory: Tensor | null,
  modules: Block,
  around: Around,
): Tensor {
  const { shape, attention, cross, scales } = modules;
  const attended = (t: Tensor) => {
    const out = attend(ops, t, null, attention, around);
    return shape.dropout.attended ? ops.within("residual", () => dropped(ops, out)) : out;
  };
  let hidden = part(ops, x, shape, modules.attentionNorm, attended, scales?.[0] ?? null);
  if (cross !== null && memory !== null) {
    const crossed = (t: Tensor) => {
      const out = attend(ops, t, memory, cross.attention, around);
      return shape.dropout.attended ? ops.within("residual", () => dropped(ops, out)) : out;
    };
    hidden = replaced(ops, hidden, (t) => part(ops, t, shape, cross.norm, crossed, null));
  }
  const fed = (t: Tensor) => {
    const out = feed(ops, t, modules);
    return shape.dropout.fed ? ops.within("residual", () => dropped(ops, out)) : out;
  };
  hidden = replaced(ops, hidden, (t) => part(ops, t, shape, modules.norm, fed, scales?.[1] ?? null));
  ops.endLayer(false);
  return hidden;
}

/** One part of a layer with its residual: the norm before it, or after the sum. */
function part(
  ops: StackOps,
  x: Tensor,
  shape: StackBlock,
  norm: StackNormModule | null,
  run: (t: Tensor) => Tensor,
  scale: Leaf | null,
): Tensor {
  const before = shape.placement === "pre" && norm !== null ? normalized(ops, x, norm) : ops.alias(x);
  let out = run(before);
  ops.drop(before);
  const sum = ops.within("residual", () => {
    if (scale !== null) out = replaced(ops, out, (t) => ops.scaledBy(t, scale));
    if (shape.dropPath) out = replaced(ops, out, (t) => samplesDropped(ops, t));
    return ops.addition(x, out);
  });
  const normed = shape.placement === "post" && norm !== null ? normalized(ops, sum, norm) : ops.alias(sum);
  ops.drop(sum, out);
  ops.partEnded();
  return normed;
}

/** Stochastic depth: whole samples are dropped, the others scaled. */
function samplesDropped(ops: StackOps, x: Tensor): Tensor {
  const kept = ops.tensor(0, 1, x.width);
  const scaled = ops.scaled(x);
  const out = ops.product(scaled, kept);
  ops.drop(scaled, kept);
  return out;
}

function feed(ops: StackOps, x: Tensor, { shape, inputs, output, weightWidth }: Block): Tensor {
  return ops.within("feed-forward", () => {
    let inner = widened(ops, x, shape, inputs);
    if (shape.dropout.inner) inner = dropped(ops, inner);
    // T5 hands its last matrix what has the matrix' own dtype.
    if (shape.norm === "t5") inner = replaced(ops, inner, (t) => ops.cast(t, weightWidth));
    const out = apply(ops, inner, output);
    if (shape.keepsInner) ops.name(inner);
    else ops.drop(inner);
    return out;
  });
}

function widened(ops: StackOps, x: Tensor, shape: StackBlock, inputs: readonly Projection[]): Tensor {
  const { activation } = shape;
  if (shape.mlp === "plain")
    return replaced(ops, apply(ops, x, inputs[0]!), (t) => activated(ops, t, activation));
  if (shape.mlp === "gated") {
    const active = replaced(ops, apply(ops, x, inputs[0]!), (t) => activated(ops, t, activation));
    const up = apply(ops, x, inputs[1]!);
    const product = ops.product(active, up);
    ops.drop(active, up);
    return product;
  }
  const both = apply(ops, x, inputs[0]!);
  const [gate, up] = split(ops, both, [0.5, 0.5]) as [Tensor, Tensor];
  ops.drop(both);
  const active = activated(ops, gate, activation);
  const product = ops.product(active, up);
  ops.drop(active, gate, up);
  return product;
}
