import { type Reconciled, type ReconcileTotals, SAID, type Said } from "../ledger/reconcile.ts";
import { FATES, type Fate } from "../lib/ran-job.ts";
import { field } from "./ledger.ts";
import { counted, printable } from "./text.ts";

/** What `ledger reconcile` has to tell. */
export interface ReconcileTold {
  readonly source: "sacct" | "sky";
  readonly folder: string;
  readonly since: string | null;
  readonly until: string | null;
  readonly user: string | null;
  readonly rows: readonly Reconciled[];
  readonly totals: ReconcileTotals;
  /** Jobs that accounting told of, and rows of it that could not be read. */
  readonly jobs: number;
  readonly unreadRows: number;
}

const WORDS: Readonly<Record<Said, string>> = {
  refused: "refused, let run",
  waived: "refused, waived",
  "over-requested": "over-requested",
  warned: "warned",
  allowed: "allowed",
  rewritten: "rewritten",
  unjudged: "not judged",
};

const FATE_WORDS: Readonly<Record<Fate, string>> = {
  memory: "out of memory",
  killed: "killed",
  failed: "failed",
  timeout: "time limit",
  lost: "lost",
  cancelled: "cancelled",
  open: "not ended",
  done: "completed",
  unknown: "unknown",
};

/** What accounting cannot tell. */
export const LIMITS = [
  "out of memory = the scheduler says so, of the host's memory; killed = SIGKILL (exit 137, which sacct prints as 9:0), mostly the same.",
  "A CUDA out-of-memory error cannot be seen: the program ends with a code of its own, which counts as failed.",
] as const;

/** Fates that have no column where nothing ended so. */
const RARE: readonly Fate[] = ["timeout", "lost", "cancelled", "open", "unknown"];

/** What people read: a line a kind of verdict, and what the numbers cannot say. */
export function humanReconcile(told: ReconcileTold): string {
  const { totals, source, folder, jobs, unreadRows } = told;
  const { matched, stopped, notFound, repeated, over } = totals;
  const lines = [
    `${counted(totals.verdicts, "verdict")} in ${printable(folder)}, ${counted(jobs, "job")} from ${source === "sky" ? "sky jobs queue" : "sacct"}`,
    `  ${matched} matched to a job, ${stopped} stopped before one, ${notFound} without a job${repeated === 0 ? "" : `, ${repeated} asked again for the same job`}`,
  ];
  if (matched > 0) lines.push("", ...table(totals));
  const checked = over.real + over["not-real"] + over["not-said"];
  if (checked > 0) {
    const unsaid =
      over["not-said"] === 0 ? "" : `, ${over["not-said"]} not said (no gres/gpumem in the accounting)`;
    lines.push(
      "",
      `Over-requests that ran: ${over.real} real (used no more than we said), ${over["not-real"]} not real${unsaid}.`,
    );
  }
  if (matched > 0) lines.push("", ...LIMITS);
  if (unreadRows > 0) lines.push("", `${counted(unreadRows, "row")} of the accounting could not be read.`);
  return `${lines.join("\n")}\n`;
}

function table({ bySaid }: ReconcileTotals): string[] {
  const kinds = SAID.filter((said) => bySaid[said].jobs > 0);
  const fates = FATES.filter((fate) => !RARE.includes(fate) || kinds.some((said) => bySaid[said][fate] > 0));
  const rows = [
    ["verdict", "jobs", ...fates.map((fate) => FATE_WORDS[fate])],
    ...kinds.map((said) => [
      WORDS[said],
      String(bySaid[said].jobs),
      ...fates.map((fate) => String(bySaid[said][fate])),
    ]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join("  "),
  );
}

/** One row a verdict, for the document and the CSV. */
function rowOf({ entry, said, match, job, over }: Reconciled) {
  return {
    time: entry.time,
    id: entry.id ?? null,
    adapter: entry.adapter,
    user: entry.user,
    cluster: entry.cluster,
    model: entry.model,
    request: entry.request,
    needGb: entry.needGb,
    requestGb: entry.requestGb,
    verdict: said,
    rule: entry.rule,
    match,
    jobId: job?.id ?? null,
    fate: job?.fate ?? null,
    told: job?.told ?? null,
    tasks: job?.tasks ?? null,
    tasksOutOfMemory: job === null ? null : (job.fates.memory ?? 0) + (job.fates.killed ?? 0),
    usedGb: job?.usedGb ?? null,
    overRequest: over,
  };
}

/** What `ledger reconcile --json` prints. */
export function reconcileDocument(told: ReconcileTold): unknown {
  const { source, folder, since, until, user, totals, rows, jobs, unreadRows } = told;
  return {
    schema: "neurarch-gate/reconcile",
    version: 1,
    source,
    folder,
    since,
    until,
    user,
    jobs,
    unreadRows,
    totals: {
      verdicts: totals.verdicts,
      matched: totals.matched,
      stopped: totals.stopped,
      notFound: totals.notFound,
      repeated: totals.repeated,
      byVerdict: totals.bySaid,
      overRequests: {
        real: totals.over.real,
        notReal: totals.over["not-real"],
        notSaid: totals.over["not-said"],
      },
    },
    verdicts: rows.map(rowOf),
    limits: LIMITS,
  };
}

/** What `ledger reconcile --csv` prints: a row a verdict. */
export function reconcileCsv({ rows }: ReconcileTold): string {
  const all = rows.map(rowOf).sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  const columns = [
    "time",
    "id",
    "adapter",
    "user",
    "cluster",
    "model",
    "request",
    "needGb",
    "requestGb",
    "verdict",
    "rule",
    "match",
    "jobId",
    "fate",
    "told",
    "tasks",
    "tasksOutOfMemory",
    "usedGb",
    "overRequest",
  ] as const satisfies readonly (keyof ReturnType<typeof rowOf>)[];
  const lines = all.map((row) => columns.map((column) => field(row[column])).join(","));
  return `${[columns.join(","), ...lines].join("\r\n")}\r\n`;
}
