import { asBuffer, hasAt, NEWLINE, withoutAnsi } from "./ansi.ts";
import { type DriverSaid, GLUED, glueIn, heedDriverLine, isDriverLine } from "./driver-lines.ts";

/** `(task, pid=12) `, `(head, rank=0, pid=12) `, `(worker1, rank=1, pid=12, ip=10.0.0.2) `, `(setup pid=12) `, coloured. */
const PREFIX =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the prefix is coloured
  /^(?:\x1b\[36m)?\((?:setup |[^()\n]{1,200}?, (?:rank=\d+, )?)pid=\d+(?:, ip=[\w.:]+)?\)(?:\x1b\[0m)? /;
const MAX_PREFIX_BYTES = 300;

/** bash is started as an interactive one and finds no rc file in the job's home. */
const NO_BASHRC = /^bash: .*\/\.sky_clusters\/[^/]+\/\.bashrc: No such file or directory\r?$/;
const NO_BASHRC_WORDS = Buffer.from("/.bashrc: No such file or directory");

const GLUED_WORDS = GLUED.map((words) => Buffer.from(words, "latin1"));
/** Longest line that is held as a whole; more of it passes as it comes. */
const MAX_LINE_BYTES = 65_536;

/**
 * Takes SkyPilot's decoration off a job's log: the prefix of each line goes, the lines of the driver, of srun and of
 * the step daemon go and are read (`said`), and the program's own bytes are handed on. Works on whole lines, as
 * SkyPilot hands them out; of a very long line, pieces.
 */
export class Undecorator {
  private rest: Buffer | null = null;
  /** We are inside a long line: its beginning was handed on, or (false) dropped. */
  private inside: "handed" | "dropped" | null = null;
  private prefix: Buffer = Buffer.alloc(0);
  private inTraceback = false;
  private started = false;
  private over = false;
  /** A program line that may end in the driver's words: the next line tells. */
  private held: { readonly line: Buffer; readonly glueAt: number } | null = null;

  constructor(
    private readonly jobId: number,
    private readonly said: DriverSaid,
  ) {}

  /** Hands the program's bytes on; they are valid during the call only. */
  take(chunk: Uint8Array, emit: (piece: Uint8Array) => void): void {
    let data = asBuffer(chunk);
    if (this.rest !== null) {
      data = Buffer.concat([this.rest, data]);
      this.rest = null;
    }
    const suspicious =
      this.held !== null ||
      data.includes(NO_BASHRC_WORDS) ||
      GLUED_WORDS.some((words) => data.includes(words));
    // The program's bytes of this chunk are gathered in one piece: they are never more than the chunk.
    const out = Buffer.allocUnsafe(data.length);
    let filled = 0;
    let from = 0;
    if (this.inside !== null) {
      const end = data.indexOf(NEWLINE);
      const until = end === -1 ? data.length : end + 1;
      if (this.inside === "handed") filled += data.copy(out, filled, 0, until);
      if (end !== -1) this.inside = null;
      from = until;
    }
    for (;;) {
      const end = data.indexOf(NEWLINE, from);
      if (end === -1) break;
      const own = this.prefixLength(data, from, end);
      if (own > 0 && !suspicious) {
        this.started = true;
        this.inTraceback = false;
        filled += data.copy(out, filled, from + own, end + 1);
      } else {
        if (filled > 0) emit(out.subarray(0, filled));
        filled = 0;
        this.slowLine(data, from, end, own, emit);
      }
      from = end + 1;
    }
    if (filled > 0) emit(out.subarray(0, filled));
    const waiting = data.length - from;
    if (waiting > MAX_LINE_BYTES) this.longLine(data.subarray(from), emit);
    else if (waiting > 0) this.rest = Buffer.from(data.subarray(from));
  }

  /** `final`: the stream came to its own end, so an unfinished last line is the program's. */
  end(final: boolean, emit: (piece: Uint8Array) => void): void {
    const { rest } = this;
    this.rest = null;
    if (rest !== null) {
      const own = this.prefixLength(rest, 0, rest.length);
      if (own === 0) this.driverLine(rest, final ? emit : () => undefined);
      else if (final) {
        const glue = glueIn(rest.toString("latin1", own), this.jobId);
        this.release(false, emit);
        if (glue === null) emit(rest.subarray(own));
        else this.split(rest.subarray(own), glue.at, emit);
      }
    }
    if (final) this.release(true, emit);
  }

  /** Length of the prefix of the line at `from`; 0 when it has none. */
  private prefixLength(data: Buffer, from: number, end: number): number {
    if (this.prefix.length > 0 && hasAt(data, this.prefix, from)) return this.prefix.length;
    const first = data[from];
    if (first !== 0x1b && first !== 0x28) return 0;
    const found = PREFIX.exec(data.toString("latin1", from, Math.min(end, from + MAX_PREFIX_BYTES)));
    if (found === null) return 0;
    this.prefix = Buffer.from(data.subarray(from, from + found[0].length));
    return found[0].length;
  }

  /** A line that is not simply the program's, or that the chunk made us look at more closely. */
  private slowLine(
    data: Buffer,
    from: number,
    end: number,
    own: number,
    emit: (piece: Uint8Array) => void,
  ): void {
    if (own === 0) {
      this.driverLine(data.subarray(from, end + 1), emit);
      return;
    }
    this.release(false, emit);
    this.started = true;
    this.inTraceback = false;
    const line = data.subarray(from + own, end + 1);
    const text = line.length > MAX_LINE_BYTES ? "" : line.toString("latin1", 0, line.length - 1);
    if (text.startsWith("bash: ") && NO_BASHRC.test(text)) return;
    const glue = glueIn(text, this.jobId);
    if (glue === null) emit(line);
    else if (glue.sure) this.split(line, glue.at, emit);
    else this.held = { line: Buffer.from(line), glueAt: glue.at };
  }

  /** A line without a prefix: the driver's, or of the program where the prefix got lost. */
  private driverLine(line: Buffer, emit: (piece: Uint8Array) => void): void {
    this.release(true, emit);
    const text = line.toString("utf8", 0, Math.min(line.length, MAX_LINE_BYTES)).replace(/\n$/, "");
    const plain = withoutAnsi(text);
    heedDriverLine(text, this.jobId, this.said);
    if (plain.startsWith("✓ Job finished (status: ")) this.over = true;
    if (plain.startsWith("Traceback (most recent call last):")) this.inTraceback = true;
    else if (this.inTraceback) {
      if (plain !== "" && !plain.startsWith(" ")) this.inTraceback = false;
      return;
    }
    // Better a line too much than one of the program's too few.
    if (this.started && !this.over && plain.trim() !== "" && !isDriverLine(plain)) emit(line);
  }

  /** The line that was held: `glued` = the driver's words follow it, so they were not the program's. */
  private release(glued: boolean, emit: (piece: Uint8Array) => void): void {
    const { held } = this;
    if (held === null) return;
    this.held = null;
    if (glued) this.split(held.line, held.glueAt, emit);
    else emit(held.line);
  }

  private split(line: Buffer, at: number, emit: (piece: Uint8Array) => void): void {
    emit(line.subarray(0, at));
    const words = line.toString("utf8", at).replace(/\n$/, "");
    heedDriverLine(words, this.jobId, this.said);
    if (withoutAnsi(words).startsWith("✓ Job finished")) this.over = true;
  }

  private longLine(line: Buffer, emit: (piece: Uint8Array) => void): void {
    const own = this.prefixLength(line, 0, line.length);
    this.release(own === 0, emit);
    this.inside = own > 0 || this.started ? "handed" : "dropped";
    if (this.inside === "handed") emit(line.subarray(own));
  }
}
