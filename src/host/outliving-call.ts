import { spawn } from "node:child_process";
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";

/**
 * A call that outlives us: it runs in a session of its own, and its output, its exit code and who it is stand in files,
 * so that after a kill -9 another process finds it, waits for it and reads how it ended.
 *
 * FOLDER/about.json  what the caller wrote about it
 * FOLDER/pid         boot id and /proc/PID/stat of the shell around it, written by that shell
 * FOLDER/started     made by whoever comes first: the shell, which then runs the program, or one who gave it up
 * FOLDER/stdout, stderr, exit
 */
export type CallOutcome =
  | {
      readonly kind: "exited";
      readonly exitCode: number;
      readonly stdout: string;
      readonly stderr: string;
      readonly overflowed: boolean;
    }
  /** It was killed at the deadline. */
  | { readonly kind: "timeout" }
  /** It is gone and left no exit code; what it printed is there. */
  | { readonly kind: "lost"; readonly stdout: string; readonly stderr: string }
  /** It did not run, and will not. */
  | { readonly kind: "never-started" };

const SHELL = `
d=$1; shift
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
echo "$boot $stat" >"$d/pid" || exit 125
set -C
: >"$d/started" || exit 125
set +C
"$@" >"$d/stdout" 2>"$d/stderr" </dev/null
echo "$?" >"$d/exit"
`;

/** How long a shell that was just started may take until it says who it is. */
const START_MS = 2000;
const POLL_MS = 20;

/**
 * Starts `argv` as such a call. `folder` must not exist. Throws when nothing can be written there. What it gives ends
 * when the call does, for `awaitCall`: as its parent we are told, and need not look so often.
 */
export function startCall(
  folder: string,
  argv: readonly string[],
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Must outlive the call, which may leave a service behind; our own working folder where it is absent. */
    readonly cwd?: string;
    readonly about: Readonly<Record<string, unknown>>;
    /** Private files of the call, by name; they are gone when its outcome was read. */
    readonly files: Readonly<Record<string, string>>;
  },
): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, "about.json"), JSON.stringify(options.about), { mode: 0o600 });
  for (const [name, text] of Object.entries(options.files))
    writeFileSync(join(folder, name), text, { mode: 0o600, flag: "wx" });
  const child = spawn("/bin/sh", ["-c", SHELL, "sh", folder, ...argv], {
    stdio: "ignore",
    env: { ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    detached: true,
  });
  child.unref();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
}

/**
 * Waits for a call to end, whoever started it. When `timeoutMs` is over or `giveUp` is aborted, it and its process group
 * are killed.
 * `removing`: names of its private files that are no longer needed then.
 */
export async function awaitCall(
  folder: string,
  options: {
    readonly timeoutMs: number | null;
    readonly maxBytes: number;
    readonly removing?: readonly string[];
    /** Of a call that we started ourselves. */
    readonly ended?: Promise<void>;
    readonly giveUp?: AbortSignal;
  },
): Promise<CallOutcome> {
  const startedMs = Date.now();
  let over = options.ended === undefined;
  const ended = options.ended?.then(() => {
    over = true;
  });
  try {
    for (let polls = 0; ; polls++) {
      if (exitOf(folder) !== null) return exited(folder, options.maxBytes);
      const holder = holderOf(folder);
      if (holder === null) {
        const waitedMs = Date.now() - startedMs;
        if (over && (ended !== undefined || waitedMs > START_MS) && giveUp(folder))
          return { kind: "never-started" };
      } else if (!isHolderAlive(holder)) {
        // Between our two looks it may have written its exit code.
        if (exitOf(folder) !== null) return exited(folder, options.maxBytes);
        if (giveUp(folder)) return { kind: "never-started" };
        return { kind: "lost", ...outputs(folder, options.maxBytes) };
      }
      const late = options.timeoutMs !== null && Date.now() - startedMs > options.timeoutMs;
      if (late || options.giveUp?.aborted === true) {
        // A shell that has not begun must not begin later.
        if (holder === null && !giveUp(folder)) continue;
        if (holder !== null) killHolder(holder);
        return exitOf(folder) !== null ? exited(folder, options.maxBytes) : { kind: "timeout" };
      }
      const pause = Bun.sleep(polls < 10 ? 5 : POLL_MS * (polls < 500 ? 1 : polls < 2000 ? 5 : 25));
      await (ended === undefined || over ? pause : Promise.race([pause, ended]));
    }
  } finally {
    for (const name of options.removing ?? []) rmSync(join(folder, name), { force: true });
  }
}

