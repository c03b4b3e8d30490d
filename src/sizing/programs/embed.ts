import type { Leaf, Node, Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";
import { type Norm, norm, normalize } from "./norms.ts";

/** The modules before the first layer. */
export interface Embedding {
  readonly table: Leaf;
  readonly positions: Leaf | null;
  readonly projectIn: Projection | null;
  readonly norm: Norm | null;
}

export function embedding(context: Context): Embedding {
  const { ops, shape, weightWidth, trainBase } = context;
  const made = (rows: number, columns: number) => {
    const table = ops.leaf(rows * columns, weightWidth, trainBase, rows + columns);
    table.isTable = true;
    return table;
  };
  return {
    table: made(shape.vocab, shape.embedWidth),
    positions: shape.positionRows > 0 ? made(shape.positionRows, shape.hidden) : null,
    projectIn:
      shape.embedWidth === shape.hidden
        ? null
        : projection(context, shape.embedWidth, shape.hidden, false, context.feedForward),
    norm: shape.embedNorm ? norm(context, shape.norm, shape.hidden) : null,
  };
}

/**
 * From token ids to the first layer's input. `sink` catches the gradient of the embedding module's output where
 * that was made to need one (adapters under checkpointing); that output is then `ended`, held by its gradient. `named` is what
 * names of the model hold until its layers are through.
 */
export function embed(
  { ops, shape }: Context,
  modules: Embedding,
  sink: Node | null,
): { readonly out: Tensor; readonly ended: Tensor | null; readonly named: readonly Tensor[] } {
  return ops.within("embedding", () => {
    const { table, positions, projectIn } = modules;
    let x = ops.embedding(table, shape.embedWidth, true);
    let ended: Tensor | null = null;
    const inside = shape.embeddingScaledInside ?? false;
    if (shape.multipliers.embedding && inside) x = replaced(ops, x, (t) => ops.scaled(t));
    if (sink !== null) {
      x = { ...x, node: sink };
      ended = ops.alias(x);
    }
    if (shape.multipliers.embedding && !inside) x = replaced(ops, x, (t) => ops.scaled(t));
    if (projectIn !== null) x = replaced(ops, x, (t) => project(ops, t, projectIn));
    const named: Tensor[] = [];
    if (shape.embeddingOutlives) named.push(ops.alias(x));
    if (positions !== null) {
      const p = ops.embedding(positions, shape.hidden, shape.positionsPerSample ?? false);
      x = replaced(ops, x, (t) => ops.addition(t, p));
      if (shape.embeddingOutlives) named.push(p);
      else ops.drop(p);
    }
    const { norm: embedNorm } = modules;
    if (embedNorm !== null) x = replaced(ops, x, (t) => normalize(ops, t, embedNorm));
    if (shape.dropout.embedding) x = replaced(ops, x, (t) => ops.dropout(t));
    return { out: x, ended, named };
  });
}
