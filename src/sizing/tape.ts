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
 * those between (`repeat`); of a model with a frozen embedding also the second, as its first layer keeps less. A
 * local maximum of a layer between two others is a line between theirs, so the largest is at one of the ends and
 * nothing is lost.
 *
 * At every local maximum the live bytes are offered to the `Envelope`, which keeps those that are highest for
 * some batch. Nothing here knows a model, and no size here was fitted.
 *
 * Sources: torch/csrc/autograd (engine.cpp, functions/accumulate_grad.h, derivatives.yaml) for what is saved and
 * when it dies; torch/utils/checkpoint.py for the early end of a recomputation.
 */
import { KINDS, Memory, type Storage, type Value } from "./memory.ts";
import type { Backward, Leaf, Node, Tensor } from "./nodes.ts";

export type { Backward, Leaf, Node, Tensor } from "./nodes.ts";

/** The storage of what is counted elsewhere. */
const ELSEWHERE: Storage = { fixed: 0, per: 0, refs: 1, kind: KINDS.weights };
const NOTHING: readonly never[] = [];

/** Device memory with autograd. */
export class Tape extends Memory {
  /** Under checkpointing a layer's forward keeps nothing for backward. */
  recording = true;
  /** Cards that share the gradients: of each that has reached its parameter this one keeps its share. */
  gradientCards = 1;
  private readonly nodes: Node[] = [];
  /** Tensors saved so far, and after how many a recomputation ends; storages beyond it are never made. */
  private saves = 0;
  private endAfter = Number.POSITIVE_INFINITY;

  /** Parameters made so far, in order. */
  readonly leaves: Leaf[] = [];

  leaf(count: number, width: number, trainable: boolean, factored = count): Leaf {
    const leaf: Leaf & { node: Leaf | null } = {
      storage: ELSEWHERE,
      fixed: count,
      per: 0,
      width,
      node: null,
      slot: 0,
      leaf: true,
      trainable,
      factored,
      packedBytes: 0,
      isTable: false,
      uses: 0,
      arrived: null,
      grad: null,
      cast: null,
    };
    if (trainable) leaf.node = leaf;
    this.leaves.push(leaf);
    return leaf;
  }

  /** A tensor of `per` elements a sample and `fixed` ones for the whole batch. */
  tensor(fixed: number, per: number, width: number, kind: number = this.kind): Tensor {
    return { storage: this.alloc(fixed * width, per * width, kind), fixed, per, width, node: null, slot: 0 };
  }

  /** The same storage under another name; owned by the caller. */
  alias(tensor: Tensor): Tensor {
    this.retain(tensor.storage);
    return tensor;
  }

  /** So many elements of a storage, without history; owned by the caller. */
  view({ storage, width }: Value, fixed: number, per: number): Tensor {
    return { storage: this.retain(storage), fixed, per, width, node: null, slot: 0 };
  }

  needsGrad(tensor: Tensor): boolean {
    return tensor.node !== null;
  }

  /**
   * Records an operator: `result` came of `inputs`, `saved` is held until its backward ran. Returns `result`
   * with its history; without an input that needs a gradient nothing is recorded.
   */
  record(
    result: Value,
    inputs: readonly (Tensor | null)[],
    saved: readonly (Storage | null)[],
    run: Backward,
  ): Tensor {
    return this.outcome(this.node(inputs, saved, run), result);
  }

  /** A value as an output of `node`. Generated autograd code saves the inputs before it makes the result. */
  outcome(node: Node | null, { storage, fixed, per, width }: Value): Tensor {
    return { storage, fixed, per, width, node, slot: 0 };
  }

  /** The node of an operator; several outputs are told apart by `slot`. Null where no input needs a gradient. */
  node(
    inputs: readonly (Tensor | null)[],
    saved: readonly (Storage | null)[],
    run: Backward,
    outputs = 1,
  ): Node | null {
    const { recording } = this;
    let needed = false;
    for (let i = 0; i < inputs.length; i++) {
      const to = inputs[i]?.node ?? null;
      if (to === null) continue;
      needed = true;
      if (to.leaf && recording) to.uses += 1;
    }
    if (!needed) return null;
    for (let i = 0; i < saved.length; i++) {
      const storage = saved[i] ?? null;
      if (storage === null) continue;
      this.saves += 1;
      if (recording) storage.refs += 1;
    }
    this.ended = this.saves >= this.endAfter;
    const node: Node = {
      leaf: false,
      edges: inputs,
      saved: recording ? saved : NOTHING,
      run,
      grads: outputs === 1 ? [null] : new Array(outputs).fill(null),
      reached: false,
      again: this.endAfter !== Number.POSITIVE_INFINITY,
    };
    if (recording) this.nodes.push(node);
    return node;
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
    const held = this.held.length;
    const result = program();
    this.endAfter = Number.POSITIVE_INFINITY;
    this.ended = false;
    if (this.held.length > held) this.letHeldGo(held);
    return result;
  }

