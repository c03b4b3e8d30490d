/**
 * A symbolic memory tape: one training step replayed as PyTorch runs it, with sizes in place of tensors.
 *
 * How it works. A model's layer is a short program of operators (`programs/`). Running an operator allocates its
 * result here and, when a gradient is needed, leaves a node behind that holds what autograd saves for it. Every
 * size is a line in the batch, `fixed + perSample * samples`, so one run answers for all batches. Storages are
 * counted by reference: an operator's result dies when the program lets it go (as a Python name does) and no
 * node holds it. `backward` runs the nodes in reverse order of creation, as PyTorch's engine does on one device:
 * the node computes gradients while its incoming gradient and its saved tensors live, gradients are then reduced
 * to the shape and dtype of what they belong to, then what was saved is let go, and gradients that meet are
 * added into a new tensor. Parameters are leaves: their first gradient is kept as it is.
 *
 * Layers of one kind are alike, so only the first and the last of them run, and the effect of one is added for
 * those between (`repeat`); of a model with a frozen embedding also the second, as its first layer keeps less. A local maximum of a layer between two others is a line between theirs, so
 * the largest is at one of the ends and nothing is lost.
 *
 * At every local maximum the live bytes are offered to the `Envelope`, which keeps those that are highest for
 * some batch. Nothing here knows a model, and no size here was fitted.
 *
 * Sources: torch/csrc/autograd (engine.cpp, functions/accumulate_grad.h, derivatives.yaml) for what is saved and
 * when it dies; torch/utils/checkpoint.py for the early end of a recomputation.
 */
import { type Kind, Memory, type Storage, type Value } from "./memory.ts";

/** A value with where its gradient goes; null = it needs none. */
export interface Tensor extends Value {
  readonly node: Node | Leaf | null;
  readonly slot: number;
}

/** A parameter. Its weights are counted once for the model; here live its gradient and its cast. */
export interface Leaf {
  readonly leaf: true;
  readonly count: number;
  readonly width: number;
  readonly trainable: boolean;
  /** Gradients still to come in this step. */
  uses: number;
  arrived: Value | null;
  grad: Storage | null;
  cast: Tensor | null;
}

interface Edge {
  readonly to: Node | Leaf;
  readonly slot: number;
  readonly fixed: number;
  readonly per: number;
  readonly width: number;
}

/**
 * Gradients of a node's inputs from those of its outputs; the values returned are owned by the caller. One that
 * it passes on for good it takes out of `grads`.
 */
export type Backward = (grads: (Value | null)[]) => readonly (Value | null)[];

export interface Node {
  readonly leaf: false;
  readonly edges: readonly (Edge | null)[];
  readonly saved: Storage[];
  readonly run: Backward;
  readonly grads: (Value | null)[];
  reached: boolean;
}

/** Device memory with autograd. */
export class Tape extends Memory {
  /** Under checkpointing a layer's forward keeps nothing for backward. */
  recording = true;
  private nodes: Node[] = [];
  /** Tensors saved so far, and after how many a recomputation ends; storages beyond it are never made. */
  private saves = 0;
  private endAfter = Number.POSITIVE_INFINITY;

  /** Parameters made so far, in order. */
  readonly leaves: Leaf[] = [];

  leaf(count: number, width: number, trainable: boolean): Leaf {
    const leaf: Leaf = {
      leaf: true,
      count,
      width,
      trainable,
      uses: 0,
      arrived: null,
      grad: null,
      cast: null,
    };
    this.leaves.push(leaf);
    return leaf;
  }

  /** A tensor of `per` elements a sample and `fixed` ones for the whole batch. */
  tensor(fixed: number, per: number, width: number, kind: Kind = this.kind): Tensor {
    return { storage: this.alloc(fixed * width, per * width, kind), fixed, per, width, node: null, slot: 0 };
  }

  /** The same storage under another name; owned by the caller. */
  alias(tensor: Tensor): Tensor {
    this.retain(tensor.storage);
    return tensor;
  }

  needsGrad(tensor: Tensor | Leaf | null): boolean {
    if (tensor === null) return false;
    return "leaf" in tensor ? tensor.trainable : tensor.node !== null;
  }

  /**
   * Records an operator: `result` came of `inputs`, `saved` is held until its backward ran. Returns `result`
   * with its history; without an input that needs a gradient nothing is recorded.
   */
  record(
    result: Value,
    inputs: readonly (Tensor | Leaf | null)[],
    saved: readonly (Storage | null)[],
    run: Backward,
  ): Tensor {
    const node = this.node(inputs, saved, run, 1);
    return {
      storage: result.storage,
      fixed: result.fixed,
      per: result.per,
      width: result.width,
      node,
      slot: 0,
    };
  }

  /** As `record`, saving its inputs before the result is made, as generated autograd code does. */
  recorded(
    inputs: readonly (Tensor | Leaf | null)[],
    saved: readonly (Storage | null)[],
    make: () => Value,
    run: Backward,
  ): Tensor {
    const node = this.node(inputs, saved, run, 1);
    const { storage, fixed, per, width } = make();
    return { storage, fixed, per, width, node, slot: 0 };
  }

