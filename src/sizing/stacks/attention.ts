import type { StackBlock } from "../../model/stacks.ts";
import { FP32 } from "../ops.ts";
import { split } from "../programs/attention.ts";
import type { Projection } from "../programs/context.ts";
import { rotateHalf, turnedComplex } from "../programs/rotary.ts";
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
  /** Tokens that see each other, where not all do. */
  readonly chunk?: number;
}

export function attentionModules(shop: Shop, block: StackBlock, crosses: boolean): AttentionModules {
  const { hidden, heads, headDim, biases, adapted, attention } = block;
  const inner = heads * headDim;
  const input = (bias: boolean) => linear(shop, hidden, inner, bias, adapted.inputs);
  const inputs =
    attention.rotary && attention.rotary !== "complex"
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
      cached: around.caches,
      causal: memory === null && around.causal && mask === null,
      ...(around.chunk === undefined ? {} : { chunk: around.chunk }),
    };
    const packed = attention.rotary === "packed";
    // flash_attn is told where each image ends.
    const cut = packed && around.implementation !== "flash";
    // Gradients of scores come by head and are put back in order by token.
    const copies = kernel === "eager" || kernel === "math" || (attention.ordered && kernel === "flash");
    const { rotary } = attention;
    const { q, k, v } =
      rotary === "complex"
        ? turned(ops, x, inputs, around.rotary!, copies)
        : rotary
          ? rotated(ops, x, inputs[0]!, around.rotary!, copies, packed, cut)
          : parts(ops, x, memory ?? x, modules, around.caches, copies);
    let out: Tensor;
    if (attention.positionBias?.perSample) {
      out = biasedInPlace(ops, q, k, v, bias!, call);
    } else if (kernel === "eager" && cut) {
      // Evaluated at first use: only towers attend in turn.
      const { eagerInTurn } = require("../towers/in-turn.ts") as typeof import("../towers/in-turn.ts");
      out = eagerInTurn(ops, q, k, v, call);
    } else if (kernel === "eager") {
      out = eager(ops, q, k, v, [bias ?? null, mask], call, attention.softmaxFull);
    } else if (around.bias === null) {
      out = called(ops, kernel, q, k, v, mask, call);
    } else {
      const addend = memory === null ? biasOf(ops, around.bias, mask) : crossBias(ops, around.bias, mask);
      out = called(ops, kernel, q, k, v, addend, call);
      ops.drop(addend);
    }
    // Blocks are put together again.
    if (cut) out = replaced(ops, out, (t) => ops.copy(t));
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

/** Queries and keys as complex numbers in fp32, turned and cast back. */
function turned(
  ops: StackOps,
  x: Tensor,
  inputs: readonly Projection[],
  angles: NonNullable<Around["rotary"]>,
  copies: boolean,
) {
  const [query, key, value] = inputs.map((one) => apply(ops, x, one)) as [Tensor, Tensor, Tensor];
  const [fullQuery, fullKey] = [ops.cast(query, FP32), ops.cast(key, FP32)];
  const turn = (t: Tensor) => turnedComplex(ops, t, { ...angles, fraction: 1, concatenates: false });
  const [turnedQuery, turnedKey] = [turn(fullQuery), turn(fullKey)];
  const [q, k] = [ops.cast(turnedQuery, query.width), ops.cast(turnedKey, key.width)];
  ops.drop(fullQuery, fullKey, turnedQuery, turnedKey);
  ops.drop(query, key);
  const inOrder = (t: Tensor) => (copies ? replaced(ops, t, (u) => ops.reordered(u)) : t);
  return { q: inOrder(q), k: inOrder(k), v: inOrder(value) };
}

/** One matrix for all three; queries and keys are rotated in fp32 and cast back, values stay a view of the whole. */
function rotated(
  ops: StackOps,
  x: Tensor,
  input: Projection,
  { cos, sin }: { readonly cos: Tensor; readonly sin: Tensor },
  copies: boolean,
  packed: boolean,
  cut: boolean,
) {
  const fused = apply(ops, x, input);
  const third = 1 / 3;
  const [query, key, value] = split(ops, fused, [third, third, third]) as [Tensor, Tensor, Tensor];
  const turned = (t: Tensor) => {
    const first = ops.cast(t, FP32);
    const straight = ops.product(first, cos);
    if (!packed) ops.drop(first);
    const second = packed ? first : ops.cast(t, FP32);
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
  if (cut) {
    const inBlocks = (t: Tensor) => replaced(ops, t, (u) => ops.reordered(u));
    return { q: inBlocks(q), k: inBlocks(k), v: inBlocks(value) };
  }
  return { q, k, v: copies ? replaced(ops, value, (t) => ops.reordered(t)) : value };
}