/** Whether the call is still under way (or about to begin). */
export function isCallRunning(folder: string): boolean {
  if (exitOf(folder) !== null) return false;
  const holder = holderOf(folder);
  return holder === null ? aboutCall(folder) !== null && !hasStarted(folder) : isHolderAlive(holder);
}

/** What the caller wrote about a call; null when there is none. */
export function aboutCall(folder: string): Record<string, unknown> | null {
  const text = read(join(folder, "about.json"), 65_536);
  if (text === null) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

/** Names of the calls in a folder; empty when it is not there. */
export function callsIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

export function forgetCall(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Takes the place of a shell that has not begun: it will find that it must not. False when it was first. */
function giveUp(folder: string): boolean {
  try {
    closeSync(openSync(join(folder, "started"), "wx", 0o600));
    return true;
  } catch {
    // Begun, unless it was given up before.
    return holderOf(folder) === null;
  }
}

function hasStarted(folder: string): boolean {
  return read(join(folder, "started"), 1) !== null;
}

interface Holder {
  readonly boot: string;
  readonly pid: number;
  /** Clock ticks since boot at which it was started: pids come again. */
  readonly startedTicks: string;
}

function holderOf(folder: string): Holder | null {
  const text = read(join(folder, "pid"), 4096);
  if (text?.endsWith("\n") !== true) return null;
  const space = text.indexOf(" ");
  const stat = statOf(text.slice(space + 1));
  return stat === null ? null : { boot: text.slice(0, space), ...stat };
}

function statOf(line: string): { pid: number; startedTicks: string; state: string } | null {
  const pid = Number(/^\d+/.exec(line)?.[0]);
  // The name in parentheses may hold anything.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const startedTicks = fields[19];
  return Number.isInteger(pid) && startedTicks !== undefined
    ? { pid, startedTicks, state: fields[0] ?? "" }
    : null;
}

function isHolderAlive(holder: Holder): boolean {
  if (read("/proc/sys/kernel/random/boot_id", 100)?.trim() !== holder.boot) return false;
  const now = statOf(read(`/proc/${holder.pid}/stat`, 4096) ?? "");
  return now !== null && now.startedTicks === holder.startedTicks && now.state !== "Z" && now.state !== "X";
}

function killHolder(holder: Holder): void {
  if (!isHolderAlive(holder)) return;
  try {
    process.kill(-holder.pid, constants.signals.SIGKILL);
  } catch {
    // gone already
  }
}

function exitOf(folder: string): number | null {
  const found = /^(\d{1,3})\n$/.exec(read(join(folder, "exit"), 16) ?? "");
  return found === null ? null : Number(found[1]);
}

function outputs(folder: string, maxBytes: number): { stdout: string; stderr: string } {
  return {
    stdout: read(join(folder, "stdout"), maxBytes) ?? "",
    stderr: read(join(folder, "stderr"), maxBytes) ?? "",
  };
}

function exited(folder: string, maxBytes: number): CallOutcome {
  const sizes = ["stdout", "stderr"].map((name) => sizeOf(join(folder, name)));
  return {
    kind: "exited",
    exitCode: exitOf(folder) ?? 1,
    ...outputs(folder, maxBytes),
    overflowed: sizes.some((size) => size > maxBytes),
  };
}

function sizeOf(path: string): number {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, "r");
    return fstatSync(descriptor).size;
  } catch {
    return 0;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** The end of a file that is longer than `maxBytes` (what a call says last is what counts), or all of it. */
function read(path: string, maxBytes: number): string | null {
  if (path.startsWith("/proc/")) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return null;
    }
  }
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, "r");
    const { size } = fstatSync(descriptor);
    const bytes = new Uint8Array(Math.min(size, maxBytes));
    const length = readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    return new TextDecoder().decode(bytes.subarray(0, length));
  } catch {
    return null;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
