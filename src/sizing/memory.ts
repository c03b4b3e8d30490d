import type { Envelope } from "./envelope.ts";

/** What live memory is there for: the summands that are told under `--explain`, each with its place in `byKind`. */
export const KINDS = {
  weights: 0,
  optimizer: 1,
  gradients: 2,
  buckets: 3,
  casts: 4,
  inputs: 5,
  embedding: 6,
  norms: 7,
  attention: 8,
  scores: 9,
  "feed-forward": 10,
  residual: 11,
  head: 12,
  mask: 13,
  backward: 14,
  gathered: 15,
} as const;
export type Kind = keyof typeof KINDS;
const KIND_COUNT = KINDS.gathered + 1;

/** A piece of memory of `fixed + per * samples` bytes. */
export interface Storage {
  fixed: number;
  per: number;
  refs: number;
  kind: number;
}

/** Elements of `width` bytes in a storage, without history: what gradients are. */
export interface Value {
  readonly storage: Storage;
  /** Elements independent of the batch. */
  readonly fixed: number;
  /** Elements a sample. */
  readonly per: number;
  /** Bytes an element. */
  readonly width: number;
}

const SEGMENT = 512;

/** CUDA's allocator hands out multiples of 512 bytes. */
export function rounded(bytes: number): number {
  return Math.ceil(bytes / SEGMENT) * SEGMENT;
}

/**
 * Device memory as a count: storages by reference, their bytes as lines in the batch, and the local maxima of
 * their sum, which go to the envelope.
 *
 * A submit waits for a step that is run once, before any compiler: hence plain loops and fixed parameters here and
 * in the tape where a list would read as well.
 */
export class Memory {
  fixed = 0;
  per = 0;
  /** Live bytes by kind: fixed at `2 * kind`, per sample at `2 * kind + 1`. */
  readonly byKind: number[] = new Array(2 * KIND_COUNT).fill(0);
  /** What new storages are for: a place of `KINDS`. */
  kind: number = KINDS.inputs;
  /** Where in the step the program stands; names the moments. */
  phase = "forward";
  /** While set, new storages take nothing: the part of a recomputation that never runs. */
  protected ended = false;
  private rising = false;

  constructor(readonly envelope: Envelope) {}

  alloc(fixedBytes: number, perBytes: number, kind: number = this.kind): Storage {
    if (this.ended) return { fixed: 0, per: 0, refs: 1, kind };
    const fixed = perBytes === 0 ? rounded(fixedBytes) : fixedBytes;
    this.move(kind, fixed, perBytes);
    this.rising = true;
    return { fixed, per: perBytes, refs: 1, kind };
  }

  retain(storage: Storage): Storage {
    storage.refs += 1;
    return storage;
  }

  release(storage: Storage): void {
    storage.refs -= 1;
    if (storage.refs === 0) this.remove(storage.kind, storage.fixed, storage.per);
  }

  /** Lets tensors go, as a Python name that ends or is bound anew. */
  drop(first: Value | null, second?: Value | null, third?: Value | null, fourth?: Value | null): void {
    if (first) this.release(first.storage);
    if (second) this.release(second.storage);
    if (third) this.release(third.storage);
    if (fourth) this.release(fourth.storage);
  }

  /** `drop` of any number. */
  dropAll(values: readonly (Value | null)[]): void {
    for (let i = 0; i < values.length; i++) this.drop(values[i] ?? null);
  }

  /** Memory that is there from outside the program, or ends: weights, states, layers that are not run. */
  shift(kind: Kind, fixedBytes: number, perBytes: number): void {
    if (fixedBytes >= 0 && perBytes >= 0) {
      this.move(KINDS[kind], fixedBytes, perBytes);
      this.rising = true;
    } else this.remove(KINDS[kind], -fixedBytes, -perBytes);
  }

  /** Live bytes by kind, to measure a stretch of the program. */
  snapshot(): number[] {
    return this.byKind.slice();
  }

  /** Adds `times` the difference between now and `before`, less storages that are not part of the pattern. */
  repeat(before: readonly number[], times: number, excluded: readonly Storage[] = []): void {
    if (times <= 0) return;
    const delta = this.snapshot();
    for (let i = 0; i < delta.length; i++) delta[i]! -= before[i]!;
    for (const { kind, fixed, per } of excluded) {
      delta[2 * kind]! -= fixed;
      delta[2 * kind + 1]! -= per;
    }
    this.offer();
    for (let kind = 0; kind < KIND_COUNT; kind++) {
      this.move(kind, delta[2 * kind]! * times, delta[2 * kind + 1]! * times);
    }
    this.rising = true;
  }

  /** What nodes hold beside what autograd saves for them, so that it lives as long as the graph does. */
  protected held: Storage[] = [];

  /** Holds a storage until the graph dies; where a recomputation made it, until that ends. */
  hold({ storage }: Value): void {
    this.held.push(this.retain(storage));
  }

  protected letHeldGo(from: number): void {
    for (const storage of this.held.splice(from)) this.release(storage);
  }

  /** The loss is let go, and the graph with it: with what its nodes hold in layers that were not run, too. */
  graphDies(): void {
    if (this.held.length === 0) return;
    this.letHeldGo(0);
    this.clear(KINDS.casts);
  }

  /** Ends all memory of the kinds from `kind` on but what the model is fed. */
  private clear(kind: number): void {
    for (let place = kind; place < KIND_COUNT; place++)
      if (place !== KINDS.inputs) this.remove(place, this.byKind[2 * place]!, this.byKind[2 * place + 1]!);
  }

  /** Work space inside a kernel: there for a moment only. */
  workspace(fixedBytes: number, perBytes: number): void {
    this.release(this.alloc(fixedBytes, perBytes));
  }

  /** Turns a storage to another purpose: a gradient that has reached its parameter. */
  relabel(storage: Storage, kind: Kind): void {
    this.move(storage.kind, -storage.fixed, -storage.per);
    storage.kind = KINDS[kind];
    this.move(storage.kind, storage.fixed, storage.per);
  }

  private remove(kind: number, fixed: number, per: number): void {
    if (this.rising) this.offer();
    this.move(kind, -fixed, -per);
  }

  private move(kind: number, fixed: number, per: number): void {
    this.fixed += fixed;
    this.per += per;
    this.byKind[2 * kind]! += fixed;
    this.byKind[2 * kind + 1]! += per;
  }

  /** Offers the live bytes to the envelope when they have risen since the last offer. */
  offer(): void {
    if (!this.rising) return;
    this.rising = false;
    this.envelope.offer(this.fixed, this.per, this.phase, this.byKind);
  }
}
