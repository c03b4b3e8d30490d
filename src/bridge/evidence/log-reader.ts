import { asBuffer, NEWLINE, withoutAnsi } from "./ansi.ts";
import { type DriverSaid, noteCause } from "./driver-lines.ts";
import { type Marked, MarkerFilter } from "./marker-filter.ts";
import { Undecorator } from "./undecorate.ts";

/** What a job's log said besides the program's own output. */
export interface LogSaid extends Marked {
  readonly finished: string | null;
  readonly listedExit: number | null;
  readonly causes: readonly string[];
  readonly style: "plain" | "decorated";
}

/** Sky's own announcement is looked for in so many lines; what comes after them is the program's for certain. */
const HEAD_LINES = 64;
/** A longer line is no announcement. */
const MAX_HEAD_LINE_BYTES = 500;
/** In plain style the last words of the log are evidence as well; so much of its end is kept for that. */
const TAIL_BYTES = 2048;

/** How lines begin that sky prints before a log. */
const CHATTER = [
  "SkyPilot API server",
  "Starting SkyPilot",
  "├── ",
  "└── ",
  "✓ ",
  "⚙︎ ",
  "Failed to connect to SkyPilot",
];

/**
 * Reads `sky logs`: the program's own bytes on one side, what SkyPilot, Slurm and our markers said on the other.
 *
 * Whether the log is decorated is told by its beginning: SkyPilot announces `Tailing logs of job 4 on cluster 'c1'...`.
 * Without that, every byte is the program's, whatever it looks like. Nothing here depends on how the stream was cut
 * into chunks, so that a log that is read again from its start gives the same bytes again.
 */
export class LogReader {
  private readonly filter: MarkerFilter;
  private readonly undecorator: Undecorator;
  private readonly header: string;
  private readonly said: DriverSaid = { finished: null, listedExit: null, causes: [] };
  private style: "open" | "plain" | "decorated" = "open";
  private headLines = 0;
  /** The beginning of an unfinished line was handed on already. */
  private insideLine = false;
  /** Lines that sky may have printed, kept until it is known whose they are. */
  private chatter: Buffer[] = [];
  private rest: Buffer | null = null;
  private tail: Buffer = Buffer.alloc(0);

  constructor(options: { readonly clusterName: string; readonly jobId: number; readonly nonce: string }) {
    this.filter = new MarkerFilter(options.nonce);
    this.undecorator = new Undecorator(options.jobId, this.said);
    this.header = `Tailing logs of job ${options.jobId} on cluster '${options.clusterName}'...`;
  }

  /** Hands the program's bytes on; a piece is valid during the call only. */
  take(chunk: Uint8Array, emit: (piece: Uint8Array) => void): void {
    if (chunk.length === 0) return;
    if (this.style === "decorated") {
      this.undecorator.take(chunk, (piece) => this.filter.take(piece, emit));
      return;
    }
    if (this.headLines < HEAD_LINES) this.takeHead(asBuffer(chunk), emit);
    else this.takePlain(asBuffer(chunk), emit);
  }

  /**
   * The stream is over. `final`: it came to its own end (an exit code that only a finished job has), so what was held
   * back is handed on; of a stream that was cut it is not, for the next reading gives it again.
   */
  end(final: boolean, emit: (piece: Uint8Array) => void): LogSaid {
    if (this.rest !== null) {
      const { rest } = this;
      this.rest = null;
      if (this.headLine(rest, emit) && final) this.takePlain(rest, emit);
    }
    if (this.style !== "decorated" && final) this.passChatter(emit);
    if (this.style === "decorated") this.undecorator.end(final, (piece) => this.filter.take(piece, emit));
    else this.readTail();
    const finished = this.said.finished !== null;
    const marked = this.filter.end(final || finished, emit);
    return { ...marked, ...this.said, style: this.style === "decorated" ? "decorated" : "plain" };
  }

  private takeHead(chunk: Buffer, emit: (piece: Uint8Array) => void): void {
    const data = this.rest === null ? chunk : Buffer.concat([this.rest, chunk]);
    this.rest = null;
    let from = 0;
    while (this.headLines < HEAD_LINES) {
      const end = data.indexOf(NEWLINE, from);
      if (end === -1) break;
      this.headLines++;
      const line = data.subarray(from, end + 1);
      from = end + 1;
      if (this.insideLine || this.headLine(line, emit)) this.takePlain(line, emit);
      this.insideLine = false;
      if (this.style === "decorated") {
        this.take(data.subarray(from), emit);
        return;
      }
    }
    const last = data.subarray(from);
    if (last.length === 0) return;
    if (this.headLines < HEAD_LINES && !this.insideLine && couldBeHead(last, this.header)) {
      this.rest = Buffer.from(last);
      return;
    }
    this.passChatter(emit);
    this.takePlain(last, emit);
    this.insideLine = true;
  }

  /** True when a whole line of the beginning is the program's and not yet handed on. */
  private headLine(line: Buffer, emit: (piece: Uint8Array) => void): boolean {
    const raw = line.length > MAX_HEAD_LINE_BYTES ? "" : line.toString("utf8");
    if (trimmed(withoutAnsi(raw)) === this.header) {
      this.style = "decorated";
      this.chatter = [];
      return false;
    }
    if (this.style === "open" && line.length <= MAX_HEAD_LINE_BYTES && isChatter(raw)) {
      this.chatter.push(Buffer.from(line));
      return false;
    }
    this.passChatter(emit);
    return true;
  }

  /** What was kept as perhaps sky's was the program's. */
  private passChatter(emit: (piece: Uint8Array) => void): void {
    this.style = "plain";
    const kept = this.chatter;
    this.chatter = [];
    for (const line of kept) this.takePlain(line, emit);
  }

  private takePlain(data: Buffer, emit: (piece: Uint8Array) => void): void {
    this.tail =
      data.length >= TAIL_BYTES
        ? Buffer.from(data.subarray(data.length - TAIL_BYTES))
        : Buffer.concat([this.tail, data]).subarray(-TAIL_BYTES);
    this.filter.take(data, emit);
  }

  /** The last lines of an undecorated log: srun's and the step daemon's words would stand there. */
  private readTail(): void {
    const lines = this.tail.toString("utf8").split("\n").slice(-6);
    for (const line of lines)
      if (/^(?:srun|slurmstepd[\w.-]*): error: /.test(line)) noteCause(withoutAnsi(line), this.said);
  }
}

/** Without the blanks of ASCII around it: those are told from others before a line has come whole. */
function trimmed(text: string): string {
  return text.replace(/^[\t-\r ]+|[\t-\r ]+$/g, "");
}

/** Whether a line is what sky prints before a log: coloured, empty, or with words of its own. */
function isChatter(line: string): boolean {
  return trimmed(line) === "" || line.startsWith("\x1b") || CHATTER.some((start) => line.startsWith(start));
}

/** Whether an unfinished line may become sky's announcement or chatter. */
function couldBeHead(line: Buffer, header: string): boolean {
  if (line.length > MAX_HEAD_LINE_BYTES) return false;
  const raw = line.toString("latin1");
  // An escape sequence may not be whole yet, and the announcement may stand behind blanks.
  const text = trimmed(withoutAnsi(raw).split("\x1b")[0] ?? "");
  if (text === "" || raw.startsWith("\x1b")) return true;
  return [header, ...CHATTER].some((start) => {
    const bytes = Buffer.from(start).toString("latin1");
    return bytes.startsWith(text) || text.startsWith(bytes);
  });
}
