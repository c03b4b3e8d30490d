import { constants } from "node:os";

/** A command that we run for the user, with our own terminal. */
export interface Running {
  /** Its exit code, 128 + n when signal n ended it; 127 where it could not be started. */
  readonly ended: Promise<number>;
  /** Why it could not be started; null when it was. */
  readonly startError: string | null;
  /** Hands a signal on to it and all it started. */
  signal(name: NodeJS.Signals): void;
  /** Ends what it has left behind. */
  sweep(): Promise<void>;
}

/**
 * Starts a command with our standard streams. Away from a terminal it gets a process group of its own, so that nothing
 * it started stays behind; on a terminal it stays in ours, which is the one that may read from it.
 */
export function runCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Running {
  const ownGroup = process.stdin.isTTY !== true;
  let child: ReturnType<typeof start>;
  const start = () =>
    Bun.spawn([...argv], {
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
      env: { ...env },
      detached: ownGroup,
    });
  try {
    child = start();
  } catch (error) {
    const startError = (error as { code?: string }).code ?? String(error);
    return { ended: Promise.resolve(127), startError, signal: () => {}, sweep: async () => {} };
  }
  const kill = (name: NodeJS.Signals): boolean => {
    try {
      process.kill(ownGroup ? -child.pid : child.pid, name);
      return true;
    } catch {
      return false;
    }
  };
  return {
    startError: null,
    ended: child.exited.then(() => {
      if (child.signalCode === null) return child.exitCode ?? 1;
      return 128 + (constants.signals[child.signalCode as NodeJS.Signals] ?? 0);
    }),
    signal: (name) => void kill(name),
    sweep: async () => {
      if (!ownGroup || !kill("SIGTERM")) return;
      for (let tries = 0; tries < 20; tries++) {
        await Bun.sleep(50);
        if (!kill("SIGCONT")) return;
      }
      kill("SIGKILL");
    },
  };
}

/** Calls back at each request to end (SIGTERM, SIGINT, SIGHUP), until the returned function is called. */
export function onStopSignals(react: (name: NodeJS.Signals) => void): () => void {
  const names = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
  const handlers = names.map((name) => [name, () => react(name)] as const);
  for (const [name, handler] of handlers) process.on(name, handler);
  return () => {
    for (const [name, handler] of handlers) process.off(name, handler);
  };
}

/** Calls back at each interrupt of the user (SIGINT), until the returned function is called. */
export function onInterrupt(react: () => void): () => void {
  process.on("SIGINT", react);
  return () => {
    process.off("SIGINT", react);
  };
}

export function ownPid(): number {
  return process.pid;
}
