import type { Envelope } from "./envelope.ts";

/** What live memory is there for: the summands that are told under `--explain`. */
export const KINDS = [
  "weights",
  "optimizer",
  "gradients",
  "buckets",
  "casts",
  "inputs",
  "embedding",
  "norms",
  "attention",
  "scores",
  "feed-forward",
  "residual",
  "head",
  "mask",
  "backward",
] as const;
export type Kind = (typeof KINDS)[number];
const KIND_INDEX = Object.fromEntries(KINDS.map((kind, index) => [kind, index])) as Record<Kind, number>;

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
 */
export class Memory {
  fixed = 0;
  per = 0;
  /** Live bytes by kind: fixed at `2 * kind`, per sample at `2 * kind + 1`. */
  readonly byKind = new Float64Array(2 * KINDS.length);
  /** What new storages are for. */
  kind: Kind = "inputs";
  /** Where in the step the program stands; names the moments. */
  phase = "forward";
  /** While set, new storages take nothing: the part of a recomputation that never runs. */
  protected ended = false;
  private rising = false;

  constructor(readonly envelope: Envelope) {}

  alloc(fixedBytes: number, perBytes: number, kind: Kind = this.kind): Storage {
    const index = KIND_INDEX[kind];
    if (this.ended) return { fixed: 0, per: 0, refs: 1, kind: index };
    const fixed = perBytes === 0 ? rounded(fixedBytes) : fixedBytes;
    this.add(index, fixed, perBytes);
    return { fixed, per: perBytes, refs: 1, kind: index };
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
  drop(...tensors: readonly (Value | null)[]): void {
    for (const tensor of tensors) if (tensor !== null) this.release(tensor.storage);
  }

  /** Memory that is there from outside the program, or ends: weights, states, layers that are not run. */
  shift(kind: Kind, fixedBytes: number, perBytes: number): void {
    const index = KIND_INDEX[kind];
    if (fixedBytes >= 0 && perBytes >= 0) this.add(index, fixedBytes, perBytes);
    else this.remove(index, -fixedBytes, -perBytes);
  }

  /** Live bytes by kind, to measure a stretch of the program. */
  snapshot(): Float64Array {
    return this.byKind.slice();
  }

  /** Adds `times` the difference between now and `before`, less storages that are not part of the pattern. */
  repeat(before: Float64Array, times: number, excluded: readonly Storage[] = []): void {
    if (times <= 0) return;
    const delta = this.byKind.map((bytes, index) => bytes - (before[index] ?? 0));
    for (const { kind, fixed, per } of excluded) {
      delta[2 * kind]! -= fixed;
      delta[2 * kind + 1]! -= per;
    }
    this.offer();
    for (let index = 0; index < KINDS.length; index++) {
      const fixed = (delta[2 * index] ?? 0) * times;
      const per = (delta[2 * index + 1] ?? 0) * times;
      this.byKind[2 * index]! += fixed;
      this.byKind[2 * index + 1]! += per;
      this.fixed += fixed;
      this.per += per;
    }
    this.rising = true;
  }

  /** Work space inside a kernel: there for a moment only. */
  workspace(fixedBytes: number, perBytes: number): void {
    this.release(this.alloc(fixedBytes, perBytes));
  }

  /** Turns a storage to another purpose: a gradient that has reached its parameter. */
  relabel(storage: Storage, kind: Kind): void {
    const index = KIND_INDEX[kind];
    this.move(storage.kind, -storage.fixed, -storage.per);
    this.move(index, storage.fixed, storage.per);
    storage.kind = index;
  }

  private add(index: number, fixed: number, per: number): void {
    this.move(index, fixed, per);
    this.rising = true;
  }

  private remove(index: number, fixed: number, per: number): void {
    this.offer();
    this.move(index, -fixed, -per);
  }

  private move(index: number, fixed: number, per: number): void {
    this.fixed += fixed;
    this.per += per;
    this.byKind[2 * index]! += fixed;
    this.byKind[2 * index + 1]! += per;
  }

  /** Offers the live bytes to the envelope when they have risen since the last offer. */
  offer(): void {
    if (!this.rising) return;
    this.rising = false;
    this.envelope.offer(this.fixed, this.per, this.phase, this.byKind);
  }
}
