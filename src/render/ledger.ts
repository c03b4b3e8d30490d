import { GROUPINGS, type Group, type Grouping, type Report, type Totals } from "../ledger/totals.ts";
import type { Entry } from "../ledger/types.ts";
import { counted, cut, dollars, oneDecimal, printable } from "./text.ts";

/** A report and where it was read. */
export interface LedgerTold {
  readonly folder: string;
  /** First day that counts; null = all. */
  readonly since: string | null;
  /** Last day that counts; null = all. */
  readonly until?: string | null;
  /** Whose verdicts count; null = everyone's. */
  readonly user?: string | null;
  readonly report: Report;
  readonly files: number;
  readonly unread: readonly string[];
  readonly corrupt: number;
  readonly later: number;
}

/** Rows of one table; the document and the CSV have all. */
const MOST_ROWS = 20;
const KEY_WIDTH = 40;

export const TITLES: Readonly<Record<Grouping, string>> = {
  day: "day",
  user: "user",
  model: "model",
  card: "card",
  rule: "rule",
};

/** What `ledger` prints for people; `by` = one of the tables only. */
export function humanLedger(told: LedgerTold, by: Grouping | null = null): string {
  const { report, folder, since, files } = told;
  const { totals } = report;
  const { until = null, user = null } = told;
  const from = `${user === null ? "" : ` of ${printable(user)}`}${since === null ? "" : ` since ${since}`}${until === null ? "" : ` until ${until}`}`;
  const head = `${counted(totals.verdicts, "verdict")}${from} in ${printable(folder)} (${counted(files, "file")})`;
  const lines = [head, ...(totals.verdicts === 0 ? [] : summary(totals))];
  if (totals.verdicts > 0)
    for (const grouping of by === null ? (Object.keys(TITLES) as Grouping[]) : [by])
      lines.push("", ...table(report, grouping));
  return `${[...lines, ...troubles(told)].join("\n")}\n`;
}

function summary(totals: Totals): string[] {
  const { byDecision, stopped, stoppedWithoutPrice } = totals;
  const { allow, warn, rewrite, refuse, unjudged } = byDecision;
  const unpriced =
    stoppedWithoutPrice === 0 ? "" : `; ${stoppedWithoutPrice} of them with no hours or no price`;
  const rows: [string, string][] = [
    [
      "decisions",
      `${allow} allowed, ${warn} warned, ${rewrite} rewritten, ${refuse} refused, ${unjudged} not judged`,
    ],
    ["stopped", `${counted(stopped, "request")} refused before dispatch`],
    [
      "held back",
      `${oneDecimal(totals.gpuHoursHeldBack)} GPU-hours, ${dollars(totals.usdHeldBack)} at list price${unpriced}`,
    ],
    [
      "too large",
      `${counted(totals.overRequested, "over-request")}, ${dollars(totals.overUsd)} beyond what holds the jobs`,
    ],
    ["waivers", `${totals.waiversUsed} used`],
  ];
  return rows.map(([name, text]) => `  ${name.padEnd(11)}${text}`);
}

const HEAD = ["verdicts", "stopped", "GPU-hours", "held back", "over", "waivers"];

function table(report: Report, grouping: Grouping): string[] {
  const groups = report.by(grouping);
  // Of days the last are of interest, of all others the first.
  const shown = grouping === "day" ? groups.slice(-MOST_ROWS) : groups.slice(0, MOST_ROWS);
  const rows = [[TITLES[grouping], ...HEAD], ...shown.map(cells)];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join("  "),
  );
  const more = groups.length - shown.length;
  return more === 0 ? lines : [...lines, `${more} more ${grouping === "day" ? "before" : ""}`.trimEnd()];
}

function cells(group: Group): string[] {
  return [
    group.key === null ? "-" : cut(group.key, KEY_WIDTH - 3),
    String(group.verdicts),
    String(group.stopped),
    oneDecimal(group.gpuHoursHeldBack),
    dollars(group.usdHeldBack),
    String(group.overRequested),
    String(group.waiversUsed),
  ];
}

/** What is wrong with the ledger itself, a line each. */
export function troubles({ unread, corrupt, later }: LedgerTold): string[] {
  const lines = unread.map((message) => `Not read: ${printable(message)}.`);
  if (corrupt > 0) lines.push(`${counted(corrupt, "line")} passed over: half-written or no verdict.`);
  if (later > 0) lines.push(`${counted(later, "line")} passed over: written by a later neurarch-gate.`);
  return lines.length === 0 ? [] : ["", ...lines];
}

/** What `ledger --json` prints. Amounts are not rounded; a key that is null stands for entries that name none. */
export function ledgerDocument(told: LedgerTold): unknown {
  const { folder, since, until = null, user = null, report, files, unread, corrupt, later } = told;
  const by = (grouping: Grouping) => report.by(grouping);
  return {
    schema: "neurarch-gate/ledger",
    version: 1,
    folder,
    since,
    until,
    user,
    files,
    unread,
    corruptLines: corrupt,
    laterLines: later,
    totals: report.totals,
    ...Object.fromEntries(
      (Object.keys(GROUPINGS) as Grouping[]).map((grouping) => [`by${capital(grouping)}`, by(grouping)]),
    ),
  };
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** What `ledger --csv` prints: a row a verdict, in the order of time; a null is an empty field. */
export function ledgerCsv(entries: readonly Entry[], columns: readonly (keyof Entry)[]): string {
  const sorted = [...entries].sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  const rows = sorted.map((entry) => columns.map((column) => field(entry[column])).join(","));
  return `${[columns.join(","), ...rows].join("\r\n")}\r\n`;
}

/** What `ledger --csv --by` prints: a row for each day, user, model, card or rule. Amounts are not rounded. */
export function groupsCsv(grouping: Grouping, groups: readonly Group[]): string {
  const decisions = ["allow", "warn", "rewrite", "refuse", "unjudged"] as const;
  const head = [
    grouping,
    "verdicts",
    ...decisions,
    "stopped",
    "gpuHoursHeldBack",
    "usdHeldBack",
    "stoppedWithoutPrice",
    "overRequested",
    "overUsd",
    "waiversUsed",
  ];
  const rows = groups.map((group) =>
    [
      group.key,
      group.verdicts,
      ...decisions.map((decision) => group.byDecision[decision]),
      group.stopped,
      group.gpuHoursHeldBack,
      group.usdHeldBack,
      group.stoppedWithoutPrice,
      group.overRequested,
      group.overUsd,
      group.waiversUsed,
    ]
      .map(field)
      .join(","),
  );
  return `${[head.join(","), ...rows].join("\r\n")}\r\n`;
}

export function field(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  return csvText(printable(value));
}

function csvText(value: string): string {
  // A spreadsheet would take such a text for a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
