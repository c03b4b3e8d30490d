import type { StackModel } from "../../model/stacks.ts";
import { Envelope } from "../envelope.ts";
import { Holdings } from "../holdings.ts";
import { FP32 } from "../ops.ts";
import { quantiserOf } from "../programs/context.ts";
import type { Plan } from "../recipe.ts";
import type { StepResult } from "../step.ts";
import type { Tensor } from "../tape.ts";
import { headOf } from "./heads.ts";
import { bufferBytes, fedBytes } from "./inputs.ts";
import type { Shop } from "./modules.ts";
import { StackOps } from "./ops.ts";
import { type BuiltStack, buildStack, forwardStack, type Kept, type Stretch } from "./run.ts";

const INT64 = 8;

/**
 * One training step of a model of stacks, as transformers 5's Trainer runs it: forward, loss, backward, clipping,
 * optimizer step. Pure. `params` are all of the model's, those that no stack has being weights like the rest; null =
 * those of the stacks alone.
 */
export function stackStep(
  model: StackModel,
  plan: Plan,
  textTokens: number,
  params: number | null,
  single = false,
): StepResult {
  const envelope = new Envelope();
  const ops = new StackOps(envelope, textTokens, plan.autocast, single);
  ops.fp16 = plan.fp16;
  ops.gradientCards = plan.gradientCards;
  const shop: Shop = {
    ops,
    weightWidth: plan.weightWidth,
    trainBase: plan.trainBase,
    quantiser: quantiserOf(plan),
    adapter: plan.adapter,
    everywhere: plan.adaptFeedForward,
  };
  const held = new Holdings(ops, plan);
  const built: BuiltStack[] = [];
  for (const stack of model.stacks) built.push(buildStack(shop, stack, held, textTokens, built.at(-1)));
  const from = ops.leaves.length;
  const head = headOf(
    shop,
    model,
    built.map(({ input }) => input.table),
  );
  held.count(from, 1);
  const own = plan.trainBase ? held.params : held.params - held.trainable;
  const outside = params === null ? 0 : params - own;
  held.countOutside(outside);
  held.account();
  let fed = model.limits.lengthless ? INT64 : textTokens * INT64;
  if (plan.paddingMask && !model.limits.lengthless) fed += textTokens * INT64;
  for (const { stack, tokens } of built) fed += stack.crosses ? 0 : fedBytes(stack, tokens, plan.weightWidth);
  ops.shift("inputs", 0, fed);
  for (const { stack } of built) ops.shift("weights", bufferBytes(stack, plan.weightWidth), 0);

  ops.phase = "forward";
  const begin = ops.mark();
  const stretches: Stretch[] = [];
  const kept: Kept = { sinks: [], cachedBetween: 0 };
  const outputs: Tensor[] = [];
  for (const one of built) {
    const memory = one.stack.crosses ? outputs.at(-1)! : null;
    outputs.push(forwardStack(ops, one, memory, plan, stretches, kept));
  }
  const tail = ops.mark();
  ops.phase = "end-of-forward";
  const { loss, scores } = ops.within("head", () => head(outputs));
  ops.endAutocast();
  if (kept.cachedBetween > 0) ops.shift("casts", -kept.cachedBetween, 0);
  // What the last stack returned is a name of the forward; an encoder's output is returned too, as both towers' are.
  if (model.head.kind !== "contrastive") ops.drop(outputs.pop()!);
  // Under autocast accelerate hands all of it on in fp32; Trainer drops it before backward.
  const returned = [...scores, ...outputs];
  const handed = ops.within("head", () =>
    returned.map((t) => (plan.autocast ? ops.cast(t, FP32) : ops.alias(t))),
  );
  ops.dropAll(returned);
  ops.dropAll(handed);
  ops.cacheEnded();

  ops.phase = "loss";
  ops.seed(loss, ops.tensor(1, 0, loss.width));
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
  for (const { sink, ended } of kept.sinks) ops.drop(sink.grads[0] ?? null, ended);
  ops.graphDies();

  // Clipping works in place.
  ops.phase = "optimizer-step";
  if (plan.trainBase && !plan.accumulates)
    ops.shift("gradients", (outside * plan.weightWidth) / plan.gradientCards, 0);
  ops.shift("backward", held.updateBytes(), 0);
  const byKind = ops.snapshot();
  ops.offer();
  // Images and sound weigh so much that they tell beside the state; token ids do not.
  const per = model.stacks.every(({ input }) => input.kind === "text") ? 0 : ops.per;
  for (let i = 1; i < byKind.length; i += 2) if (per === 0) byKind[i] = 0;
  return {
    peaks: envelope.hull(),
    optimizerStep: { fixed: ops.fixed, per, phase: ops.phase, byKind },
    params: held.params,
    trainable: held.trainable,
    weightBytes: held.weightBytes,
    gradientBytes: held.gradientBytes,
    optimizerBytes: held.optimizerBytes(),
    packed: { params: held.packedParams, bytes: held.packedBytes },
  };
}
