import type { Fate, RanJob } from "../lib/ran-job.ts";

/** `ManagedJobStatus` of SkyPilot 0.13 (sky/jobs/state.py). */
const STATES: Readonly<Record<string, Fate>> = {
  SUCCEEDED: "done",
  FAILED: "failed",
  FAILED_SETUP: "failed",
  FAILED_PRECHECKS: "lost",
  FAILED_NO_RESOURCE: "lost",
  FAILED_CONTROLLER: "lost",
  CANCELLED: "cancelled",
  CANCELLING: "open",
  PENDING: "open",
  SUBMITTED: "open",
  STARTING: "open",
  RUNNING: "open",
  WINDING_DOWN: "open",
  RECOVERING: "open",
};

export interface QueueReading {
  readonly jobs: readonly RanJob[];
  /** Records without an id or a time. */
  readonly unread: number;
}

/**
 * Reads the output of `sky jobs queue -o json`, which may have lines of text before the JSON. Null for a text without
 * a list of records.
 */
export function readJobsQueue(text: string): QueueReading | null {
  const records = recordsOf(text);
  if (records === null) return null;
  const jobs: RanJob[] = [];
  let unread = 0;
  for (const record of records) {
    const job = jobOf(record);
    if (job === null) unread += 1;
    else jobs.push(job);
  }
  return { jobs, unread };
}

function recordsOf(text: string): readonly unknown[] | null {
  for (const at of [...text.matchAll(/^[[{]/gm)].map(({ index }) => index)) {
    try {
      const value: unknown = JSON.parse(text.slice(at));
      if (Array.isArray(value)) return value;
      const jobs = (value as { jobs?: unknown } | null)?.jobs;
      if (Array.isArray(jobs)) return jobs;
    } catch {
      // a line of words that begins like JSON
    }
  }
  return null;
}

function jobOf(value: unknown): RanJob | null {
  if (typeof value !== "object" || value === null) return null;
  const record = value as Record<string, unknown>;
  const id = record.job_id ?? record._job_id;
  const submitS = record.submitted_at;
  if (typeof id !== "number" || typeof submitS !== "number") return null;
  const status = String(record.status ?? "").replace(/^.*\./, "");
  const reason = typeof record.failure_reason === "string" ? record.failure_reason : "";
  const fate = fateOf(STATES[status] ?? "unknown", reason);
  const task = typeof record.task_id === "number" && record.task_id > 0 ? `.${record.task_id}` : "";
  return {
    id: `${id}${task}`,
    cluster: null,
    user: typeof record.user_name === "string" && record.user_name !== "" ? record.user_name : null,
    comment: null,
    submitS,
    cards: cardsOf(record),
    tasks: 1,
    fate,
    fates: { [fate]: 1 },
    told: status,
    usedGb: null,
  };
}

/** What the reason of a failure says of it; the program's own output is not in it. */
function fateOf(fate: Fate, reason: string): Fate {
  if (fate !== "failed") return fate;
  if (/\bOOM[- ]?killed\b|\bout of memory\b/i.test(reason)) return "memory";
  return /\b(?:exit|return)(?:ed)?(?: with)?(?: code| status)?s?:? ?\[?137\b/i.test(reason)
    ? "killed"
    : "failed";
}

/** Cards over all nodes, of `accelerators` and `resources` (`2x[H100:8]`). */
function cardsOf({ accelerators, resources }: Record<string, unknown>): number | null {
  const text = typeof resources === "string" ? resources : "";
  const nodes = Number(/^\s*(\d+)x/.exec(text)?.[1] ?? 1);
  const counts = typeof accelerators === "object" && accelerators !== null ? Object.values(accelerators) : [];
  const [count] = counts;
  if (typeof count === "number") return count * nodes;
  const inText = /([A-Za-z][\w.-]*):(\d+(?:\.\d+)?)/.exec(text.replace(/\bcpus?[^,\]]*|\bmem[^,\]]*/gi, ""));
  return inText === null ? null : Number(inText[2]) * nodes;
}
