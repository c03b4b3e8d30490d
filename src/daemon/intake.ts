import { collectNow } from "../host/heap.ts";
import type { Context } from "./context.ts";
import type { Spool } from "./types.ts";

/** Output after which memory is given back: pieces of it are in several forms at a time. */
const COLLECT_BYTES = 8_388_608;

/**
 * Takes in a log that is read from its start each time: what the spool has already is compared, what is new is
 * appended and made durable, many lines with one commit.
 */
export class Intake {
  /** The log is not what was read before. */
  differs = false;
  /** Why the disk refused; null = it has not. */
  failure: string | null = null;
  #seen = 0;
  #sinceCollected = 0;
  #durable: number;
  readonly #before: number;
  #committing: Promise<void> | null = null;

  constructor(
    readonly spool: Spool,
    readonly context: Context,
    readonly onDurable: (bytes: number) => void,
  ) {
    this.#durable = spool.bytes;
    this.#before = spool.bytes;
  }

  /** Whether the log gave anything that was not known. */
  get isAhead(): boolean {
    return this.spool.bytes > this.#before;
  }

  async take(chunk: Uint8Array): Promise<void> {
    if (this.differs || this.failure !== null) return;
    const known = Math.min(chunk.length, Math.max(0, this.spool.bytes - this.#seen));
    if (known > 0 && !this.#matches(chunk.subarray(0, known))) {
      this.differs = true;
      return;
    }
    this.#seen += known;
    if (known === chunk.length) return;
    const fresh = chunk.subarray(known);
    this.spool.append(fresh);
    this.#sinceCollected += fresh.length;
    if (this.#sinceCollected > COLLECT_BYTES) {
      this.#sinceCollected = 0;
      collectNow();
    }
    this.#seen += fresh.length;
    this.#committing ??= this.#commit();
    if (this.spool.bytes - this.#durable > this.context.limits.unsyncedBytes) await this.#committing;
  }

  /** Resolves when all that was taken is durable. */
  async settled(): Promise<void> {
    while (this.#committing !== null) await this.#committing;
  }

  #matches(chunk: Uint8Array): boolean {
    for (let at = 0; at < chunk.length; ) {
      const kept = this.spool.read(this.#seen + at, chunk.length - at);
      if (kept.length === 0) return false;
      if (Buffer.compare(kept, chunk.subarray(at, at + kept.length)) !== 0) return false;
      at += kept.length;
    }
    return true;
  }

  async #commit(): Promise<void> {
    try {
      while (this.#durable < this.spool.bytes) {
        const target = this.spool.bytes;
        await this.context.journal.commit();
        this.#durable = target;
        this.onDurable(target);
      }
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
    } finally {
      this.#committing = null;
    }
  }
}
