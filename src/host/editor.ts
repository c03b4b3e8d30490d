import { rmSync } from "node:fs";
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

/** Writes its process group down before it becomes the command: whoever ends it when we are killed knows it in time. */
const NOTING = 'echo "$$" >"$0" && exec "$@"';

/**
 * Starts a command with our standard streams. Away from a terminal it gets a process group of its own, so that nothing
 * it started stays behind, and notes it in `groupFile`; on a terminal it stays in ours, which is the one that may read
 * from it.
 */
export function runCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  groupFile: string,
): Running {
  const ownGroup = process.stdin.isTTY !== true;
  const isThere = Bun.which(argv[0] ?? "", { PATH: env.PATH ?? "" }) !== null;
  const words = ownGroup && isThere ? ["/bin/sh", "-c", NOTING, groupFile, ...argv] : argv;
  let child: ReturnType<typeof start>;
  const start = () =>
    Bun.spawn([...words], {
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

const GUARD = `
read -r word
[ "$word" != done ] || exit 0
read -r group <"$0"
if kill -s TERM -- "-$group" 2>/dev/null; then
  sleep 1
  kill -s KILL -- "-$group" 2>/dev/null
fi
rm -f "$0"
exec "$@"
`;

/**
 * Starts a shell that waits until we are gone, ends the command whose group stands in `groupFile`, and runs `argv`. It
 * holds nothing of ours but a pipe's other end. What it gives is called when we end in order.
 */
export function startGuard(
  groupFile: string,
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): () => void {
  rmSync(groupFile, { force: true });
  const shell = Bun.spawn(["/bin/sh", "-c", GUARD, groupFile, ...argv], {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "ignore",
    env: { ...env },
    detached: true,
  });
  shell.unref();
  return () => {
    shell.stdin.write("done\n");
    void shell.stdin.flush();
    rmSync(groupFile, { force: true });
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