  /** Nodes so far: where a stretch of the program begins. */
  mark(): number {
    return this.nodes.length;
  }

  /** Lets the nodes made between two marks go: what they lead to is no longer held, and no gradient came. */
  forget(from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const { saved, edges } = this.nodes[i]!;
      this.letGo(saved);
      for (const edge of edges) if (edge?.node?.leaf) edge.node.uses -= 1;
      this.nodes[i] = { leaf: false, edges: [], saved: [], run: () => [], grads: [null], reached: false };
    }
  }

  /** Gives `grad` (owned) to the node of `tensor`. */
  seed(tensor: Tensor, grad: Value): void {
    if (this.needsGrad(tensor)) this.arrive(tensor, grad);
    else this.drop(grad);
  }

  /** Runs the nodes made since `mark`, newest first, and forgets them. */
  backward(mark: number): void {
    const outer = this.kind;
    this.kind = KINDS.backward;
    while (this.nodes.length > mark) {
      const node = this.nodes.pop()!;
      if (node.reached) this.runNode(node);
      else this.letGo(node.saved);
    }
    this.kind = outer;
  }

  private runNode({ run, grads, edges, saved, again }: Node): void {
    const outputs = run(grads[0]!, grads);
    if (again) this.letGo(saved);
    for (let i = 0; i < edges.length; i++) {
      const edge = edges[i];
      const grad = outputs[i];
      if (edge && grad && edge.node !== null) outputs[i] = this.fitted(edge, grad);
    }
    this.dropAll(grads);
    if (!again) this.letGo(saved);
    for (let i = 0; i < edges.length; i++) {
      const grad = outputs[i];
      if (!grad) continue;
      const edge = edges[i];
      if (edge && edge.node !== null) this.arrive(edge, grad);
      else this.drop(grad);
    }
  }

  private letGo(saved: readonly (Storage | null)[]): void {
    for (let i = 0; i < saved.length; i++) {
      const storage = saved[i];
      if (storage) this.release(storage);
    }
  }

  /** Sums a gradient over broadcast dimensions and casts it to the dtype of what it belongs to. */
  private fitted({ fixed, per, width }: Tensor, grad: Value): Value {
    let value = grad;
    if (value.fixed !== fixed || value.per !== per) {
      const summed = this.tensor(fixed, per, value.width);
      this.drop(value);
      value = summed;
    }
    if (value.width !== width) {
      const cast = this.tensor(fixed, per, width);
      this.drop(value);
      value = cast;
    }
    return value;
  }

  private arrive({ node: to, slot }: Tensor, grad: Value): void {
    if (to === null) return;
    if (!to.leaf) {
      const before = to.grads[slot] ?? null;
      to.reached = true;
      to.grads[slot] = before === null ? grad : this.summed(before, grad);
      return;
    }
    to.arrived = to.arrived === null ? grad : this.summed(to.arrived, grad);
    to.uses -= 1;
    if (to.uses > 0) return;
    if (this.gradientCards > 1) this.scattered(to);
    else if (to.grad === null) {
      to.grad = to.arrived.storage;
      this.relabel(to.grad, "gradients");
    } else this.drop(to.arrived);
    to.arrived = null;
  }

  /** A gradient that is scattered: the share that stays is made beside the whole; an earlier one takes it up. */
  private scattered(to: Leaf): void {
    const { fixed, width } = to;
    const own = this.alloc(Math.ceil(fixed / this.gradientCards) * width, 0, KINDS.gradients);
    this.drop(to.arrived);
    if (to.grad === null) to.grad = own;
    else this.release(own);
  }

  private summed(a: Value, b: Value): Value {
    const sum = this.tensor(a.fixed, a.per, Math.max(a.width, b.width));
    this.drop(a, b);
    return sum;
  }
}