  /** As `record` for an operator with several outputs; they are told apart by `slot`. */
  node(
    inputs: readonly (Tensor | Leaf | null)[],
    saved: readonly (Storage | null)[],
    run: Backward,
    outputs: number,
  ): Node | null {
    if (!inputs.some((input) => this.needsGrad(input))) return null;
    for (const storage of saved) if (storage !== null) this.saves += 1;
    this.ended = this.saves >= this.endAfter;
    const edges = inputs.map((input) => this.edge(input));
    const held: Storage[] = [];
    if (this.recording) for (const storage of saved) if (storage !== null) held.push(this.retain(storage));
    const node: Node = {
      leaf: false,
      edges,
      saved: held,
      run,
      grads: new Array(outputs).fill(null),
      reached: false,
    };
    if (this.recording) this.nodes.push(node);
    return node;
  }

  private edge(input: Tensor | Leaf | null): Edge | null {
    if (input === null || !this.needsGrad(input)) return null;
    if ("leaf" in input) {
      if (this.recording) input.uses += 1;
      return { to: input, slot: 0, fixed: input.count, per: 0, width: input.width };
    }
    const to = input.node!;
    if (to.leaf && this.recording) to.uses += 1;
    return { to, slot: input.slot, fixed: input.fixed, per: input.per, width: input.width };
  }

  /** Runs `program` so that it keeps nothing; returns its result and how many tensors it would have saved. */
  unrecorded<T>(program: () => T): { readonly result: T; readonly saves: number } {
    const recording = this.recording;
    const before = this.saves;
    this.recording = false;
    const result = program();
    this.recording = recording;
    return { result, saves: this.saves - before };
  }

  /** Runs `program` again for its backward; ends, as checkpointing does, at the last tensor that is saved. */
  recomputed(saves: number, program: () => Tensor): Tensor {
    this.endAfter = this.saves + saves;
    const result = program();
    this.endAfter = Number.POSITIVE_INFINITY;
    this.ended = false;
    return result;
  }

  /** Nodes so far: where a stretch of the program begins. */
  mark(): number {
    return this.nodes.length;
  }

  /** Gives `grad` (owned) to the node of `tensor`. */
  seed(tensor: Tensor, grad: Value): void {
    if (tensor.node === null) this.drop(grad);
    else
      this.arrive(
        { to: tensor.node, slot: tensor.slot, fixed: tensor.fixed, per: tensor.per, width: tensor.width },
        grad,
      );
  }

  /** Runs the nodes made since `mark`, newest first, and forgets them. */
  backward(mark: number): void {
    const outer = this.kind;
    this.kind = "backward";
    while (this.nodes.length > mark) {
      const node = this.nodes.pop()!;
      if (node.reached) this.runNode(node);
      for (const storage of node.saved) this.release(storage);
      node.saved.length = 0;
    }
    this.kind = outer;
  }

  private runNode(node: Node): void {
    const outputs = node.run(node.grads).slice();
    node.edges.forEach((edge, index) => {
      const grad = outputs[index];
      if (edge !== null && grad) outputs[index] = this.fitted(edge, grad);
    });
    this.drop(...node.grads);
    node.grads.fill(null);
    for (const storage of node.saved) this.release(storage);
    node.saved.length = 0;
    node.edges.forEach((edge, index) => {
      const grad = outputs[index];
      if (!grad) return;
      if (edge === null) this.drop(grad);
      else this.arrive(edge, grad);
    });
  }

  /** Sums a gradient over broadcast dimensions and casts it to the dtype of what it belongs to. */
  private fitted(edge: Edge, grad: Value): Value {
    let value = grad;
    if (value.fixed !== edge.fixed || value.per !== edge.per) {
      const summed = this.tensor(edge.fixed, edge.per, value.width);
      this.drop(value);
      value = summed;
    }
    if (value.width !== edge.width) {
      const cast = this.tensor(edge.fixed, edge.per, edge.width);
      this.drop(value);
      value = cast;
    }
    return value;
  }

  private arrive(edge: Edge, grad: Value): void {
    const to = edge.to;
    if (!to.leaf) {
      const before = to.grads[edge.slot] ?? null;
      to.reached = true;
      to.grads[edge.slot] = before === null ? grad : this.summed(before, grad);
      return;
    }
    to.arrived = to.arrived === null ? grad : this.summed(to.arrived, grad);
    to.uses -= 1;
    if (to.uses > 0) return;
    if (to.grad === null) {
      to.grad = to.arrived.storage;
      this.relabel(to.grad, "gradients");
    } else this.drop(to.arrived);
    to.arrived = null;
  }

  private summed(a: Value, b: Value): Value {
    const sum = this.tensor(a.fixed, a.per, Math.max(a.width, b.width));
    this.drop(a, b);
    return sum;
  }
}
