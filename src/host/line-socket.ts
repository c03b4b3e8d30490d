/** How a send ended: `gone` = the other side left, `stalled` = it took nothing for as long as it may. */
export type Sent = "sent" | "gone" | "stalled";

/** What a line read ended with. */
export type LineRead =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  | { readonly kind: "closed" | "too-long" | "deadline" };

/**
 * Notes down what the other side gets. It is told *before* the write: a reader that wakes up may run before the
 * writer goes on, so that a process killed behind a write that was seen would not have noted it.
 */
export interface SentNote {
  readonly given: () => void;
  /** It was not given after all. */
  readonly undo: () => void;
}

/** One connection. Lines are read one after another; sends must not overlap. */
export interface LineSocket {
  /** The next line with its end. `too-long`: no line end within `maxBytes`, which count the end too. */
  readLine(maxBytes: number, deadlineMs: number | null): Promise<LineRead>;
  /**
   * Hands all of `bytes` to the kernel. `note` is told just before the write that completes them, and again when the
   * kernel took nothing of it. `stallMs` is how long the other side may take nothing; null = for ever.
   */
  send(bytes: Uint8Array, stallMs: number | null, note?: SentNote): Promise<Sent>;
  readonly isClosed: boolean;
  /** Resolves when the connection is over, whoever ended it. */
  readonly closed: Promise<void>;
  /** Ends after what was handed over; the other side still gets it. */
  end(): void;
  /** Ends at once. */
  destroy(): void;
}

type Native = Pick<import("bun").Socket<Wired>, "write" | "end" | "terminate" | "pause" | "resume">;

/** A write of at most so much is taken whole or not at all (a unix socket's buffer holds twice as much and more). */
const WHOLE_BYTES = 65_536;

/** Unread bytes from which a peer is held back. */
const HIGH_WATER_BYTES = 2_097_152;

export class Wired implements LineSocket {
  #chunks: Uint8Array[] = [];
  #buffered = 0;
  #ended = false;
  #paused = false;
  #wakeReader: (() => void) | null = null;
  #wakeWriter: (() => void) | null = null;
  #markClosed: () => void = () => {};
  isClosed = false;
  readonly closed = new Promise<void>((done) => {
    this.#markClosed = done;
  });
  native: Native | null = null;

  gotData(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#chunks.push(bytes.slice());
    this.#buffered += bytes.length;
    if (this.#buffered > HIGH_WATER_BYTES && !this.#paused && this.#wakeReader === null) {
      this.#paused = true;
      this.native?.pause();
    }
    this.#wakeReader?.();
  }

  gotEnd(): void {
    this.#ended = true;
    this.#wakeReader?.();
  }

  gotDrain(): void {
    this.#wakeWriter?.();
  }

  gotClose(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#ended = true;
    this.#markClosed();
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }

  async readLine(maxBytes: number, deadlineMs: number | null): Promise<LineRead> {
    let seen = 0;
    let searched = 0;
    let overdue = false;
    const timer =
      deadlineMs === null
        ? undefined
        : setTimeout(() => {
            overdue = true;
            this.#wakeReader?.();
          }, deadlineMs);
    try {
      for (;;) {
        while (searched < this.#chunks.length) {
          const chunk = this.#chunks[searched]!;
          const at = chunk.indexOf(0x0a);
          if (at !== -1) {
            return seen + at + 1 > maxBytes ? { kind: "too-long" } : this.#take(searched, at);
          }
          seen += chunk.length;
          searched++;
        }
        if (seen >= maxBytes) return { kind: "too-long" };
        if (this.#ended) return { kind: "closed" };
        if (overdue) return { kind: "deadline" };
        this.#resume();
        await new Promise<void>((wake) => {
          this.#wakeReader = wake;
        });
        this.#wakeReader = null;
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** The line that ends at byte `at` of chunk `index`, taken out of the buffer. */
  #take(index: number, at: number): LineRead {
    const chunk = this.#chunks[index]!;
    const parts = [...this.#chunks.slice(0, index), chunk.subarray(0, at + 1)];
    const rest = chunk.subarray(at + 1);
    this.#chunks = [...(rest.length > 0 ? [rest] : []), ...this.#chunks.slice(index + 1)];
    const bytes = parts.length === 1 ? parts[0]! : new Uint8Array(Buffer.concat(parts));
    this.#buffered -= bytes.length;
    if (this.#buffered <= HIGH_WATER_BYTES) this.#resume();
    return { kind: "line", bytes };
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.native?.resume();
  }

  async send(bytes: Uint8Array, stallMs: number | null, note?: SentNote): Promise<Sent> {
    let offset = 0;
    for (;;) {
      if (this.isClosed || this.native === null) return "gone";
      // Of a large rest the last byte goes by itself: it is what makes a line of it.
      const completes = note === undefined || bytes.length - offset <= WHOLE_BYTES;
      const piece = bytes.subarray(offset, completes ? bytes.length : bytes.length - 1);
      if (completes) note?.given();
      const took = this.native.write(piece);
      if (completes && took < piece.length) note?.undo();
      if (took < 0) return "gone";
      offset += took;
      if (offset === bytes.length) return "sent";
      if (took === piece.length) continue;
      let timer: ReturnType<typeof setTimeout> | undefined;
      const woken = await new Promise<boolean>((done) => {
        this.#wakeWriter = () => done(true);
        if (stallMs !== null) timer = setTimeout(() => done(false), stallMs);
      });
      clearTimeout(timer);
      this.#wakeWriter = null;
      if (!woken) return "stalled";
    }
  }

  end(): void {
    this.native?.end();
  }

  destroy(): void {
    this.native?.terminate();
    this.gotClose();
  }
}

export const handlers = {
  data: (socket: { data: Wired }, bytes: Uint8Array) => socket.data.gotData(bytes),
  drain: (socket: { data: Wired }) => socket.data.gotDrain(),
  end: (socket: { data: Wired }) => socket.data.gotEnd(),
  close: (socket: { data: Wired }) => socket.data.gotClose(),
  error: (socket: { data: Wired }) => socket.data?.gotClose(),
};
