import type { Tower } from "../../model/tower-types.ts";
import type { Envelope } from "../envelope.ts";
import type { Holdings } from "../holdings.ts";
import type { Context } from "../programs/context.ts";
import type { Plan } from "../recipe.ts";
import { fedBytes } from "../stacks/inputs.ts";
import { replaced } from "../stacks/kernels.ts";
import type { Shop } from "../stacks/modules.ts";
import { StackOps } from "../stacks/ops.ts";
import { buildStack, forwardStack, type Kept, type Stretch } from "../stacks/run.ts";
import type { Tensor } from "../tape.ts";
import { mergerOf, projectorOf } from "./projectors.ts";

/** A decoder's operators where a tower runs too, whose tokens are not the decoder's. */
export function towerOps(envelope: Envelope, tokens: number, autocast: boolean, single: boolean): StackOps {
  return new StackOps(envelope, tokens, autocast, single);
}

/** What an image becomes beside the tokens. */
export interface Seen {
  /** The decoder's input. */
  readonly embedded: Tensor;
  /** Names of the model's forward: let go when it returns. */
  readonly names: readonly Tensor[];
  /** What the model returns beside the logits. */
  readonly returned: readonly Tensor[];
  /** Features for the outputs of the decoder's first layers. */
  readonly deep: readonly Tensor[];
  /** Lets go what only the returned tensors led to. */
  readonly forget: () => void;
}

/** A tower with its modules, whose parameters are counted. */
export interface BuiltTower {
  readonly params: number;
  /** Bytes a sample of what the model is fed beside token ids. */
  readonly fedBytes: number;
  readonly run: (embedded: Tensor, stretches: Stretch[], kept: Kept) => Seen;
}

export function builtTower(context: Context, tower: Tower, plan: Plan, held: Holdings): BuiltTower {
  const ops = context.ops as StackOps;
  const { weightWidth, trainBase, quantiser } = context;
  const { adapter, adaptFeedForward } = plan;
  const shop: Shop = { ops, weightWidth, trainBase, quantiser, adapter, everywhere: adaptFeedForward };
  const before = { all: held.params, trained: held.trainable };
  const stack = buildStack(shop, tower.stack, held, ops.tokens, undefined);
  const from = ops.leaves.length;
  const { deepstack } = tower;
  const mergers = deepstack === null ? [] : deepstack.after.map(() => mergerOf(shop, deepstack.merger));
  const projector = projectorOf(shop, tower, context.shape.hidden);
  held.count(from, 1);
  const made = held.params - before.all - (trainBase ? 0 : held.trainable - before.trained);

  const run = (embedded: Tensor, stretches: Stretch[], kept: Kept): Seen => {
    const { single } = ops;
    if (tower.stack.block.attention.rotary === "packed") ops.single = true;
    const deep: Tensor[] = [];
    const features: Tensor[] = [];
    let unusedFrom: number | null = null;
    const last = forwardStack(ops, stack, null, plan, stretches, kept, (hidden, index) => {
      const at = deepstack?.after.indexOf(index) ?? -1;
      if (at >= 0) deep.push(ops.within("embedding", () => mergers[at]!([hidden])));
      if (tower.taken?.includes(index)) {
        features.push(ops.alias(hidden));
        unusedFrom = ops.mark();
      }
    });
    ops.single = single;
    const unused: readonly [number, number] | null =
      unusedFrom === null || ops.mark() === unusedFrom ? null : [unusedFrom, ops.mark()];
    return ops.within("embedding", () => {
      const taken = features.length === 0 ? [last] : features;
      const pooled = projector(taken);
      // Features of all samples in one, in the embedding's dtype; then they take the place of their tokens.
      const whole = ["pooled", "linear", "adapter"].includes(tower.projector.kind)
        ? ops.alias(pooled)
        : ops.copy(pooled);
      const cast = replaced(ops, whole, (t) => ops.cast(t, embedded.width));
      const mask = ops.tensor(0, ops.tokens, 1);
      const out = ops.record(ops.like(embedded), [embedded, cast], [mask.storage], (grad) => [
        ops.like(grad),
        ops.tensor(0, cast.per, grad.width),
      ]);
      ops.drop(embedded);
      return {
        embedded: out,
        names: [cast, mask],
        returned: [last, pooled, ...features, ...deep],
        deep: deep.map((t) => ops.copy(t)),
        forget: () => {
          if (unused !== null) ops.forget(...unused);
        },
      };
    });
  };
  return {
    params: made,
    fedBytes: fedBytes(tower.stack, stack.tokens, weightWidth) + tower.tokenBytes * ops.tokens,
    run,
  };
}

/** A decoder layer's output with features added at the image's tokens: a copy that is written into. */
export function injected(ops: StackOps, hidden: Tensor, features: Tensor): Tensor {
  return ops.within("residual", () => {
    const copied = ops.copy(hidden);
    const added = ops.cast(features, hidden.width);
    const rows = ops.record(ops.like(added, hidden.width), [copied], [], (grad) => [
      ops.like(copied, grad.width),
    ]);
    const local = ops.addition(rows, added);
    ops.drop(rows, added);
    const node = ops.node([copied, local], [], (grad) => [
      ops.like(grad),
      ops.tensor(0, local.per, grad.width),
    ]);
    const out = ops.outcome(node, ops.view(copied, copied.fixed, copied.per));
    ops.drop(copied, local);
    return out;
  });
}
