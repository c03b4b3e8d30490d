import type { CardCount, Decision, Fit, RuleId } from "../verdict/types.ts";
import { hang } from "./human.ts";
import { jsonText } from "./json-line.ts";
import { counted, cut, dollars, oneDecimal, plain, printable, unstopped } from "./text.ts";

/** What the report says of one job. Amounts in GB are 1e9 bytes, not rounded. */
export interface JobReport {
  readonly jobId: string;
  readonly model: string | null;
  /** The request as messages name it: `H100:8`; null where the row asks for none. */
  readonly request: string | null;
  readonly requestGb: number | null;
  /** Training peak at the global batch; null where the job could not be sized. */
  readonly peakGb: number | null;
  readonly needGb: number | null;
  readonly seqLen: number | null;
  readonly params: number | null;
  readonly decision: Exclude<Decision, "rewrite">;
  readonly fit: Fit | null;
  readonly rule: RuleId | null;
  /** The smallest request that holds the job, as suggestions choose it. */
  readonly smallest: CardCount | null;
  /** Of an over-request: list price an hour less that of `smallest`; null without a price. */
  readonly usdSavedPerHour: number | null;
  /** The same over the row's hours. */
  readonly usdSaved: number | null;
  /** Why the job has no size, or why its request was not judged; else null. */
  readonly reason: string | null;
  /** What had to be assumed for the size, a sentence each. */
  readonly assumed: readonly string[];
}

/** The totals at the end of a report. */
export interface ReportTotals {
  readonly jobs: number;
  readonly tooSmall: number;
  readonly rightSized: number;
  readonly overRequested: number;
  readonly notJudged: number;
  readonly usdSavedPerHour: number;
  readonly usdSaved: number;
}

export const NO_JOBS: ReportTotals = {
  jobs: 0,
  tooSmall: 0,
  rightSized: 0,
  overRequested: 0,
  notJudged: 0,
  usdSavedPerHour: 0,
  usdSaved: 0,
};

/** The totals with one more job. */
export function withJob(totals: ReportTotals, job: JobReport): ReportTotals {
  return {
    jobs: totals.jobs + 1,
    tooSmall: totals.tooSmall + Number(job.fit === "under"),
    rightSized: totals.rightSized + Number(job.fit === "right-sized"),
    overRequested: totals.overRequested + Number(job.fit === "over"),
    notJudged: totals.notJudged + Number(job.fit === null),
    usdSavedPerHour: totals.usdSavedPerHour + (job.usdSavedPerHour ?? 0),
    usdSaved: totals.usdSaved + (job.usdSaved ?? 0),
  };
}

export const JSON_HEAD = '{"schema":"neurarch-gate/rightsize","version":1,"jobs":[';

/**
 * A job in the document: first the keys that the published neurarch packages read (`reason` says why there is no
 * peak, so it is null where there is one), then ours.
 */
export function jsonJob(job: JobReport): string {
  const { jobId, peakGb, seqLen, params, reason, ...more } = job;
  const why = peakGb === null ? { reason, unjudged: null } : { reason: null, unjudged: reason };
  return jsonText({ jobId, peakGb, seqLen, params, ...why, ...more });
}

/** What closes the document; `error` says why the report ends before the file does. */
export function jsonTail(totals: ReportTotals, priceSource: string, error: string | null): string {
  return `\n],"summary":${JSON.stringify(totals)},"priceSource":${JSON.stringify(priceSource)},"error":${JSON.stringify(error)}}\n`;
}

/** Columns beside the model's: job, request, need, verdict, smallest, saved. */
const WIDTHS = { job: 16, request: 16, need: 10, verdict: 14, smallest: 14, saved: 11 } as const;
const NARROWEST_MODEL = 20;
const WIDEST_MODEL = 44;

/** The table's columns have fixed widths, as its rows are printed before the next ones are read. */
export class Table {
  readonly #model: number;

  constructor(readonly width: number) {
    const others = Object.values(WIDTHS).reduce((sum, column) => sum + column + 2, 0);
    this.#model = Math.min(WIDEST_MODEL, Math.max(NARROWEST_MODEL, width - others));
  }

  head(): string {
    return this.#row({
      job: "job",
      model: "model",
      request: "requested",
      need: "needs",
      verdict: "verdict",
      smallest: "smallest",
      saved: "saves",
    });
  }

  row(job: JobReport): string {
    const { needGb, smallest, usdSavedPerHour, reason } = job;
    const line = this.#row({
      job: cut(job.jobId, WIDTHS.job - 3),
      model: cut(job.model ?? "-", this.#model - 3),
      request: cut(job.request ?? "-", WIDTHS.request - 3),
      need: needGb === null ? "-" : `${oneDecimal(needGb)} GB`,
      verdict: word(job),
      smallest:
        smallest === null ? "-" : cut(`${smallest.accelerator}:${smallest.count}`, WIDTHS.smallest - 3),
      saved: usdSavedPerHour === null ? "" : `${dollars(usdSavedPerHour)}/h`,
    });
    if (reason === null) return line;
    return `${line}${hang(`    ${printable(reason)}`, this.width).join("\n")}\n`;
  }

  #row(cells: Record<"model" | keyof typeof WIDTHS, string>): string {
    const { job, request, need, verdict, smallest, saved } = WIDTHS;
    const line = [
      cells.job.padEnd(job),
      cells.model.padEnd(this.#model),
      cells.request.padEnd(request),
      cells.need.padStart(need),
      cells.verdict.padEnd(verdict),
      cells.smallest.padEnd(smallest),
      cells.saved.padStart(saved),
    ];
    return `${line.join("  ").trimEnd()}\n`;
  }
}

function word({ fit, rule }: JobReport): string {
  if (fit === null) return "not judged";
  if (fit === "under") return "too small";
  if (rule === "admission/cost-cap") return "over the cap";
  if (fit === "over") return "over-requested";
  return rule === "admission/borderline-fit" ? "borderline" : "right-sized";
}

/** The report's last lines, for people. */
export function summaryLines(totals: ReportTotals, headroom: number, priceSource: string): string {
  const { jobs, tooSmall, rightSized, overRequested, notJudged, usdSavedPerHour, usdSaved } = totals;
  const lines = [
    "",
    `${counted(jobs, "job")}: ${tooSmall} too small, ${rightSized} right-sized, ${overRequested} over-requested, ${notJudged} not judged.`,
    `Needs are the training peak x ${plain(headroom)}, all cards of a request sharing one job.`,
  ];
  if (overRequested > 0) {
    const over = usdSaved > 0 ? `, ${dollars(usdSaved)} over the hours that the rows state` : "";
    lines.push(
      `The smallest requests that hold the over-requested jobs cost ${dollars(usdSavedPerHour)} an hour less${over} (${unstopped(printable(priceSource))}).`,
    );
  }
  return `${lines.join("\n")}\n`;
}
