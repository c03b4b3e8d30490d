import type { Fate } from "../lib/ran-job.ts";

/** States of "JOB STATE CODES" in sacct(1). */
const STATES: Readonly<Record<string, Fate>> = {
  OUT_OF_MEMORY: "memory",
  COMPLETED: "done",
  FAILED: "failed",
  TIMEOUT: "timeout",
  DEADLINE: "timeout",
  CANCELLED: "cancelled",
  NODE_FAIL: "lost",
  BOOT_FAIL: "lost",
  PREEMPTED: "lost",
  REVOKED: "lost",
  PENDING: "open",
  RUNNING: "open",
  SUSPENDED: "open",
  REQUEUED: "open",
  RESIZING: "open",
  CONFIGURING: "open",
  COMPLETING: "open",
  STOPPED: "open",
  SIGNALING: "open",
  STAGE_OUT: "open",
  REQUEUE_HOLD: "open",
  REQUEUE_FED: "open",
  SPECIAL_EXIT: "failed",
};

/** How a row ended, by its state and its exit code (`1:0`, `0:9`). */
export function fateOf(state: string, exit: string): Fate {
  // `CANCELLED by 1000`; a `+` where sacct cut the column.
  const word = state.split(/[ +]/)[0] ?? "";
  const fate =
    STATES[word] ?? Object.entries(STATES).find(([name]) => word !== "" && name.startsWith(word))?.[1];
  if (fate !== "failed") return fate ?? "unknown";
  // 0:125 is what Slurm sets for a job that ran out of memory. A shell says 137 of a child that got SIGKILL, which sacct
  // prints as 9:0: it takes 128 off every code above it.
  return exit === "0:125"
    ? "memory"
    : /^(?:137|9):0$/.test(exit) || /^\d+:9$/.test(exit)
      ? "killed"
      : "failed";
}

/** Cards of a TRES list: the sum of its types, or the untyped count (`gres/gpu` holds all types together). */
export function cardsOf(tres: string | undefined): number | null {
  const counts = [...(tres ?? "").matchAll(/(?:^|,)gres\/gpu(:[^=,]+)?=(\d+)/g)];
  const whole = counts.find(([, type]) => type === undefined);
  if (whole !== undefined) return Number(whole[2]);
  return counts.length === 0 ? null : counts.reduce((sum, [, , count]) => sum + Number(count), 0);
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
  P: 2 ** 50,
};

/** Host memory of a TRES list (`mem=64M`) in bytes; null where it is not named. */
export function hostMemoryBytes(tres: string | undefined): number | null {
  const match = /(?:^|,)mem=([\d.]+)([KMGTP]?)/.exec(tres ?? "");
  return match === null ? null : Number(match[1]) * UNITS[match[2] ?? ""]!;
}

/** `gres/gpumem=12345M` in GB of 1e9 bytes; null where there is none or nothing was seen. */
export function gpuMemoryGb(tres: string | undefined): number | null {
  const match = /(?:^|,)gres\/gpumem=([\d.]+)([KMGTP]?)/.exec(tres ?? "");
  if (match === null) return null;
  const gb = (Number(match[1]) * UNITS[match[2] ?? ""]!) / 1e9;
  return gb > 0 ? gb : null;
}
