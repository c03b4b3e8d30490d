import { GateError } from "../lib/errors.ts";
import { shown } from "../lib/shown.ts";

/** What is wrong with a text and where: `message` is one sentence that names line and column. */
export interface Problem {
  /** `usage` when a flag is at fault and not the text. */
  readonly code: "input-invalid" | "usage";
  readonly message: string;
  readonly line: number | null;
  readonly column: number | null;
}

/** Thrown inside the reader and turned into a `Problem` at its door. */
export class Unreadable extends GateError {
  constructor(
    message: string,
    readonly line: number | null = null,
    readonly column: number | null = null,
    hint: string | null = null,
    override readonly code: "input-invalid" | "usage" = "input-invalid",
  ) {
    // Messages quote keys and values of the file, which can hold anything.
    super(code, shown(message, 1200), hint);
  }

  problem(): Problem {
    return { code: this.code, message: this.message, line: this.line, column: this.column };
  }
}

/** Line and column, from 1, of an offset. */
export function placeOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const lastBreak = before.lastIndexOf("\n");
  let line = 1;
  for (let i = before.indexOf("\n"); i !== -1; i = before.indexOf("\n", i + 1)) line += 1;
  return { line, column: offset - lastBreak };
}

/** Line numbers, from 1, of many offsets of one text. */
export function linesOf(text: string): (offset: number) => number {
  const starts = [0];
  for (let i = text.indexOf("\n"); i !== -1; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

/** An error about the value at an offset: `Line 3: MESSAGE`, with the place for editors. */
export function unreadableAt(text: string, at: number, message: string): Unreadable {
  const { line, column } = placeOf(text, at);
  return new Unreadable(`Line ${line}, column ${column}: ${message}`, line, column);
}

/** An error of the YAML itself, at an offset; `what` is the end of a sentence. */
export function syntaxError(text: string, offset: number, what: string): Unreadable {
  const { line, column } = placeOf(text, Math.min(offset, text.length));
  const why = shown(what, 200).replace(/[.\s]+$/, "");
  return new Unreadable(
    `The YAML cannot be read at line ${line}, column ${column}: ${why}.`,
    line,
    column,
    "SkyPilot reads task files as YAML 1.1",
  );
}
