import { type Fate, type RanJob, worse } from "../lib/ran-job.ts";
import { cardsOf, fateOf, gpuMemoryGb, hostMemoryBytes } from "./sacct-fields.ts";

/** What is asked of `sacct`; free text, which may have line breaks, is not at the end of a row. */
export const SACCT_FORMAT = [
  "JobID",
  "Cluster",
  "User",
  "Submit",
  "State",
  "ExitCode",
  "Comment",
  "TRESUsageInTot",
  "ReqTRES",
] as const;

/** Between columns: no name can hold it without being odd on purpose. */
export const SACCT_DELIMITER = "\u001f";

/** Columns without which nothing can be told. */
const NEEDED = ["JobID", "Submit", "State", "ExitCode"];

/** Lines among which the head is looked for. */
const HEAD_LINES = 50;

export interface SacctReading {
  readonly jobs: readonly RanJob[];
  /** Rows that do not have the columns of the head, or whose id or time cannot be read. */
  readonly unread: number;
}

interface Row {
  readonly id: string;
  readonly array: string | null;
  readonly tasks: number;
  readonly step: string | null;
  readonly submitS: number;
  readonly fate: Fate;
  readonly told: string;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Reads the output of `sacct -P` (sacct(1)), with its head line and any delimiter, steps and duplicates of requeued
 * jobs included or not. Times are seconds since 1970, or local ones that are `utcOffsetS` ahead of UTC. Null for a text
 * whose head names no job, state and time.
 */
export function readSacct(text: string, utcOffsetS = 0): SacctReading | null {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  // Words of other programs may stand before it.
  const first = lines.slice(0, HEAD_LINES).findIndex((line) => headOf(line) !== null);
  const head = first < 0 ? null : headOf(lines[first]!);
  if (head === null) return null;
  let unread = 0;
  const rows: Row[] = [];
  for (const cells of cellsOf(lines.slice(first + 1), head)) {
    const row = cells === null ? null : rowOf(head.names, cells, utcOffsetS);
    if (row === null) unread += 1;
    else rows.push(row);
  }
  return { jobs: jobsOf(rows), unread };
}

interface Head {
  readonly names: readonly string[];
  readonly delimiter: string;
}

function headOf(line: string): Head | null {
  const delimiter = /^[A-Za-z]+([^A-Za-z]+)/.exec(line)?.[1] ?? "";
  // `sacct -p` ends each line with the delimiter as well.
  const names = (line.endsWith(delimiter) ? line.slice(0, -delimiter.length) : line).split(delimiter);
  return NEEDED.every((name) => names.includes(name)) ? { names, delimiter } : null;
}

/** The cells of each row; a name or comment with a line break in it goes on over several lines. Null for a broken row. */
function* cellsOf(lines: readonly string[], { names, delimiter }: Head): Generator<string[] | null> {
  let held: string | null = null;
  for (const line of lines) {
    // The rest of a text with a line break that stands in the last column.
    if (held === null && !line.includes(delimiter)) continue;
    const text: string = held === null ? line : `${held}\n${line}`;
    const cells = text.split(delimiter);
    if (cells.length === names.length + 1 && cells.at(-1) === "") cells.pop();
    if (cells.length < names.length) {
      held = text;
      continue;
    }
    held = null;
    yield cells.length === names.length ? cells : null;
  }
  if (held !== null) yield null;
}

function rowOf(names: readonly string[], cells: readonly string[], utcOffsetS: number): Row | null {
  const fields = Object.fromEntries(names.map((name, at) => [name, cells[at]!.trim()]));
  const { JobID = "", Submit = "", State = "", ExitCode = "" } = fields;
  const id = /^(\d+)(?:_(\d+|\[[^\]]*\]))?(\+\d+)?(?:\.(.+))?$/.exec(JobID);
  const submitS = secondsOf(Submit, utcOffsetS);
  if (id === null || submitS === null) return null;
  const [, number = "", task, component = "", step] = id;
  return {
    id: `${number}${component}`,
    array: task ?? null,
    tasks: task?.startsWith("[") ? tasksOf(task) : 1,
    step: step ?? null,
    submitS,
    fate: fateOf(State, ExitCode),
    told: `${State} ${ExitCode}`.trim(),
    fields,
  };
}

/** `2026-11-30T10:00:00` or seconds since 1970. */
function secondsOf(text: string, utcOffsetS: number): number | null {
  if (/^\d{9,11}$/.test(text)) return Number(text);
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text)) return null;
  const ms = Date.parse(`${text}Z`);
  return Number.isNaN(ms) ? null : ms / 1000 - utcOffsetS;
}

