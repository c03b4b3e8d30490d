import type { StackBlock } from "../../model/stacks.ts";
import { FP32 } from "../ops.ts";
import { split } from "../programs/attention.ts";
import type { Projection } from "../programs/context.ts";
import { rotateHalf } from "../programs/rotary.ts";
import type { Tensor } from "../tape.ts";
import { type Distances, type DistanceTable, disentangled, disentangledModules } from "./disentangled.ts";
import { type Call, attention as called, eager, kernelOf, replaced } from "./kernels.ts";
import { apply, linear, type Shop } from "./modules.ts";
import type { StackOps } from "./ops.ts";
import { biasedInPlace, biasOf, crossBias, type PositionBias } from "./position-bias.ts";

/** The modules of one attention block. */
export interface AttentionModules {
  readonly block: StackBlock;
  readonly crosses: boolean;
  /** Query, key and value, or one matrix for all three. */
  readonly inputs: readonly Projection[];
  readonly output: Projection;
  readonly distances: Distances | null;
}

/** What a layer is called with beside its input. */
export interface Around {
  readonly implementation: "sdpa" | "flash" | "eager";
  readonly causal: boolean;
  /** Bool for kernels, numbers for eager attention. */
  readonly mask: Tensor | null;
  readonly crossMask: Tensor | null;
  readonly rotary: { readonly cos: Tensor; readonly sin: Tensor } | null;
  readonly bias: PositionBias | null;
  readonly distances: DistanceTable | null;
  /** Keys and values go through a cache. */
  readonly caches: boolean;
  readonly tokens: number;
}

export function attentionModules(shop: Shop, block: StackBlock, crosses: boolean): AttentionModules {
  const { hidden, heads, headDim, biases, adapted, attention } = block;
  const inner = heads * headDim;
  const input = (bias: boolean) => linear(shop, hidden, inner, bias, adapted.inputs);
  const inputs = attention.rotary
    ? [linear(shop, hidden, 3 * inner, biases.query, adapted.inputs)]
    : [input(biases.query), input(biases.key), input(biases.value)];
  return {
    block,
    crosses,
    inputs,
    output: linear(shop, inner, hidden, biases.out, adapted.output),
    distances:
      attention.disentangled === null ? null : disentangledModules(shop, block, attention.disentangled),
  };
}

/** Attention to the input itself, or to `memory`; names live until it returns, as in Python. */
export function attend(
  ops: StackOps,
  x: Tensor,
  memory: Tensor | null,
  modules: AttentionModules,
  around: Around,
): Tensor {
  return ops.within("attention", () => {
    const { block, inputs, output } = modules;
    if (modules.distances !== null)
      return disentangled(ops, x, modules.distances, inputs, output, around.tokens, around.distances!);
    const mask = memory === null ? around.mask : around.crossMask;
    const bias = memory === null ? around.bias?.own : around.bias?.cross;
    const { attention, heads, headDim } = block;
    const kernel = kernelOf(
      around.implementation,
      ops.kernelWidth(x),
      mask !== null || around.bias !== null,
      { heads, size: headDim, dropout: false, byToken: true, causal: false },
    );
    const call: Call = {
      heads,
      size: headDim,
      dropout: block.dropout.attention,
      byToken: !attention.ordered && !(around.caches && kernel === "flash"),
      causal: memory === null && around.causal && mask === null,
    };
    // Gradients of scores come by head and are put back in order by token.
    const copies = kernel === "eager" || kernel === "math" || (attention.ordered && kernel === "flash");
    const { q, k, v } = attention.rotary
      ? rotated(ops, x, inputs[0]!, around.rotary!, copies)
      : parts(ops, x, memory ?? x, modules, around.caches, copies);
    let out: Tensor;
    if (attention.positionBias?.perSample) {
      out = biasedInPlace(ops, q, k, v, bias!, call);
    } else if (kernel === "eager") {
      out = eager(ops, q, k, v, [bias ?? null, mask], call, attention.softmaxFull);
    } else if (around.bias === null) {
      out = called(ops, kernel, q, k, v, mask, call);
    } else {
      const addend = memory === null ? biasOf(ops, around.bias, mask) : crossBias(ops, around.bias, mask);
      out = called(ops, kernel, q, k, v, addend, call);
      ops.drop(addend);
    }
    const result = apply(ops, out, output);
    ops.drop(q, k, v);
    if (block.keepsInner) ops.name(out);
    else ops.drop(out);
    return result;
  });
}

function parts(
  ops: StackOps,
  x: Tensor,
  source: Tensor,
  { block, inputs }: AttentionModules,
  caches: boolean,
  copies: boolean,
) {
  const { ordered } = block.attention;
  const inOrder = (t: Tensor) => (copies ? replaced(ops, t, (o) => ops.reordered(o)) : t);
  const laid = (t: Tensor) => (ordered ? replaced(ops, t, (o) => ops.copy(o)) : t);
  const cached = (t: Tensor) => (caches ? replaced(ops, t, (o) => ops.throughCache(o)) : t);
  let q = apply(ops, x, inputs[0]!);
  if (ordered) q = replaced(ops, q, (t) => ops.scaled(t));
  q = laid(inOrder(q));
  const k = laid(inOrder(apply(ops, source, inputs[1]!)));
  const v = laid(inOrder(apply(ops, source, inputs[2]!)));
  return { q, k: cached(k), v: cached(v) };
}

/** One matrix for all three; queries and keys are rotated in fp32 and cast back, values stay a view of the whole. */
function rotated(
  ops: StackOps,
  x: Tensor,
  input: Projection,
  { cos, sin }: { readonly cos: Tensor; readonly sin: Tensor },
  copies: boolean,
) {
  const fused = apply(ops, x, input);
  const third = 1 / 3;
  const [query, key, value] = split(ops, fused, [third, third, third]) as [Tensor, Tensor, Tensor];
  const turned = (t: Tensor) => {
    const first = ops.cast(t, FP32);
    const straight = ops.product(first, cos);
    ops.drop(first);
    const second = ops.cast(t, FP32);
    const half = rotateHalf(ops, second);
    ops.drop(second);
    const crossed = ops.product(half, sin);
    ops.drop(half);
    const sum = ops.addition(straight, crossed);
    ops.drop(straight, crossed);
    return sum;
  };
  const fullQuery = turned(query);
  const fullKey = turned(key);
  const q = ops.cast(fullQuery, query.width);
  const k = ops.cast(fullKey, key.width);
  ops.drop(fullQuery, fullKey);
  ops.drop(query, key, fused);
  return { q, k, v: copies ? replaced(ops, value, (t) => ops.reordered(t)) : value };
}
