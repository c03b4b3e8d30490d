import type { Stack, StackModel } from "../../model/stacks.ts";
import { catcher } from "../checkpoint.ts";
import { Envelope } from "../envelope.ts";
import { Holdings } from "../holdings.ts";
import { FP32 } from "../ops.ts";
import { quantiserOf } from "../programs/context.ts";
import type { Plan } from "../recipe.ts";
import type { StepResult } from "../step.ts";
import type { Node, Tensor } from "../tape.ts";
import type { Around } from "./attention.ts";
import { type Block, block, forwardBlock } from "./block.ts";
import { checkpointed } from "./checkpoint.ts";
import { headOf } from "./heads.ts";
import { embedded, fedBytes, type InputModules, inputModules, tokensOf } from "./inputs.ts";
import { dropped, replaced } from "./kernels.ts";
import { normalized, type Shop, type StackNormModule, stackNorm } from "./modules.ts";
import { StackOps } from "./ops.ts";
import { type SharedModules, Surroundings, sharedModules } from "./surrounding.ts";

const INT64 = 8;
/** Layers of a run that are run: the first two and the last two. */
const MOST_RUN = 4;

/** Layers that are alike, those of them that are run, and how many are not. */
export interface BuiltRun {
  readonly window: number | null;
  readonly blocks: readonly Block[];
  readonly between: number;
}

interface BuiltStack {
  readonly stack: Stack;
  readonly tokens: number;
  readonly input: InputModules;
  readonly runs: readonly BuiltRun[];
  readonly finalNorm: StackNormModule | null;
  readonly shared: SharedModules;
}

/** Where a layer's nodes begin, and how many layers like it follow in its backward. */
interface Stretch {
  readonly mark: number;
  readonly between: number;
}

/** What outlives a stack's forward. */
interface Kept {
  readonly sinks: { readonly sink: Node; readonly ended: Tensor }[];
  /** Copies that autocast made in layers that are not run and that only its cache holds. */
  cachedBetween: number;
}

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
  ops.exactRecompute = true;
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
  if (plan.trainBase && !plan.accumulates) ops.shift("gradients", outside * plan.weightWidth, 0);
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
    gradientBytes: held.trainableBytes,
    optimizerBytes: held.optimizerBytes(),
    packed: { params: held.packedParams, bytes: held.packedBytes },
  };
}

function buildStack(
  shop: Shop,
  stack: Stack,
  held: Holdings,
  textTokens: number,
  before: BuiltStack | undefined,
): BuiltStack {
  const { ops } = shop;
  let from = ops.leaves.length;
  const input = inputModules(shop, stack, before?.input.table ?? null);
  const finalNorm = stack.finalNorm === null ? null : stackNorm(shop, stack.finalNorm, stack.block.hidden);
  const common = sharedModules(shop, stack);
  held.count(from, 1);
  const runs = stack.runs.map(({ layers, shared, window, normed }): BuiltRun => {
    const make = () => block(shop, stack.block, { crosses: stack.crosses, normed });
    from = ops.leaves.length;
    const first = make();
    held.count(from, shared ? 1 : layers);
    const blocks = [first];
    while (blocks.length < Math.min(layers, MOST_RUN)) blocks.push(shared ? first : make());
    return { window, blocks, between: layers - blocks.length };
  });
  return { stack, tokens: tokensOf(stack, textTokens), input, runs, finalNorm, shared: common };
}

/** All layers of one stack, to what it returns; owned by the caller. */
function forwardStack(
  ops: StackOps,
  { stack, tokens, input, runs, finalNorm, shared }: BuiltStack,
  memory: Tensor | null,
  plan: Plan,
  stretches: Stretch[],
  kept: Kept,
): Tensor {
  const sink = plan.adapter !== null && plan.checkpointing ? catcher() : null;
  const { out, names, ended } = embedded(ops, stack, input, tokens, plan.paddingMask ? INT64 : FP32, sink);
  if (sink !== null && ended !== null) kept.sinks.push({ sink, ended });
  const memoryTokens = memory === null ? 0 : memory.per / stack.block.hidden;
  const around = new Surroundings(ops, stack, plan, tokens, memoryTokens, out.width, shared);
  const held: { readonly output: Tensor; readonly times: number }[] = [];
  let hidden = out;
  for (const { window, blocks, between } of runs) {
    const own = around.of(window);
    for (let index = 0; index < blocks.length; index++) {
      const live = ops.snapshot();
      const casts = ops.castCount();
      ops.unrun = index === 1 ? between : 0;
      stretches.push({ mark: ops.mark(), between: index === blocks.length - 2 ? between : 0 });
      const next = plan.checkpointing
        ? recomputedLater(ops, hidden, memory, blocks[index]!, own, around, hidden === out)
        : forwardBlock(ops, hidden, memory, blocks[index]!, own);
      // DeBERTa's model returns what each layer did.
      if (stack.block.attention.disentangled !== null)
        held.push({ output: ops.alias(next), times: index === 1 ? between : 0 });
      ops.drop(hidden);
      hidden = next;
      if (index !== 1 || between === 0) continue;
      ops.repeat(live, between);
      kept.cachedBetween += ops.castsHeldByCache(casts) * between;
    }
  }
  if (finalNorm !== null) hidden = replaced(ops, hidden, (t) => normalized(ops, t, finalNorm));
  if (stack.finalDropout) hidden = dropped(ops, hidden);
  ops.dropAll(names);
  for (const { output, times } of held) {
    const { fixed, per, refs } = output.storage;
    if (refs === 1) ops.shift("norms", -fixed * times, -per * times);
    ops.drop(output);
  }
  around.drop();
  return hidden;
}

function recomputedLater(
  ops: StackOps,
  x: Tensor,
  memory: Tensor | null,
  layer: Block,
  own: Around,
  around: Surroundings,
  first: boolean,
): Tensor {
  const others = around.inputs(own);
  const inputs = memory === null ? [x, ...others] : [x, memory, ...others];
  const endsWithSum = layer.shape.placement === "pre";
  const again = first ? around.idBytes() : 0;
  return checkpointed(ops, inputs, around.held(own), endsWithSum, again, (given) => {
    const rest = given.slice(memory === null ? 1 : 2);
    return forwardBlock(
      ops,
      given[0]!,
      memory === null ? null : given[1]!,
      layer,
      around.replaced(own, rest),
    );
  });
}
