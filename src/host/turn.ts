import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

/** Waits without keeping the processor busy. */
export function sleep(ms: number): Promise<void> {
  return Bun.sleep(ms);
}

/** A longer timer fires at once. Whoever waits for longer looks at the clock again. */
const MOST_TIMER_MS = 2_147_483_647;

/** Waits of a service, none of which keeps the process there once it is over. */
export class Sleeper {
  #timers = new Set<ReturnType<typeof setTimeout>>();
  #over = false;

  readonly sleep = (ms: number): Promise<void> =>
    new Promise((done) => {
      const timer = setTimeout(
        () => {
          this.#timers.delete(timer);
          done();
        },
        Math.min(ms, MOST_TIMER_MS),
      );
      if (this.#over) timer.unref();
      else this.#timers.add(timer);
    });

  end(): void {
    this.#over = true;
    for (const timer of this.#timers) timer.unref();
    this.#timers.clear();
  }
}

/** Whose turn it is: ours, another process's, or nobody's because no note can be left there. */
export type Turn = "ours" | "taken" | "nowhere";

/**
 * Takes the turn that the file `name` in `folder` stands for, until `releaseTurn` or for `mostMs`. A process that
 * died leaves its file behind: it counts no longer once its time is over, or at once where it ran on this machine.
 * Only a courtesy between processes (two may hold it for a moment when one is overdue); never throws.
 */
export function takeTurn(folder: string, name: string, mostMs: number): Turn {
  const path = join(folder, name);
  for (let attempt = 0; attempt < 2; attempt++) {
    let descriptor: number | null = null;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      descriptor = openSync(
        path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
        0o600,
      );
      const holder = { pid: process.pid, host: hostname(), untilMs: Date.now() + mostMs };
      writeSync(descriptor, JSON.stringify(holder));
      return "ours";
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") return "nowhere";
      const state = stateOf(path);
      if (state !== "over") return state === "held" ? "taken" : "nowhere";
      releaseTurn(folder, name);
    } finally {
      if (descriptor !== null) closeSync(descriptor);
    }
  }
  return "taken";
}

/** Gives the turn back. Never throws. */
export function releaseTurn(folder: string, name: string): void {
  try {
    unlinkSync(join(folder, name));
  } catch {
    // gone already
  }
}

/** Longest time that a file without a readable holder is waited for: it is being written just now. */
const UNREADABLE_MS = 2000;

/** `odd` = something that is no note of ours stands there. */
function stateOf(path: string): "held" | "over" | "odd" {
  let text: string;
  let writtenMs: number;
  try {
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(descriptor);
      if (!stat.isFile() || stat.size > 1000) return "odd";
      writtenMs = stat.mtimeMs;
      text = readFileSync(descriptor, "utf8");
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    // Released in this moment, or not ours to read.
    return (error as { code?: string }).code === "ENOENT" ? "held" : "odd";
  }
  const now = Date.now();
  try {
    const { pid, host, untilMs } = JSON.parse(text) as { pid?: unknown; host?: unknown; untilMs?: unknown };
    if (typeof untilMs !== "number" || now > untilMs || untilMs > now + 600_000) return "over";
    return host === hostname() && typeof pid === "number" && !isAlive(pid) ? "over" : "held";
  } catch {
    return now - writtenMs > UNREADABLE_MS ? "over" : "held";
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}