/** Tasks that wait under one id: `[2-9%2]`, `[1,5,7-9:2]`; one where the list was cut short. */
function tasksOf(list: string): number {
  let count = 0;
  for (const part of list.slice(1, -1).replace(/%\d+$/, "").split(",")) {
    const range = /^(\d+)(?:-(\d+)(?::(\d+))?)?$/.exec(part);
    if (range === null) continue;
    const [, from, to = from, step = "1"] = range;
    count += Math.floor((Number(to) - Number(from)) / Number(step)) + 1;
  }
  return Math.max(1, count);
}

function jobsOf(rows: readonly Row[]): RanJob[] {
  const jobs = new Map<string, Row[]>();
  for (const row of rows) {
    const key = `${row.fields.Cluster ?? ""} ${row.id}`;
    const known = jobs.get(key);
    if (known === undefined) jobs.set(key, [row]);
    else known.push(row);
  }
  return [...jobs.values()].flatMap((all) => jobOf(all) ?? []);
}

/** One job of its rows: tasks by themselves, of each the runs one after the other, of each run its steps. */
function jobOf(rows: readonly Row[]): RanJob | null {
  const [first] = rows.filter(({ step }) => step === null);
  if (first === undefined) return null;
  const tasks = new Map<string | null, Row[]>();
  for (const row of rows) tasks.set(row.array, [...(tasks.get(row.array) ?? []), row]);
  const fates: Partial<Record<Fate, number>> = {};
  let fate: Fate = "unknown";
  let told = first.told;
  let count = 0;
  let used: number | null = null;
  for (const task of tasks.values()) {
    const one = taskOf(task);
    const size = task[0]!.tasks;
    count += size;
    fates[one.fate] = (fates[one.fate] ?? 0) + size;
    if (worse(one.fate, fate) !== fate) ({ fate, told } = one);
    if (one.usedGb !== null) used = Math.max(used ?? 0, one.usedGb);
  }
  const { Cluster, User, Comment, ReqTRES } = first.fields;
  const own = (text: string | undefined) => (text === undefined || text === "" ? null : text);
  return {
    id: first.id,
    cluster: own(Cluster),
    user: own(User),
    comment:
      own(Comment) ?? rows.map(({ fields }) => own(fields.Comment)).find((text) => text !== null) ?? null,
    submitS: Math.min(...rows.filter(({ step }) => step === null).map(({ submitS }) => submitS)),
    cards: cardsOf(ReqTRES),
    tasks: count,
    fate,
    fates,
    told,
    usedGb: used,
  };
}

/** A task ends as its last run did, unless an earlier run, or a step of any, ran out of memory. */
function taskOf(rows: readonly Row[]): { fate: Fate; told: string; usedGb: number | null } {
  const runs = rows.filter(({ step }) => step === null);
  const steps = rows.filter(({ step }) => step !== null);
  const last = runs.reduce<Row | null>(
    (best, run) => (best === null || run.submitS >= best.submitS ? run : best),
    null,
  );
  const memory = rows.find(({ fate }) => fate === "memory");
  // A failed job's exit code is its script's; the step that was killed knows better.
  const killed = last?.fate === "failed" ? steps.find(({ fate }) => fate === "killed") : undefined;
  const from = memory ?? killed ?? last ?? rows[0]!;
  // Without cgroups Slurm's own watch over memory kills a job, and only the use that it saw says why.
  const over = from.fate === "killed" && usedItsMemory(rows);
  const gigabytes = rows.flatMap(({ fields }) => gpuMemoryGb(fields.TRESUsageInTot) ?? []);
  const where = from.step === null ? "" : ` (step ${from.step})`;
  return {
    fate: over ? "memory" : from.fate,
    told: `${from.told}${where}${over ? ", memory used up" : ""}`,
    usedGb: gigabytes.length === 0 ? null : Math.max(...gigabytes),
  };
}

/** Share of the memory asked for from which a killed job counts as one that ran out of it. */
const USED_UP = 0.97;

function usedItsMemory(rows: readonly Row[]): boolean {
  const asked = rows.map(({ fields }) => hostMemoryBytes(fields.ReqTRES)).find((bytes) => bytes !== null);
  const used = rows.flatMap(({ step, fields }) =>
    step === null ? [] : (hostMemoryBytes(fields.TRESUsageInTot) ?? []),
  );
  return asked != null && used.some((bytes) => bytes >= asked * USED_UP);
}
