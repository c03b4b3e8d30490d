import type { Tower } from "../model/tower-types.ts";
import type { DecoderShape } from "../model/types.ts";
import { catcher } from "./checkpoint.ts";
import { Envelope, type Peak } from "./envelope.ts";
import type { Gathering } from "./gathered.ts";
import { forwardFinal, headModules, lossOf } from "./head.ts";
import { Holdings } from "./holdings.ts";
import { forwardLayers, runsOf, towers } from "./layers.ts";
import { rounded } from "./memory.ts";
import { FP32, Ops } from "./ops.ts";
import { type Context, quantiserOf } from "./programs/context.ts";
import { embed, embedding } from "./programs/embed.ts";
import { Masks, rotaryOf } from "./programs/surroundings.ts";
import type { Plan } from "./recipe.ts";
import type { Kept, Stretch } from "./stacks/run.ts";
import type { Leaf } from "./tape.ts";

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
  ops.gradientCards = plan.gradientCards;
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
  const { scorer, scorerBias } = after;
  // A classifier is counted outside the decoder, and walked with it.
  const outside = paramsOutside - (side?.params ?? 0) - (scorer?.fixed ?? 0) - (scorerBias?.fixed ?? 0);
  held.countOutside(outside);
  held.account();
  const { maskBufferRows: rows = 0 } = shape;
  if (rows > 0) ops.shift("weights", (shape.maskBufferShared ? 1 : shape.layers) * rounded(rows * rows), 0);
  // Token ids and labels, and the mask of a padded batch.
  ops.shift("inputs", 0, (plan.paddingMask ? 3 : 2) * INT64 * tokens + (side?.fedBytes ?? 0));

  const gathering = plan.offloaded ? gatheringOf(ops, plan, shape, held, before.table) : null;

  ops.phase = "forward";
  gathering?.beginForward();
  const begin = ops.mark();
  const sink = plan.adapter !== null && plan.checkpointing ? catcher() : null;
  const stretches: Stretch[] = [];
  const kept: Kept = { sinks: [], cachedBetween: 0 };
  const { out: words, ended, named } = embed(context, before, sink);
  gathering?.embedded();
  const seen = side?.run(words, stretches, kept) ?? null;
  const embedded = seen?.embedded ?? words;
  const told = tower?.masksText ?? false;
  const masks = new Masks(context, plan.implementation, plan.paddingMask || told, embedded, told);
  const rotary = rotaryOf(context, embedded);
  const deep = seen?.deep ?? [];
  const out = forwardLayers(
    context,
    plan,
    runs,
    embedded,
    { rotary, masks, gathering, deep },
    stretches,
    kept,
  );
  // Under peft accelerate does not find the last norm, so the head is gathered after it.
  if (plan.adapter === null) gathering?.enterHead();
  const tail = ops.mark();
  const hidden = forwardFinal(context, after, out);
  gathering?.enterHead();
  ops.drop(embedded);
  ops.dropAll(named);
  if (seen !== null) ops.dropAll([...seen.names, ...deep]);
  masks.drop();
  if (rotary !== null) ops.drop(rotary.cos, rotary.sin);

  ops.phase = "end-of-forward";
  const { loss, scored } = lossOf(context, after, hidden, {
    cachedBetween: kept.cachedBetween,
    fused: plan.fusedLoss,
    returned: seen?.returned ?? [],
  });
  seen?.forget();
  gathering?.endForward();

  ops.phase = "loss";
  // The scaled loss, then the flag of an overflow.
  if (plan.fp16) ops.shift("inputs", rounded(FP32), 0);
  ops.seed(loss, ops.tensor(1, 0, FP32));
  ops.drop(loss);
  ops.backward(scored);
  gathering?.beginBackward();
  ops.backward(tail);
  gathering?.leaveHead();
  ops.phase = plan.checkpointing ? "recompute" : "backward";
  for (const { mark, between } of stretches.reverse()) {
    const live = ops.snapshot();
    gathering?.enterBackward();
    ops.backward(mark);
    gathering?.leaveBackward();
    ops.repeat(gathering?.level(live) ?? live, between);
  }
  ops.phase = "end-of-backward";
  gathering?.enterEmbedding();
  ops.backward(begin);
  if (sink !== null) ops.drop(sink.grads[0] ?? null, ended);
  for (const one of kept.sinks) ops.drop(one.sink.grads[0] ?? null, one.ended);
  ops.graphDies();

  gathering?.endBackward();

  // Clipping works in place.
  ops.phase = "optimizer-step";
  // What of a tower is not walked gets no gradient.
  if (plan.trainBase && !plan.accumulates && !plan.offloaded && tower === null)
    ops.shift("gradients", (outside * plan.weightWidth) / plan.gradientCards, 0);
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
    weightBytes: plan.offloaded ? 0 : held.weightBytes,
    gradientBytes: plan.offloaded ? 0 : held.gradientBytes,
    optimizerBytes: held.optimizerBytes(),
    packed: { params: held.packedParams, bytes: held.packedBytes },
  };
}

function gatheringOf(ops: Ops, plan: Plan, shape: DecoderShape, held: Holdings, table: Leaf): Gathering {
  const before = ops.leaves.slice(0, held.headFrom);
  const { Gathering: Gathered } = require("./unusual.ts") as typeof import("./unusual.ts");
  return new Gathered(ops, plan, {
    tied: shape.tiedHead && shape.scores === undefined,
    table: [table],
    head: ops.leaves.slice(held.headFrom, held.headTo),
    rest: before.filter((leaf) => leaf !== table),
  });
}
