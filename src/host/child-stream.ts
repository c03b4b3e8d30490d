import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable } from "node:stream";

/** How a child ended. */
export interface ChildEnd {
  /** Null when it was killed by a signal or could not be started. */
  readonly exitCode: number | null;
  /** The program could not be started at all. */
  readonly startError: string | null;
}

export interface ChildStream {
  readonly pid: number | null;
  /** What it prints, as it comes. While nobody asks for the next piece, its pipe fills up and it waits. */
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  readonly ended: Promise<ChildEnd>;
  /** Ends it and all that it started in its process group. */
  kill(): void;
}

/** Once the child is gone, a pipe that something else keeps open is waited for so long without a byte. */
const IDLE_AFTER_EXIT_MS = 500;

/**
 * Starts a program with closed stdin in a session of its own and gives its output piece by piece.
 * (`Bun.spawn` reads pipes to their end whether anyone wants the bytes or not; node's streams hold the child back.)
 */
export function startChild(
  argv: readonly string[],
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Our own working folder where it is absent. */
    readonly cwd?: string;
  },
): ChildStream {
  const [program = "", ...rest] = argv;
  const child = spawn(program, rest, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    detached: true,
  });
  running.add(child);
  const state = { exited: false };
  const ended = new Promise<ChildEnd>((resolve) => {
    child.once("error", (error) => {
      running.delete(child);
      state.exited = true;
      resolve({ exitCode: null, startError: (error as { code?: string }).code ?? "unknown" });
    });
    child.once("exit", (exitCode) => {
      running.delete(child);
      state.exited = true;
      resolve({ exitCode, startError: null });
    });
  });
  return {
    pid: child.pid ?? null,
    stdout: pieces(child.stdout, state),
    stderr: pieces(child.stderr, state),
    ended,
    kill: () => killGroup(child),
  };
}

const running = new Set<ChildProcess>();

/** Ends every such child that still runs, with all it started: whoever waits for one waits no more. */
export function endChildren(): void {
  for (const child of running) killGroup(child);
}

async function* pieces(stream: Readable, state: { readonly exited: boolean }): AsyncGenerator<Uint8Array> {
  const source = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  let askedMs = 0;
  const watch = setInterval(() => {
    if (state.exited && askedMs > 0 && Date.now() - askedMs > IDLE_AFTER_EXIT_MS) stream.destroy();
  }, 100);
  try {
    for (;;) {
      askedMs = Date.now();
      const { value, done } = await source.next();
      askedMs = 0;
      if (done === true) return;
      yield value;
    }
  } catch {
    // The pipe was taken down with its child: what came so far is all there is.
  } finally {
    clearInterval(watch);
    stream.destroy();
  }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, constants.signals.SIGKILL);
  } catch {
    // gone already
  }
}

export interface Captured extends ChildEnd {
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  /** It printed more than `maxBytes` and was ended. */
  readonly overflowed: boolean;
}

/** Runs a program to its end, its output in memory up to `maxBytes` a stream, within a deadline for its whole group. */
export async function captureChild(
  argv: readonly string[],
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly cwd?: string;
    readonly timeoutMs: number;
    readonly maxBytes: number;
  },
): Promise<Captured> {
  const child = startChild(argv, options);
  let timedOut = false;
  let overflowed = false;
  const timer = setTimeout(() => {
    timedOut = true;
    child.kill();
  }, options.timeoutMs);
  const gather = async (stream: AsyncIterable<Uint8Array>): Promise<string> => {
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    for await (const piece of stream) {
      bytes += piece.length;
      if (bytes > options.maxBytes) {
        overflowed = true;
        child.kill();
        break;
      }
      text += decoder.decode(piece, { stream: true });
    }
    return text + decoder.decode();
  };
  try {
    const [stdout, stderr, end] = await Promise.all([
      gather(child.stdout),
      gather(child.stderr),
      child.ended,
    ]);
    return { ...end, stdout, stderr, timedOut, overflowed };
  } finally {
    clearTimeout(timer);
    child.kill();
  }
}
