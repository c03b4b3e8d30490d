import type { Storage, Value } from "./memory.ts";

/** A value with where its gradient goes; null = it needs none. */
export interface Tensor extends Value {
  readonly node: Node | Leaf | null;
  readonly slot: number;
}

/**
 * A parameter, an operand like any tensor; `fixed` is how many elements it has. Its weights are counted once for the
 * model and not in its storage. Here live its gradient and its cast.
 */
export interface Leaf extends Tensor {
  readonly leaf: true;
  readonly trainable: boolean;
  /** Elements of the row and column means of a matrix, for an optimizer that keeps these; of a vector its own. */
  readonly factored: number;
  /** Bytes of a quantised matrix with its scales; 0 = it is held as its dtype says. */
  packedBytes: number;
  /** An embedding's table, whose optimizer state Trainer keeps in fp32. */
  isTable: boolean;
  /** Gradients still to come in this step. */
  uses: number;
  arrived: Value | null;
  grad: Storage | null;
  cast: Tensor | null;
}

/**
 * Gradients of a node's inputs from those of its outputs, the first of which is `grad`. The list and the values in
 * it are then the caller's; a gradient that is passed on for good is taken out of `grads`.
 */
export type Backward = (grad: Value, grads: (Value | null)[]) => (Value | null)[];

export interface Node {
  readonly leaf: false;
  /** The inputs; those without a node get no gradient. */
  readonly edges: readonly (Tensor | null)[];
  readonly saved: readonly (Storage | null)[];
  readonly run: Backward;
  readonly grads: (Value | null)[];
  reached: boolean;
  /** Made by a recomputation: what it saved is handed out once and dies before its gradients are cast. */
  readonly again?: boolean;
}
