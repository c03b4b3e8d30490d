import type { DecoderShape, ExpertsShape } from "../../model/types.ts";
import { HALF, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced, split } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";
import { activate, type FeedForward, feedForward, forwardFeed } from "./feed-forward.ts";
import { integers, rowsOf, sorted, sumOfParts } from "./indexing.ts";
import { factorsOf, folded, type MergedAdapter, mergedAdapter } from "./merged.ts";
import { sliced } from "./rotary.ts";
import { type Choice, type Router, route, router } from "./router.ts";

/** A matrix an expert, all in one tensor, with its biases. */
interface ExpertMatrices {
  readonly weight: Leaf;
  readonly bias: Leaf | null;
  readonly features: number;
  readonly adapter: MergedAdapter | null;
}

/** The experts of a layer, without what sends tokens to them. */
export interface ExpertBlock {
  readonly shape: DecoderShape;
  readonly experts: ExpertsShape;
  readonly inner: ExpertMatrices;
  readonly outer: ExpertMatrices;
  /** Bytes an element of what the experts' results are summed in; known once they ran. */
  readonly sum: { width: number };
}

/** A mixture of experts in the place of a feed-forward block. */
export interface Experts extends ExpertBlock {
  readonly router: Router;
  readonly shared: FeedForward | null;
  readonly sharedGate: Projection | null;
}

export function expertBlock(context: Context): ExpertBlock {
  const { ops, shape, weightWidth, trainBase } = context;
  const mixture = shape.experts!;
  const lora = shape.adaptsExperts ? context.feedForward : null;
  // Two matrices that files hold apart and the model holds as one are adapted with twice the rank.
  const matrices = (inFeatures: number, features: number, parts: number): ExpertMatrices => ({
    weight: ops.leaf(
      mixture.count * inFeatures * features,
      weightWidth,
      trainBase,
      mixture.count * (inFeatures + features),
    ),
    bias: mixture.bias
      ? ops.leaf(mixture.count * features, weightWidth, trainBase, mixture.count + features)
      : null,
    features,
    adapter:
      lora === null
        ? null
        : mergedAdapter(context, mixture.count, inFeatures, features, { ...lora, rank: parts * lora.rank }),
  });
  return {
    shape,
    experts: mixture,
    inner: matrices(shape.hidden, 2 * mixture.width, 2),
    outer: matrices(mixture.width, shape.hidden, 1),
    sum: { width: weightWidth },
  };
}

export function experts(context: Context): Experts {
  const { shape } = context;
  const mixture = shape.experts!;
  const { shared } = mixture;
  // Most classes declare the router first, and an optimizer comes to it first.
  const first = router(context, mixture, shape.adaptsExperts ? context.feedForward : null);
  return {
    ...expertBlock(context),
    router: first,
    shared: shared === null ? null : feedForward({ ...context, shape: sharedShape(shape, shared) }),
    sharedGate: shared?.gated ? projection(context, shape.hidden, 1, false, context.feedForward) : null,
  };
}

function sharedShape(shape: DecoderShape, shared: NonNullable<ExpertsShape["shared"]>): DecoderShape {
  return { ...shape, ffn: shared.width, mlp: shared.fused ? "gated-fused" : shape.mlp };
}

/** The mixture with the block that every token passes beside it; `x` is borrowed. */
export function forwardMixture(ops: Ops, x: Tensor, block: Experts): Tensor {
  return ops.within("feed-forward", () => {
    const { shared, sharedGate } = block;
    if (block.experts.everyToken) return throughAll(ops, x, block);
    if (shared === null) {
      const choice = route(ops, x, block.router);
      const out = throughExperts(ops, x, choice, block);
      dropChoice(ops, choice);
      return out;
    }
    // qwen2_moe and ernie run the shared expert first, all others last.
    const first = sharedGate !== null || block.experts.shared?.first;
    const early = first ? forwardFeed(ops, x, shared) : null;
    const choice = route(ops, x, block.router);
    let out = throughExperts(ops, x, choice, block);
    let beside = early ?? forwardFeed(ops, x, shared);
    if (sharedGate !== null) {
      const gate = replaced(ops, project(ops, x, sharedGate), (t) => ops.sigmoid(t));
      beside = replaced(ops, beside, (t) => ops.product(t, gate));
      ops.drop(gate);
    }
    out = replaced(ops, out, (t) => ops.addition(t, beside));
    ops.drop(beside);
    dropChoice(ops, choice);
    return out;
  });
}

function dropChoice(ops: Ops, { logits, weights, experts: chosen }: Choice): void {
  ops.drop(logits, weights, chosen);
}

/**
 * The experts as transformers runs them: all choices sorted by expert, two grouped products, and back into order.
 * However the tokens spread, as many rows pass. Source: transformers/integrations/moe.py, `grouped_mm`.
 */
