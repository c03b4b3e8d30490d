import type { Tower } from "../model/tower-types.ts";
import type { DecoderShape } from "../model/types.ts";
import { catcher } from "./checkpoint.ts";
import { Envelope, type Peak } from "./envelope.ts";
import { Holdings } from "./holdings.ts";
import { forwardLayers, runsOf, towers } from "./layers.ts";
import { rounded } from "./memory.ts";
import { FP32, Ops } from "./ops.ts";
import { replaced } from "./programs/attention.ts";
import { type Context, project, projection, quantiserOf } from "./programs/context.ts";
import { softCapped } from "./programs/eager.ts";
import { embed, embedding } from "./programs/embed.ts";
import { norm, normalize } from "./programs/norms.ts";
import { Masks, rotaryOf } from "./programs/surroundings.ts";
import type { Plan } from "./recipe.ts";
import type { Kept, Stretch } from "./stacks/run.ts";
import type { Leaf, Tensor } from "./tape.ts";

const INT64 = 8;

export interface StepResult {
  /** The lines that are highest at some batch, by rising slope. */
  readonly peaks: readonly Peak[];
  /** The optimizer step, which no batch changes. */
  readonly optimizerStep: Peak;
  readonly params: number;
  readonly trainable: number;
  readonly weightBytes: number;
  readonly gradientBytes: number;
  readonly optimizerBytes: number;
  /** Of the weights those that are quantised: elements, and bytes with their scales. */
  readonly packed?: { readonly params: number; readonly bytes: number };
}

/**
 * One training step of a decoder: forward, loss, backward, gradient clipping, optimizer step, as transformers
 * 5's Trainer runs it. Pure; well under a millisecond. `single` says that the batch is one sample.
 */
export function trainingStep(
  shape: DecoderShape,
  plan: Plan,
  tokens: number,
  paramsOutside: number,
  single = false,
  tower: Tower | null = null,
): StepResult {
  const envelope = new Envelope();
  const ops =
    tower === null
      ? new Ops(envelope, tokens, plan.autocast, single)
      : towers().towerOps(envelope, tokens, plan.autocast, single);
  ops.fp16 = plan.fp16;
  const special = shape.experts ?? shape.latent ?? shape.delta ?? shape.convolution ?? shape.scan;
  const written = shape.activation === "gelu-function" || shape.activation === "xielu";
  ops.exactRecompute =
    tower !== null ||
    special !== undefined ||
    written ||
    plan.quantised !== null ||
    shape.windows.some(({ differs }) => differs);
  const context: Context = {
    ops,
    shape,
    weightWidth: plan.weightWidth,
    trainBase: plan.trainBase,
    quantiser: quantiserOf(plan),
    attention: plan.adapter,
    feedForward: plan.adaptFeedForward ? plan.adapter : null,
  };
  const held = new Holdings(ops, plan);
  const before = embedding(context);
  held.headFrom = ops.leaves.length;
  const after = headModules(context, before.table);
  held.headTo = ops.leaves.length;
  held.count(0, 1);
  const side = tower === null ? null : towers().builtTower(context, tower, plan, held);
  const runs = runsOf(context, plan, held, tower?.deepstack?.after.length ?? 0);
  const outside = paramsOutside - (side?.params ?? 0);
  held.countOutside(outside);
  held.account();
  const { maskBufferRows: rows = 0 } = shape;
  if (rows > 0) ops.shift("weights", shape.layers * rounded(rows * rows), 0);
  // Token ids and labels, and the mask of a padded batch.
  ops.shift("inputs", 0, (plan.paddingMask ? 3 : 2) * INT64 * tokens + (side?.fedBytes ?? 0));

  ops.phase = "forward";
  const begin = ops.mark();
  const sink = plan.adapter !== null && plan.checkpointing ? catcher() : null;
  const stretches: Stretch[] = [];
  const kept: Kept = { sinks: [], cachedBetween: 0 };
  const { out: words, ended } = embed(context, before, sink);
  const seen = side?.run(words, stretches, kept) ?? null;
  const embedded = seen?.embedded ?? words;
  const told = tower?.masksText ?? false;
  const masks = new Masks(context, plan.implementation, plan.paddingMask || told, embedded, told);
  const rotary = rotaryOf(context, embedded);
  const deep = seen?.deep ?? [];
  const out = forwardLayers(context, plan, runs, embedded, rotary, masks, deep, stretches, kept);
  const tail = ops.mark();
  const hidden = forwardFinal(context, after, out);
  ops.drop(embedded);
  if (seen !== null) ops.dropAll([...seen.names, ...deep]);
  masks.drop();
  if (rotary !== null) ops.drop(rotary.cos, rotary.sin);

  ops.phase = "end-of-forward";
  const loss = lossOf(context, after, hidden, kept.cachedBetween, seen?.returned ?? []);
  seen?.forget();

  ops.phase = "loss";
  // The scaled loss, then the flag of an overflow.
  if (plan.fp16) ops.shift("inputs", rounded(FP32), 0);
  ops.seed(loss, ops.tensor(1, 0, FP32));
  ops.drop(loss);
  ops.backward(tail);
  ops.phase = plan.checkpointing ? "recompute" : "backward";
  for (const { mark, between } of stretches.reverse()) {
    const live = ops.snapshot();
    ops.backward(mark);
    ops.repeat(live, between);
  }
  ops.phase = "end-of-backward";
  ops.backward(begin);
  if (sink !== null) ops.drop(sink.grads[0] ?? null, ended);
  for (const one of kept.sinks) ops.drop(one.sink.grads[0] ?? null, one.ended);
  ops.graphDies();

  // Clipping works in place.
  ops.phase = "optimizer-step";
  // What of a tower is not walked gets no gradient.
  if (plan.trainBase && !plan.accumulates && tower === null)
    ops.shift("gradients", paramsOutside * plan.weightWidth, 0);
  ops.shift("backward", held.updateBytes(), 0);
  const byKind = ops.snapshot();
  ops.offer();
  // Images weigh so much that they tell beside the state; token ids do not.
  const per = tower === null ? 0 : ops.per;
  for (let i = 1; i < byKind.length; i += 2) if (per === 0) byKind[i] = 0;
  return {
    peaks: envelope.hull(),
    optimizerStep: { fixed: ops.fixed, per, phase: ops.phase, byKind },
    params: held.params,
    trainable: held.trainable,
    weightBytes: held.weightBytes,
    gradientBytes: held.trainableBytes,
    optimizerBytes: held.optimizerBytes(),
    packed: { params: held.packedParams, bytes: held.packedBytes },
  };
}

