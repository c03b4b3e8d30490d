import { chmodSync, linkSync, lstatSync, renameSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { GateError } from "../lib/errors.ts";

/** Longest path that a unix socket can have (`sun_path` of unix(7) without its NUL). */
export const SOCKET_PATH_BYTES = 107;

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

class Wired implements LineSocket {
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

const handlers = {
  data: (socket: { data: Wired }, bytes: Uint8Array) => socket.data.gotData(bytes),
  drain: (socket: { data: Wired }) => socket.data.gotDrain(),
  end: (socket: { data: Wired }) => socket.data.gotEnd(),
  close: (socket: { data: Wired }) => socket.data.gotClose(),
  error: (socket: { data: Wired }) => socket.data?.gotClose(),
};

/**
 * Listens on a unix socket that only this user may connect to (0600). The path must be free and short enough.
 * Throws what the system says.
 */
export function listenUnix(path: string, onConnection: (socket: LineSocket) => void): { stop(): void } {
  const before = process.umask(0o077);
  // Listening removes whatever has the name, so it begins under another one; the wanted one is taken only where it is free.
  const first = freeName(path);
  try {
    const server = Bun.listen<Wired>({
      unix: first,
      // A client may close its writing side behind its request and still reads.
      allowHalfOpen: true,
      socket: {
        ...handlers,
        open: (socket) => {
          socket.data = new Wired();
          socket.data.native = socket;
          onConnection(socket.data);
        },
      },
    });
    chmodSync(first, 0o600);
    try {
      linkSync(first, path);
    } catch (error) {
      server.stop(true);
      if ((error as { code?: string }).code !== "EEXIST") throw error;
      throw new GateError(
        "settings-invalid",
        `another daemon took ${path} in this moment`,
        "End it first, or name another socket.",
      );
    } finally {
      removeQuietly(first);
    }
    const own = lstatSync(path).ino;
    return {
      stop: () => {
        // Whoever put another socket there keeps it.
        const there = lstatSync(path, { throwIfNoEntry: false });
        server.stop(false);
        if (there?.isSocket() === true && there.ino === own) removeQuietly(path);
      },
    };
  } finally {
    process.umask(before);
  }
}

/** A name beside `path` that nobody has, and that is no longer than a socket's may be. */
function freeName(path: string): string {
  const folder = dirname(path);
  const room = SOCKET_PATH_BYTES - Buffer.byteLength(folder) - 1;
  for (;;) {
    const digits = crypto.randomUUID().replaceAll("-", "");
    const free = join(folder, (room > 2 ? `.${digits}` : digits).slice(0, Math.max(1, Math.min(room, 13))));
    if (lstatSync(free, { throwIfNoEntry: false }) === undefined) return free;
  }
}

/** Connects to a unix socket; rejects with the system's error. */
export async function connectUnix(path: string): Promise<LineSocket> {
  const wired = new Wired();
  const socket = await Bun.connect<Wired>({
    unix: path,
    data: wired,
    allowHalfOpen: true,
    socket: { ...handlers, open: () => {} },
  });
  wired.native = socket;
  return wired;
}

/** Whether somebody answers on a socket: `none` = nothing there, `other` = something that is no socket. */
export async function probeUnix(path: string): Promise<"none" | "other" | "alive" | "dead" | "denied"> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "none";
  if (!stat.isSocket()) return "other";
  try {
    const socket = await connectUnix(path);
    socket.destroy();
    return "alive";
  } catch (error) {
    const code = (error as { code?: string }).code;
    // Only a refusal proves that nobody listens: anything else may be a daemon with a full queue.
    if (code === "ECONNREFUSED") return "dead";
    return code === "ENOENT" ? "none" : code === "EACCES" || code === "EPERM" ? "denied" : "alive";
  }
}

/**
 * Takes a socket away that was found dead. Between the look and this another daemon may have put its own there: what was
 * taken is looked at once more, and put back where it lives. False then.
 */
export async function takeAway(path: string): Promise<boolean> {
  const aside = freeName(path);
  try {
    renameSync(path, aside);
  } catch (error) {
    return (error as { code?: string }).code === "ENOENT";
  }
  const isDead = (await probeUnix(aside)) === "dead";
  try {
    if (!isDead) linkSync(aside, path);
  } catch {
    // A third one has the name by now.
  }
  removeQuietly(aside);
  return isDead;
}

/** Removes what a killed daemon left. Never throws. */
export function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // it is gone already
  }
}
