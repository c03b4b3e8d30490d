import type { Stack } from "../../model/stacks.ts";
import { catcher } from "../checkpoint.ts";
import type { Holdings } from "../holdings.ts";
import { FP32 } from "../ops.ts";
import type { Plan } from "../recipe.ts";
import type { Node, Tensor } from "../tape.ts";
import type { Around } from "./attention.ts";
import { type Block, block, forwardBlock } from "./block.ts";
import { checkpointed } from "./checkpoint.ts";
import { embedded, type InputModules, inputModules, tokensOf } from "./inputs.ts";
import { dropped, replaced } from "./kernels.ts";
import { normalized, type Shop, type StackNormModule, stackNorm } from "./modules.ts";
import type { StackOps } from "./ops.ts";
import { type SharedModules, Surroundings, sharedModules } from "./surrounding.ts";

const INT64 = 8;
/** Layers of a run that are run: the first two and the last two. */
const MOST_RUN = 4;

/** Layers that are alike, those of them that are run, and how many are not. */
export interface BuiltRun {
  readonly window: number | null;
  readonly chunk?: number;
  readonly blocks: readonly Block[];
  readonly between: number;
}

export interface BuiltStack {
  readonly stack: Stack;
  readonly tokens: number;
  readonly input: InputModules;
  readonly runs: readonly BuiltRun[];
  readonly finalNorm: StackNormModule | null;
  readonly shared: SharedModules;
}

/** Where a layer's nodes begin, and how many layers like it follow in its backward. */
export interface Stretch {
  readonly mark: number;
  readonly between: number;
}

/** What outlives a stack's forward. */
export interface Kept {
  readonly sinks: { readonly sink: Node; readonly ended: Tensor }[];
  /** Copies that autocast made in layers that are not run and that only its cache holds. */
  cachedBetween: number;
}

export function buildStack(
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
  const runs = stack.runs.map(({ layers, shared, window, normed, chunk }): BuiltRun => {
    const make = () => block(shop, stack.block, { crosses: stack.crosses, normed });
    from = ops.leaves.length;
    const first = make();
    held.count(from, shared ? 1 : layers);
    const blocks = [first];
    while (blocks.length < Math.min(layers, MOST_RUN)) blocks.push(shared ? first : make());
    return { window, ...(chunk === undefined ? {} : { chunk }), blocks, between: layers - blocks.length };
  });
  return { stack, tokens: tokensOf(stack, textTokens), input, runs, finalNorm, shared: common };
}

/**
 * All layers of one stack, to what it returns; owned by the caller. `after` borrows what each run returned.
 */
export function forwardStack(
  ops: StackOps,
  { stack, tokens, input, runs, finalNorm, shared }: BuiltStack,
  memory: Tensor | null,
  plan: Plan,
  stretches: Stretch[],
  kept: Kept,
  after: ((hidden: Tensor, run: number) => void) | null = null,
): Tensor {
  const sink = plan.adapter !== null && plan.checkpointing ? catcher() : null;
  const { out, names, ended } = embedded(ops, stack, input, tokens, plan.paddingMask ? INT64 : FP32, sink);
  if (sink !== null && ended !== null) kept.sinks.push({ sink, ended });
  const memoryTokens = memory === null ? 0 : memory.per / stack.block.hidden;
  const around = new Surroundings(ops, stack, plan, tokens, memoryTokens, out.width, shared);
  const held: { readonly output: Tensor; readonly times: number }[] = [];
  let hidden = out;
  for (const run of runs) {
    const { window, chunk, blocks, between } = run;
    const own = { ...around.of(window), ...(chunk === undefined ? {} : { chunk }) };
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
    after?.(hidden, runs.indexOf(run));
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
