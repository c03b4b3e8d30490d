import { KINDS, rounded, type Storage } from "./memory.ts";
import type { Ops } from "./ops.ts";
import type { Plan } from "./recipe.ts";
import type { Leaf } from "./tape.ts";

/** Parameters that are gathered together. */
interface Group {
  readonly leaves: readonly Leaf[];
  /** What is gathered of them; null while they are in host memory only. */
  whole: Storage | null;
  /** A buffer that was filled ahead of its use. */
  ahead: Storage | null;
}

/** The groups of a decoder beside its layers. */
export interface Groups {
  /** Embedding alone, norm and head together; with a tied head all three. */
  readonly tied: boolean;
  readonly table: readonly Leaf[];
  readonly head: readonly Leaf[];
  /** What is left: learned positions and the like. */
  readonly rest: readonly Leaf[];
}

/**
 * Parameters in host memory, brought to the device group by group, as FSDP2 does it under accelerate with offloading:
 * before a group runs its shards are copied to the device, gathered into one buffer and copied out of it; afterwards
 * they are let go, but for norm and head, whose backward comes next. In forward a buffer lives until the next group is
 * gathered; in backward the next group is gathered ahead. Gradients of a group are copied into a buffer, reduced, raised
 * to the dtype they have on the host and sent there. On one card there is nothing to gather: parameters are copied over
 * one by one.
 * Source: torch/distributed/fsdp/_fully_shard (2.13), accelerate/utils/fsdp_utils.py (1.15).
 */
export class Gathering {
  /** In forward the buffer of the group before; in backward what the reduction before was made from. */
  private buffer: Storage | null = null;
  private reduced: Storage | null = null;
  private readonly embedding: Group | null;
  private readonly head: Group;
  private readonly rest: Group;
  /** Layers that are run, in order. */
  private readonly layers: Group[] = [];

  constructor(
    private readonly ops: Ops,
    private readonly plan: Plan,
    private readonly groups: Groups,
  ) {
    const { tied, table, head, rest } = groups;
    this.embedding = tied ? null : groupOf(table);
    this.head = groupOf(tied ? [...head, ...table] : head);
    this.rest = groupOf(rest);
  }

  beginForward(): void {
    this.forward(this.rest);
    this.forward(this.embedding ?? this.head);
  }

  /** The embedding has run. */
  embedded(): void {
    if (this.embedding !== null) this.letGo(this.embedding);
  }

  enterLayer(leaves: readonly Leaf[]): void {
    const layer = groupOf(leaves);
    this.layers.push(layer);
    this.forward(layer);
  }

  leaveLayer(): void {
    this.letGo(this.layers.at(-1)!);
  }

  enterHead(): void {
    this.forward(this.head);
  }

  beginBackward(): void {
    this.backward(this.head, this.layers.at(-1) ?? null);
  }

  leaveHead(): void {
    if (!this.groups.tied) this.reduce(this.head);
  }

  /** The last layer whose backward is still to come. */
  enterBackward(): void {
    this.backward(this.layers.at(-1)!, this.layers.at(-2) ?? (this.plan.trainBase ? this.embedding : null));
  }

  leaveBackward(): void {
    this.reduce(this.layers.pop()!);
  }

  enterEmbedding(): void {
    if (this.embedding !== null && this.plan.trainBase) this.backward(this.embedding, null);
  }

  endBackward(): void {
    for (const one of [this.embedding, this.groups.tied ? this.head : null, this.rest]) {
      if (one !== null) this.reduce(one);
    }
    this.recycle();
  }

  /** What was gathered and reduced is no part of what repeats from layer to layer. */
  level(live: number[]): number[] {
    live[2 * KINDS.gathered] = this.ops.byKind[2 * KINDS.gathered]!;
    return live;
  }

  /** Brings a group to the device in forward. */
  private forward(one: Group): void {
    if (one.whole !== null || one.leaves.length === 0) return;
    if (this.plan.cards === 1) {
      this.copyOver(one);
      return;
    }
    const buffer = this.filled(one);
    this.endForward();
    one.whole = this.alloc(bytesOf(one));
    this.buffer = buffer;
  }

