import { constants } from "node:os";

/** A command that we run for the user, with our own terminal. */
export interface Running {
  /** Its process group, where it has one of its own. */
  readonly group: number | null;
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
    const nothing = { group: null, signal: () => {}, sweep: async () => {} };
    return { ...nothing, ended: Promise.resolve(127), startError };
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
    group: ownGroup ? child.pid : null,
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

/** What ends a command and cleans up behind us when we are killed without a chance to. */
export interface Guard {
  /** The command to end then. */
  watch(group: number): void;
  /** We end in order. */
  dismiss(): void;
}

const GUARD = `
group=
while read -r word; do
  case $word in
    done) exit 0 ;;
    *) group=$word ;;
  esac
done
if [ -n "$group" ] && kill -s TERM -- "-$group" 2>/dev/null; then
  sleep 1
  kill -s KILL -- "-$group" 2>/dev/null
fi
exec "$@"
`;

/** Starts a shell that waits until we are gone, and runs `argv` then. It holds nothing of ours but a pipe's other end. */
export function startGuard(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Guard {
  const shell = Bun.spawn(["/bin/sh", "-c", GUARD, "neurarch-gate-guard", ...argv], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    env: { ...env },
    detached: true,
  });
  shell.unref();
  const say = (word: string) => {
    shell.stdin.write(`${word}\n`);
    void shell.stdin.flush();
  };
  return { watch: (group) => say(String(group)), dismiss: () => say("done") };
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
