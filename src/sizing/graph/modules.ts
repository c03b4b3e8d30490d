import type { GraphLayer, GraphModel, Shape } from "../../model/graph-types.ts";
import { elements } from "../../model/graph-weights.ts";
import { rounded } from "../memory.ts";
import type { Plan } from "../recipe.ts";
import type { Leaf } from "../tape.ts";
import type { GraphOps } from "./ops.ts";

/** The parameters of each layer, one leaf a tensor. */
export type Leaves = readonly (readonly Leaf[])[];

/** Makes the parameters of a graph, those of modules that are called again and of a tied output layer once. */
export function leavesOf(ops: GraphOps, { layers, tied }: GraphModel, plan: Plan): Leaves {
  const made: (readonly Leaf[])[] = [];
  const leaf = (shape: Shape) => {
    const count = elements(shape);
    // Optimizers that factor see a matrix or more as rows and columns of its last two dimensions.
    const [rows, columns] = shape.slice(-2);
    const means = columns === undefined ? count : (count / (rows! * columns)) * (rows! + columns);
    return ops.leaf(count, plan.weightWidth, plan.trainBase, means);
  };
  layers.forEach(({ weights, sharedWith }, place) => {
    if (sharedWith !== null) made.push(made[sharedWith]!);
    else if (tied?.head === place) made.push([made[tied.table]![0]!, ...weights.slice(1).map(leaf)]);
    else made.push(weights.map(leaf));
  });
  return made;
}

/** Bytes of buffers: a batch norm's running mean and variance as wide as its weights, and a count of batches. */
export function bufferBytes(layers: readonly GraphLayer[], width: number): number {
  let bytes = 0;
  for (const { kind, weights, sharedWith } of layers) {
    if (kind !== "batch-norm" || sharedWith !== null || weights.length === 0) continue;
    bytes += 2 * rounded(elements(weights[0]!) * width) + rounded(8);
  }
  return bytes;
}
