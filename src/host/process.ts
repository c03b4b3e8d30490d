import { constants } from "node:os";

/** How a child ended. `timedOut` = it and all it started were killed at the deadline. */
export interface ChildResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  /** The program could not be started at all. */
  readonly startError: string | null;
}

/**
 * Runs a program with closed stdin and a deadline that also covers what it started: it gets a process group
 * of its own, which is killed as a whole. Output beyond `maxBytes` is dropped.
 */
export async function runChild(
  argv: readonly string[],
  options: {
    readonly timeoutMs: number;
    readonly env: Record<string, string | undefined>;
    readonly maxBytes?: number;
    readonly stdin?: string;
  },
): Promise<ChildResult> {
  const maxBytes = options.maxBytes ?? 4_000_000;
  let child: ReturnType<typeof start>;
  const start = () =>
    Bun.spawn([...argv], {
      stdin: options.stdin === undefined ? "ignore" : new TextEncoder().encode(options.stdin),
      stdout: "pipe",
      stderr: "pipe",
      env: options.env,
      detached: true,
    });
  try {
    child = start();
  } catch (error) {
    return {
      exitCode: null,
      stdout: "",
      stderr: "",
      timedOut: false,
      startError: String((error as Error).message ?? error),
    };
  }
  let timedOut = false;
  const killGroup = () => {
    try {
      process.kill(-child.pid, constants.signals.SIGKILL);
    } catch {
      // already gone
    }
  };
  const readers = [collect(child.stdout, maxBytes), collect(child.stderr, maxBytes)] as const;
  const finished = Promise.all([child.exited, readers[0].done, readers[1].done]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      timedOut = true;
      killGroup();
      // A grandchild that left the group may still hold the pipes: what was read so far is the answer.
      for (const reader of readers) reader.cancel();
      resolve();
    }, options.timeoutMs);
  });
  await Promise.race([finished, deadline]);
  clearTimeout(timer);
  killGroup();
  return {
    exitCode: child.exitCode,
    stdout: readers[0].text(),
    stderr: readers[1].text(),
    timedOut,
    startError: null,
  };
}

function collect(stream: ReadableStream<Uint8Array>, maxBytes: number) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let text = "";
  let size = 0;
  const done = (async () => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      if (size < maxBytes) text += decoder.decode(value.subarray(0, maxBytes - size), { stream: true });
      size += value.length;
    }
  })().catch(() => undefined);
  return { done, text: () => text, cancel: () => void reader.cancel().catch(() => undefined) };
}