export function throughExperts(ops: Ops, x: Tensor, choice: Choice, block: ExpertBlock): Tensor {
  const { shape, experts: mixture, inner, outer } = block;
  const choices = mixture.perToken;
  const outerFactors = outer.adapter === null ? null : factorsOf(ops, outer.adapter, outer.weight);
  const innerFactors = inner.adapter === null ? null : factorsOf(ops, inner.adapter, inner.weight);
  const { ids, order, counts } = sorted(ops, choices, mixture.count);
  const rows = integers(ops, choices);
  const selected = rowsOf(ops, x, rows, choices * shape.hidden);
  ops.drop(rows);
  const weights = rowsOf(ops, choice.weights, order, choices);
  const [narrow, perExpert, offsets] = counts() as [Tensor, Tensor, Tensor];
  const innerBias = biasOf(ops, inner, ids, choices);
  const innerWeight = innerFactors === null ? inner.weight : folded(ops, inner.weight, innerFactors);
  let out = grouped(ops, selected, innerWeight, inner, offsets, innerBias, choices);
  out = replaced(ops, out, (t) => (mixture.clamped ? clampedGate(ops, t) : gatedBy(ops, t, shape)));
  const outerBias = biasOf(ops, outer, ids, choices);
  ops.drop(innerBias);
  const outerWeight = outerFactors === null ? outer.weight : folded(ops, outer.weight, outerFactors);
  out = replaced(ops, out, (t) => grouped(ops, t, outerWeight, outer, offsets, outerBias, choices));
  const weighted = ops.product(out, weights);
  const back = integers(ops, choices);
  ops.workspace(back.storage.fixed, back.storage.per);
  const inOrder = replaced(ops, weighted, (t) => rowsOf(ops, t, back, choices * shape.hidden));
  const summed = sumOfParts(ops, inOrder, choices);
  block.sum.width = summed.width;
  const result = ops.cast(summed, x.width);
  ops.drop(ids, order, selected, weights);
  ops.drop(narrow, perExpert, offsets, out);
  ops.drop(back, inOrder, summed, outerBias);
  for (const factors of [outerFactors, innerFactors]) if (factors !== null) ops.drop(...factors);
  if (innerWeight !== inner.weight) ops.drop(innerWeight, outerWeight);
  return result;
}

/** The bias of each choice's expert, a row a choice. */
function biasOf(ops: Ops, { bias, features }: ExpertMatrices, ids: Tensor, choices: number): Tensor | null {
  return bias === null ? null : rowsOf(ops, bias, ids, choices * features);
}

/**
 * One product for all experts. Weights in bf16 have a kernel; others go through transformers' own operator, which
 * keeps its input and computes both gradients whether they are asked for or not.
 */
function grouped(
  ops: Ops,
  x: Tensor,
  weight: Tensor,
  { features }: ExpertMatrices,
  offsets: Tensor,
  bias: Tensor | null,
  choices: number,
): Tensor {
  const input = ops.cast(x, weight.width);
  const kernel = weight.width === HALF && !ops.fp16;
  const needsInput = ops.needsGrad(input);
  const trained = ops.needsGrad(weight);
  const out = ops.record(
    ops.perToken(choices * features, weight.width),
    [input, weight],
    [
      trained || !kernel ? input.storage : null,
      needsInput || !kernel ? weight.storage : null,
      offsets.storage,
    ],
    () => {
      const gradWeight = trained || !kernel ? ops.like(weight) : null;
      return [needsInput || !kernel ? ops.like(input) : null, gradWeight];
    },
  );
  ops.drop(input);
  return bias === null ? out : replaced(ops, out, (t) => ops.inPlaceAddition(t, bias));
}

/** The inner activation: a half gates the other. */
function gatedBy(ops: Ops, both: Tensor, shape: DecoderShape): Tensor {
  const [gate, up] = split(ops, both, [0.5, 0.5]) as [Tensor, Tensor];
  const active = activate(ops, gate, shape.activation);
  ops.drop(gate);
  const product = ops.product(active, up);
  ops.drop(active, up);
  return product;
}

/** gpt_oss: every second feature gates; both halves are clamped, the gate's sigmoid is of a multiple. */
function clampedGate(ops: Ops, both: Tensor): Tensor {
  const gate = replaced(ops, sliced(ops, both, 0.5), (t) => clamped(ops, t));
  const up = replaced(ops, sliced(ops, both, 0.5), (t) => clamped(ops, t));
  const open = replaced(ops, ops.scaled(gate), (t) => ops.sigmoid(t));
  const swish = ops.product(gate, open);
  ops.drop(open);
  const shifted = ops.shifted(up);
  const out = ops.product(shifted, swish);
  ops.drop(shifted, swish, gate, up);
  return out;
}

function clamped(ops: Ops, x: Tensor): Tensor {
  return ops.record(ops.like(x), [x], [x.storage], (grad) => {
    const result = ops.like(grad);
    ops.workspace(2 * x.fixed, 2 * x.per);
    return [result];
  });
}

/** llama4: all tokens are copied for every expert and weighted first; the shared block's output takes the sum. */
function throughAll(ops: Ops, x: Tensor, block: Experts): Tensor {
  const { shape, experts: mixture, inner, outer, shared } = block;
  const { count } = mixture;
  const { logits, weights, experts: chosen } = route(ops, x, block.router);
  ops.drop(chosen);
  const copies = ops.record(ops.perToken(count * shape.hidden, x.width), [x], [], (grad) => [
    ops.tensor(0, x.per, grad.width),
  ]);
  const turned = ops.copy(weights);
  const weighted = replaced(ops, copies, (t) => ops.product(t, turned));
  const both = ops.batched(weighted, inner.weight, 2 * count * mixture.width * ops.tokens);
  const gated = replaced(ops, both, (t) => gatedBy(ops, t, shape));
  const routed = replaced(ops, gated, (t) => ops.batched(t, outer.weight, count * shape.hidden * ops.tokens));
  ops.drop(turned);
  const out = forwardFeed(ops, x, shared!);
  const sum = sumOfParts(ops, routed, count);
  const result = ops.record(ops.view(out, 0, out.per), [out, sum], [], (grad) => [
    ops.view(grad, 0, out.per),
    ops.view(grad, 0, out.per),
  ]);
  ops.drop(out, sum, routed, weighted);
  ops.drop(logits, weights);
  return result;
}
