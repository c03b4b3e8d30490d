import type {
  BareHead,
  ContrastiveHead,
  PooledHead,
  StackBlock,
  StackModel,
  TokenHead,
  VocabularyHead,
} from "../../model/stacks.ts";
import { FP32 } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { dropped, replaced } from "./kernels.ts";
import { activated, apply, linear, matrix, normalized, parameter, type Shop, stackNorm } from "./modules.ts";
import type { StackOps } from "./ops.ts";
import { type PoolModules, pool, poolModules } from "./pool.ts";

/** A head that was made: from what the stacks returned to the loss, with what the model returns beside it. */
export type HeadProgram = (returned: readonly Tensor[]) => {
  readonly loss: Tensor;
  readonly scores: readonly Tensor[];
};

/** Makes the head's modules and returns its program. */
export function headOf(
  shop: Shop,
  { stacks, head }: StackModel,
  tables: readonly (Leaf | null)[],
): HeadProgram {
  const { block } = stacks.at(-1)!;
  switch (head.kind) {
    case "vocabulary":
      return vocabulary(shop, head, block, tables.at(-1) ?? null);
    case "tokens":
      return tokens(shop, head, block);
    case "pooled":
      return pooled(shop, head, block);
    case "bare":
      return bare(shop, head, block);
    case "contrastive":
      return contrastive(shop, head, stacks[0]!.block, block);
  }
}

function vocabulary(
  shop: Shop,
  head: VocabularyHead,
  { hidden }: StackBlock,
  table: Leaf | null,
): HeadProgram {
  const { ops } = shop;
  const { transform } = head;
  const width = transform?.width ?? hidden;
  const dense = transform === null ? null : linear(shop, hidden, width, transform.bias);
  const norm = transform === null ? null : stackNorm(shop, transform.norm, width);
  const { vocab } = head;
  const weight = head.tied && table !== null ? table : matrix(shop, vocab, width);
  const bias = head.bias ? parameter(shop, vocab) : null;
  if (head.secondBias) parameter(shop, vocab);
  return (outputs) => {
    let x = ops.alias(outputs.at(-1)!);
    if (dense !== null) {
      x = replaced(ops, x, (t) => apply(ops, t, dense));
      x = replaced(ops, x, (t) => activated(ops, t, transform!.activation));
      x = replaced(ops, x, (t) => normalized(ops, t, norm!));
    }
    if (head.scaled) x = replaced(ops, x, (t) => ops.scaled(t));
    let scores = replaced(ops, x, (t) => ops.linear(t, weight, bias, vocab));
    if (head.added) scores = replaced(ops, scores, (t) => plusBuffer(ops, t, shop.weightWidth));
    const handed = head.upcast ? ops.cast(scores, FP32) : ops.alias(scores);
    const loss = ops.classLoss(handed);
    ops.drop(handed);
    return { loss, scores: [scores] };
  };
}

/** A sum with a buffer of the weights' dtype. */
function plusBuffer(ops: StackOps, x: Tensor, width: number): Tensor {
  return ops.widened(x, Math.max(x.width, width));
}

function tokens(shop: Shop, head: TokenHead, { hidden, activation }: StackBlock): HeadProgram {
  const { ops } = shop;
  const dense = head.dense ? linear(shop, hidden, hidden, true) : null;
  const scorer = linear(shop, hidden, head.classes, true);
  return (outputs) => {
    let x = ops.alias(outputs.at(-1)!);
    if (head.dropout) x = dropped(ops, x);
    if (dense !== null) {
      x = replaced(ops, x, (t) => apply(ops, t, dense));
      x = replaced(ops, x, (t) => activated(ops, t, activation));
    }
    const scores = replaced(ops, x, (t) => apply(ops, t, scorer));
    const loss = head.loss === "binary" ? ops.binaryLoss(scores) : ops.classLoss(scores);
    return { loss, scores: [scores] };
  };
}

function pooled(shop: Shop, head: PooledHead, { hidden }: StackBlock): HeadProgram {
  const { ops } = shop;
  const { dense } = head;
  const inputs = head.pool === "first-and-mean" ? 2 * hidden : hidden;
  const layer = dense === null ? null : linear(shop, inputs, dense.width, dense.bias);
  const norm = dense?.norm ? stackNorm(shop, dense.norm, dense.width) : null;
  const scorer = linear(shop, dense?.width ?? inputs, head.classes, true, head.adapted);
  return (outputs) => {
    let x = pooledRows(ops, outputs.at(-1)!, hidden, head.pool);
    if (head.dropoutBefore) x = dropped(ops, x);
    if (layer !== null) {
      x = replaced(ops, x, (t) => apply(ops, t, layer));
      x = replaced(ops, x, (t) => ops.tanh(t));
      if (norm !== null) x = replaced(ops, x, (t) => normalized(ops, t, norm));
    }
    if (head.dropout) x = dropped(ops, x);
    const scores = replaced(ops, x, (t) => apply(ops, t, scorer));
    return { loss: ops.classLoss(scores), scores: [scores] };
  };
}

/** One row of each sample of what a stack returned. */
function pooledRows(ops: StackOps, x: Tensor, hidden: number, how: PooledHead["pool"]): Tensor {
  switch (how) {
    case "first":
    case "last":
      return ops.picked(x, hidden);
    case "masked-mean": {
      const masked = ops.product(x, ops.fed(x.per / hidden, 1));
      const sum = ops.rowSum(masked, hidden);
      ops.drop(masked);
      return replaced(ops, sum, (t) => ops.scaled(t));
    }
    case "first-and-mean": {
      const first = ops.picked(x, hidden);
      const rest = ops.picked(x, x.per - hidden);
      const mean = replaced(ops, rest, (t) => ops.rowSum(t, hidden));
      const both = ops.record(ops.tensor(0, 2 * hidden, x.width), [first, mean], [], (grad) => [
        ops.view(grad, 0, hidden),
        ops.view(grad, 0, hidden),
      ]);
      ops.drop(first, mean);
      return both;
    }
  }
}

function bare(shop: Shop, head: BareHead, { hidden }: StackBlock): HeadProgram {
  const { ops } = shop;
  const pooler = head.pooler === null ? null : linear(shop, hidden, head.pooler.width, true);
  return (outputs) => {
    const x = outputs.at(-1)!;
    let pooledOut: Tensor | null = null;
    if (pooler !== null || head.returnsFirst) {
      pooledOut = ops.picked(x, hidden);
      if (pooler !== null) {
        pooledOut = replaced(ops, pooledOut, (t) => apply(ops, t, pooler));
        pooledOut = replaced(ops, pooledOut, (t) => ops.tanh(t));
      }
    }
    let loss = ops.mean(x);
    if (pooledOut !== null) {
      const other = ops.mean(pooledOut);
      loss = replaced(ops, loss, (t) => ops.addition(t, other));
      ops.drop(other);
    }
    return { loss, scores: pooledOut === null ? [] : [pooledOut] };
  };
}

function contrastive(shop: Shop, head: ContrastiveHead, image: StackBlock, text: StackBlock): HeadProgram {
  const { ops } = shop;
  const made: PoolModules = poolModules(shop, head, text, image);
  for (let i = 0; i < head.scalars; i++) parameter(shop, 1);
  return ([images, texts]) => {
    const words = replaced(ops, ops.picked(texts!, text.hidden), (t) => apply(ops, t, made.text));
    const pictures = pool(ops, images!, image, made);
    const loss = ops.record(ops.tensor(1, 0, words.width), [words, pictures], [], () => [
      ops.like(words),
      ops.like(pictures),
    ]);
    return { loss, scores: [words, pictures] };
  };
}
