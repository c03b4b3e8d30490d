import type { DecoderShape } from "../model/types.ts";
import { catcher, checkpointedLayer } from "./checkpoint.ts";
import { Envelope, type Peak } from "./envelope.ts";
import { Holdings } from "./holdings.ts";
import { rounded } from "./memory.ts";
import { FP32, Ops } from "./ops.ts";
import { replaced } from "./programs/attention.ts";
import { type Context, project, projection, quantiserOf } from "./programs/context.ts";
import { softCapped } from "./programs/eager.ts";
import { embed, embedding } from "./programs/embed.ts";
import { forwardLayer } from "./programs/layer.ts";
import { norm, normalize } from "./programs/norms.ts";
import { Masks, rotaryOf, type Surroundings } from "./programs/surroundings.ts";
import type { Plan } from "./recipe.ts";
import { type Run, runsOf } from "./runs.ts";
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

/** Where a layer's nodes begin, and how many layers like it follow in its backward. */
interface Stretch {
  readonly mark: number;
  readonly between: number;
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
): StepResult {
  const envelope = new Envelope();
  const ops = new Ops(envelope, tokens, plan.autocast, single);
  ops.fp16 = plan.fp16;
  const special = shape.experts ?? shape.latent ?? shape.delta ?? shape.convolution;
  const written = shape.activation === "gelu-function" || shape.activation === "xielu";
  ops.exactRecompute =
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
  const runs = runsOf(context, plan, held);
  held.countOutside(paramsOutside);
  held.account();
  const { maskBufferRows: rows = 0 } = shape;
  if (rows > 0) ops.shift("weights", shape.layers * rounded(rows * rows), 0);
  // Token ids and labels, and the mask of a padded batch.
  ops.shift("inputs", 0, (plan.paddingMask ? 3 : 2) * INT64 * tokens);

  ops.phase = "forward";
  const begin = ops.mark();
  const sink = plan.adapter !== null && plan.checkpointing ? catcher() : null;
  const { out: embedded, ended } = embed(context, before, sink);
  const masks = new Masks(context, plan.implementation, plan.paddingMask, embedded);
  const rotary = rotaryOf(context, embedded);
  const { out, stretches, cachedBetween } = forwardLayers(context, plan, runs, embedded, rotary, masks);
  const tail = ops.mark();
  const hidden = forwardFinal(context, after, out);
  ops.drop(embedded);
  masks.drop();
  if (rotary !== null) ops.drop(rotary.cos, rotary.sin);

  ops.phase = "end-of-forward";
  const loss = lossOf(context, after, hidden, cachedBetween);

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
  ops.graphDies();

  // Clipping works in place.
  ops.phase = "optimizer-step";
  if (plan.trainBase && !plan.accumulates) ops.shift("gradients", paramsOutside * plan.weightWidth, 0);
  ops.shift("backward", held.updateBytes(), 0);
  const byKind = ops.snapshot();
  for (let i = 1; i < byKind.length; i += 2) byKind[i] = 0;
  ops.offer();
  return {
    peaks: envelope.hull(),
    optimizerStep: { fixed: ops.fixed, per: 0, phase: ops.phase, byKind },
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

/** All layers; `embedded` is borrowed, since the model's own name for it lives on. */
function forwardLayers(
  { ops, shape }: Context,
  plan: Plan,
  runs: readonly Run[],
  embedded: Tensor,
  rotary: Surroundings["rotary"],
  masks: Masks,
): { readonly out: Tensor; readonly stretches: Stretch[]; readonly cachedBetween: number } {
  const stretches: Stretch[] = [];
  let cachedBetween = 0;
  let hidden = ops.alias(embedded);
  for (const { window, between, layers, pattern } of runs) {
    const around: Surroundings = { rotary, ...masks.of(window) };
    for (let index = 0; index < layers.length; index++) {
      const one = layers[index]!;
      const live = ops.snapshot();
      const casts = ops.castCount();
      stretches.push({ mark: ops.mark(), between: index === layers.length - 1 ? between : 0 });
      const next = plan.checkpointing
        ? checkpointedLayer(ops, hidden, one, around)
        : forwardLayer(ops, hidden, one, around);
      const excluded = ops.endLayer(shape.callsKernelDirectly ?? shape.probabilitiesOutlive ?? false);
      ops.drop(hidden);
      // An input that only the embedding's name keeps alive would have died in a later layer.
      if (hidden.storage === embedded.storage && hidden.storage.refs === 1) excluded.push(next.storage);
      hidden = next;
      if (index !== pattern || between === 0) continue;
      ops.repeat(live, between, excluded);
      cachedBetween += ops.castsHeldByCache(casts) * between;
    }
  }
  ops.endLayer(false);
  return { out: hidden, stretches, cachedBetween };
}

function forwardFinal({ ops }: Context, { norm: final, projectOut }: HeadModules, out: Tensor): Tensor {
  const normed =
    final === null ? out : replaced(ops, out, (t) => ops.within("norms", () => normalize(ops, t, final)));
  if (projectOut === null) return normed;
  return replaced(ops, normed, (t) => ops.within("head", () => project(ops, t, projectOut)));
}

/** Head and loss, to the end of the model's forward: autocast ends and its copies die unless backward needs them. */
function lossOf(
  { ops, shape }: Context,
  { head, bias }: HeadModules,
  hidden: Tensor,
  cachedBetween: number,
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
    ops.drop(autocast ? ops.cast(logits, FP32) : ops.alias(logits), logits);
    return loss;
  });
}
