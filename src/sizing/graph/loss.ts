import type { Shape } from "../../model/graph-types.ts";
import { elements } from "../../model/graph-weights.ts";
import { FP32 } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import type { GraphOps } from "./ops.ts";

/** The loss that a graph's result is taken to be trained with. */
export type LossKind = "tokens" | "classes" | "squares";

/** A score of each word for every token, a score of each class, or anything else. */
export function lossOf(output: Shape, tokens: number | null): LossKind {
  if (output.length === 1) return "classes";
  return output.length === 2 && tokens !== null && output[0] === tokens ? "tokens" : "squares";
}

/** Bytes a sample of the labels that a loss is fed. */
export function labelBytes(kind: LossKind, output: Shape, width: number): number {
  if (kind === "squares") return elements(output) * width;
  return 8 * (kind === "tokens" ? output[0]! : 1);
}

export function loss(ops: GraphOps, scores: Tensor, kind: LossKind): Tensor {
  if (kind === "tokens") return ops.crossEntropy(scores);
  if (kind === "squares") {
    const raised = ops.raised(scores);
    const labels = ops.autocast && scores.width !== FP32 ? ops.like(raised) : null;
    const out = ops.record(
      ops.tensor(1, 0, raised.width),
      [raised],
      [raised.storage, labels?.storage ?? null],
      () => [ops.like(raised)],
    );
    ops.drop(raised, labels);
    return out;
  }
  const full = ops.cast(scores, FP32);
  const out = ops.classLoss(full);
  ops.drop(full);
  return out;
}
