import { openChunks } from "../host/chunks.ts";
import { nowMs } from "../host/clock.ts";
import { GateError } from "../lib/errors.ts";
import { grouped } from "../lib/units.ts";
import { JSON_HEAD, jsonJob, jsonTail, NO_JOBS, summaryLines, Table, withJob } from "../render/rightsize.ts";
import { Rightsizer, type RightsizeSettings } from "./rightsize.ts";
import { readColumns } from "./rightsize-columns.ts";
import { csvRecords } from "./rightsize-csv.ts";
import type { SizerHost } from "./size.ts";

export interface ReportOptions extends SizerHost {
  readonly json: boolean;
  /** Columns of the terminal; undefined where there is none. */
  readonly width: number | undefined;
}

/** A part of the report as it is printed, and how far it is, in one line for a terminal; null at the end. */
export interface Piece {
  readonly text: string;
  readonly progress: string | null;
}

export interface Report {
  /** What was noticed about the columns, sentences. */
  readonly notes: readonly string[];
  /** The report in parts; the file is read as they are taken. */
  pieces(): AsyncGenerator<Piece>;
  /** Why the report ended before the file did; null where it did not. */
  problem(): string | null;
}

/** Characters that are printed at once. */
const PIECE_LENGTH = 65_536;
/** A part is printed at least this often. */
const PIECE_MS = 100;
const USUAL_WIDTH = 130;

/**
 * Opens a table of jobs and reads its header. Throws `GateError("input-unreadable")` for a file that cannot be read
 * and `GateError("input-invalid")` for one whose header names no model.
 */
export function openReport(path: string, settings: RightsizeSettings, options: ReportOptions): Report {
  const opened = openChunks(path);
  if (!opened.ok) throw new GateError("input-unreadable", opened.error.message, "Name a readable CSV file.");
  const { size, next, close } = opened.value;
  let read = 0;
  let problem: string | null = null;
  const decoder = new TextDecoder();
  function* texts() {
    try {
      for (;;) {
        const chunk = next();
        if (!chunk.ok) {
          problem = chunk.error.message;
          return;
        }
        if (chunk.value.length === 0) break;
        read += chunk.value.length;
        yield decoder.decode(chunk.value, { stream: true });
      }
      yield decoder.decode();
    } finally {
      close();
    }
  }
  const records = csvRecords(texts());
  const first = records.next();
  if (problem !== null) throw new GateError("input-unreadable", problem, "Name a readable CSV file.");
  const name = path === "-" ? "standard input" : path;
  const header = first.done ? null : first.value;
  if (header === null || "problem" in header) {
    const why = header === null ? "is empty" : `cannot be read at line ${header.line}: ${header.problem}`;
    const hint =
      "The first line names the columns: job_id,model,gpu,hours,batch,seq_len,lora_rank,attention.";
    throw new GateError("input-invalid", `${name} ${why}`, hint);
  }
  const columns = readColumns(header.fields, name);
  const sizer = new Rightsizer(columns, settings, options);
  const table = new Table(options.width ?? USUAL_WIDTH);

  async function* pieces(): AsyncGenerator<Piece> {
    let text = options.json ? JSON_HEAD : table.head();
    let totals = NO_JOBS;
    let printedMs = nowMs();
    for (const record of records) {
      const job = await sizer.report(record, totals.jobs + 1);
      text += options.json ? `${totals.jobs === 0 ? "\n" : ",\n"}${jsonJob(job)}` : table.row(job);
      totals = withJob(totals, job);
      if (text.length < PIECE_LENGTH && nowMs() - printedMs < PIECE_MS) continue;
      yield { text, progress: progressLine(totals.jobs, read, size) };
      text = "";
      printedMs = nowMs();
    }
    const { priceSource } = settings.table;
    const end = options.json
      ? jsonTail(totals, priceSource, problem)
      : summaryLines(totals, settings.headroom, priceSource);
    yield { text: text + end, progress: null };
  }
  return { notes: columns.notes, pieces, problem: () => problem };
}

const BAR = 24;

function progressLine(jobs: number, read: number, size: number | null): string {
  const rows = `${grouped(jobs)} jobs`;
  if (size === null || size === 0) return rows;
  const share = Math.min(1, read / size);
  const full = Math.round(share * BAR);
  return `[${"#".repeat(full)}${".".repeat(BAR - full)}] ${Math.floor(share * 100)} %  ${rows}`;
}
