import { openChunks } from "../host/chunks.ts";
import { environment } from "../host/env.ts";
import { runChild } from "../host/process.ts";
import { findProgram } from "../host/which.ts";
import { GateError } from "../lib/errors.ts";
import type { RanJob } from "../lib/ran-job.ts";
import { shown } from "../lib/shown.ts";
import { readJobsQueue } from "../skypilot/jobs-queue.ts";
import { readSacct, SACCT_DELIMITER, SACCT_FORMAT } from "../slurm/sacct.ts";

export type AccountingSource = "sacct" | "sky";

/** Jobs of a scheduler's accounting. */
export interface Accounting {
  readonly source: AccountingSource;
  readonly jobs: readonly RanJob[];
  /** Rows that could not be read. */
  readonly unread: number;
}

/** A controller or a data base may take its time. */
const PATIENCE_MS = 300_000;
/** Largest output that is read. */
const MAX_BYTES = 1_000_000_000;

/**
 * Asks `sacct` or `sky` for everyone's jobs since a time, or reads what they printed into a file (`-` = standard
 * input). Throws `GateError("unreachable")` where the program is missing or fails, `GateError("input-invalid")` for a
 * text that is neither's.
 */
export async function readAccounting(asked: {
  /** Null = whatever the file is, or `sacct`. */
  readonly source: AccountingSource | null;
  readonly from: string | null;
  readonly sinceS: number;
  /** Seconds that times without a zone are ahead of UTC. */
  readonly utcOffsetS: number;
}): Promise<Accounting> {
  const { source, from, sinceS, utcOffsetS } = asked;
  if (from !== null) return accountingOf(fileText(from), from, source, utcOffsetS);
  if (source === "sky") {
    const text = await output(["sky", "jobs", "queue", "--all", "--all-users", "-o", "json"], {});
    return accountingOf(text, "the output of sky", "sky", 0);
  }
  const words = [
    "sacct",
    "--allusers",
    "--duplicates",
    "--noconvert",
    "--parsable2",
    `--delimiter=${SACCT_DELIMITER}`,
    `--format=${SACCT_FORMAT.join(",")}`,
    `--starttime=${new Date(sinceS * 1000).toISOString().slice(0, 19)}`,
  ];
  // Times of daylight saving would stand for two moments; in UTC none does.
  const text = await output(words, { TZ: "UTC", SLURM_TIME_FORMAT: "standard" });
  return accountingOf(text, "the output of sacct", "sacct", 0);
}

function accountingOf(
  text: string,
  name: string,
  source: AccountingSource | null,
  utcOffsetS: number,
): Accounting {
  const sacct = source === "sky" ? null : readSacct(text, utcOffsetS);
  if (sacct !== null) return { source: "sacct", ...sacct };
  const queue = source === "sacct" ? null : readJobsQueue(text);
  if (queue !== null) return { source: "sky", ...queue };
  const what =
    source === "sacct"
      ? "no output of sacct -P with a head line"
      : source === "sky"
        ? "no output of sky jobs queue -o json"
        : "neither output of sacct -P nor of sky jobs queue -o json";
  throw new GateError(
    "input-invalid",
    `${name} is ${what}`,
    `Write it with: sacct -a -D -P --format=${SACCT_FORMAT.join(",")}`,
  );
}

async function output(argv: readonly string[], more: Readonly<Record<string, string>>): Promise<string> {
  const env = environment();
  const program = findProgram(argv[0]!, env);
  if (program === null)
    throw new GateError(
      "unreachable",
      `${argv[0]} is not on PATH`,
      "Run it where it is, and hand its output over with --from FILE.",
    );
  const ran = await runChild([program, ...argv.slice(1)], {
    timeoutMs: PATIENCE_MS,
    env: { ...env, ...more },
    maxBytes: MAX_BYTES,
  });
  if (ran.exitCode === 0 && !ran.timedOut) return ran.stdout;
  const said = (ran.startError ?? (ran.stderr.trim() || ran.stdout.trim())).split("\n").at(-1) ?? "";
  const why = ran.timedOut ? "gave no answer in five minutes" : `ended ${ran.exitCode ?? "by a signal"}`;
  throw new GateError("unreachable", `${argv[0]} ${why}${said === "" ? "" : `: ${shown(said, 200)}`}`);
}

function fileText(path: string): string {
  const chunks = openChunks(path);
  if (!chunks.ok) throw new GateError("input-unreadable", chunks.error.message, "Name a readable file.");
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const chunk = chunks.value.next();
      if (!chunk.ok) throw new GateError("input-unreadable", chunk.error.message, "Name a readable file.");
      if (chunk.value.length === 0) return text + decoder.decode();
      text += decoder.decode(chunk.value, { stream: true });
    }
  } finally {
    chunks.value.close();
  }
}