  /** The buffer of the last group goes with the model's forward. */
  endForward(): void {
    if (this.buffer !== null) this.ops.release(this.buffer);
    this.buffer = null;
  }

  /** Brings a group to the device for its backward, and fills the buffer of the one that comes after it. */
  private backward(one: Group, next: Group | null): void {
    if (one.whole === null) {
      if (this.plan.cards === 1) this.copyOver(one);
      else {
        const buffer = one.ahead ?? this.filled(one);
        one.ahead = null;
        one.whole = this.alloc(bytesOf(one));
        this.ops.release(buffer);
      }
    }
    if (next !== null && next.whole === null && this.plan.cards > 1) next.ahead = this.filled(next);
  }

  /** Lets a group go. */
  private letGo(one: Group): void {
    if (one.whole !== null) this.ops.release(one.whole);
    one.whole = null;
  }

  /** A group's backward is over: it is let go, and its gradients are reduced and sent to the host. */
  private reduce(one: Group): void {
    const { ops, plan } = this;
    this.letGo(one);
    this.recycle();
    const sent = one.leaves.filter(({ trainable, grad }) => trainable && (grad !== null || plan.accumulates));
    if (sent.length === 0) return;
    const count = sent.reduce((sum, { fixed, width }) => sum + fixed * width, 0);
    const { width } = sent[0]!;
    const hostWidth = this.hostWidth(sent[0]!);
    this.reduced = this.alloc(count);
    // A name of the loop that lays out shards of several cards holds the last gradient.
    const last = plan.cards > 1 ? sent.at(-1)! : null;
    const letGo = (leaf: Leaf) => {
      if (leaf.grad !== null) ops.release(leaf.grad);
      leaf.grad = null;
      if (plan.accumulates) ops.shift("gradients", -rounded(leaf.fixed * leaf.width), 0);
    };
    for (const leaf of sent) if (leaf !== last) letGo(leaf);
    const output = this.alloc(count / plan.cards);
    if (hostWidth !== width) ops.release(this.alloc(((count / width) * hostWidth) / plan.cards));
    ops.release(output);
    if (last !== null) letGo(last);
  }

  private recycle(): void {
    if (this.reduced !== null) this.ops.release(this.reduced);
    this.reduced = null;
  }

  /** A gathered buffer: the shards of all parameters, lowered, stand beside it while it is filled. */
  private filled(one: Group): Storage {
    const { ops, plan } = this;
    const shards = this.alloc(bytesOf(one) / plan.cards);
    const buffer = this.alloc(bytesOf(one));
    ops.release(shards);
    return buffer;
  }

  /** On one card: each parameter is copied to the device, lowered, and copied into its place. */
  private copyOver(one: Group): void {
    const { ops } = this;
    let total = 0;
    let last: Storage | null = null;
    const places: Storage[] = [];
    for (const leaf of one.leaves) {
      const host = this.hostWidth(leaf);
      let copy = this.alloc(leaf.fixed * host);
      if (host !== leaf.width) {
        const lowered = this.alloc(leaf.fixed * leaf.width);
        ops.release(copy);
        copy = lowered;
      }
      if (last !== null) ops.release(last);
      last = copy;
      places.push(this.alloc(leaf.fixed * leaf.width));
      total += rounded(leaf.fixed * leaf.width);
    }
    if (last !== null) ops.release(last);
    for (const place of places) ops.release(place);
    one.whole = this.alloc(total);
  }

  private hostWidth({ trainable }: Leaf): number {
    return trainable ? this.plan.hostWidth : this.plan.frozenHostWidth;
  }

  private alloc(bytes: number): Storage {
    return this.ops.alloc(bytes, 0, KINDS.gathered);
  }
}

function groupOf(leaves: readonly Leaf[]): Group {
  return { leaves, whole: null, ahead: null };
}

function bytesOf({ leaves }: Group): number {
  return leaves.reduce((sum, { fixed, width }) => sum + rounded(fixed * width), 0);
}