/** The modules after the last layer. */
function headModules(context: Context, table: Leaf) {
  const { ops, shape, weightWidth, trainBase } = context;
  const made = (count: number, factored = count) => ops.leaf(count, weightWidth, trainBase, factored);
  return {
    norm: shape.finalNorm ? norm(context, shape.norm, shape.hidden) : null,
    projectOut:
      shape.embedWidth === shape.hidden
        ? null
        : projection(context, shape.hidden, shape.embedWidth, false, context.feedForward),
    head: shape.tiedHead ? table : made(shape.vocab * shape.embedWidth, shape.vocab + shape.embedWidth),
    bias: shape.bias.head ? made(shape.vocab) : null,
  };
}
type HeadModules = ReturnType<typeof headModules>;

function forwardFinal(
  { ops, shape, weightWidth }: Context,
  { norm: final, projectOut }: HeadModules,
  out: Tensor,
): Tensor {
  let normed =
    final === null ? out : replaced(ops, out, (t) => ops.within("norms", () => normalize(ops, t, final)));
  // The head is handed what has the weights' own dtype.
  if (shape.residualFull) normed = replaced(ops, normed, (t) => ops.cast(t, weightWidth));
  if (projectOut === null) return normed;
  return replaced(ops, normed, (t) => ops.within("head", () => project(ops, t, projectOut)));
}

/** Head and loss, to the end of the model's forward: autocast ends and its copies die unless backward needs them. */
function lossOf(
  { ops, shape }: Context,
  { head, bias }: HeadModules,
  hidden: Tensor,
  cachedBetween: number,
  returned: readonly Tensor[],
): Tensor {
  return ops.within("head", () => {
    let logits = ops.linear(hidden, head, bias, shape.vocab);
    if (shape.multipliers.logits) logits = replaced(ops, logits, (t) => ops.scaled(t));
    if (shape.softcap.logits) logits = softCapped(ops, logits);
    const loss = ops.crossEntropy(logits);
    ops.drop(hidden);
    const autocast = ops.autocast;
    ops.endAutocast();
    if (cachedBetween > 0) ops.shift("casts", -cachedBetween, 0);
    // Under autocast accelerate hands the outputs on in fp32; Trainer drops them before backward.
    const all = [logits, ...returned];
    const handed = all.map((t) => (autocast ? ops.cast(t, FP32) : ops.alias(t)));
    ops.dropAll(handed);
    ops.dropAll(all);
    return loss;
  });
}
