import { fail, ok, type Result } from "../../lib/result.ts";
import { withoutAnsi } from "./ansi.ts";

/** A JSON document in a command's output, and the text that stood before it. */
export interface JsonOutput {
  readonly value: unknown;
  /** Without colours, trimmed. */
  readonly notice: string;
}

const MAX_NOTICE_CHARACTERS = 20_000;
const MAX_TRIES = 40;

/**
 * Finds the JSON in what `sky status` or `sky queue` printed: it begins at a line whose first visible character is `[`
 * or `{` and runs to the end. Before it stand banners, refresh notices and error texts; one of those may begin with a
 * bracket too (`[sky.exceptions.CommandError] ...`), so every such line is tried, and text after the document (an
 * upgrade hint) is let pass.
 */
export function jsonIn(stdout: string): Result<JsonOutput, "none"> {
  const text = withoutAnsi(stdout);
  let tries = 0;
  for (const found of text.matchAll(/^[ \t]*([[{])/gm)) {
    // Each try may read to the end: of a flood of brackets, only the first are tried.
    if (++tries > MAX_TRIES) break;
    const from = found.index;
    const value = parsed(text.slice(from)) ?? parsedUntilClose(text, from, found[1] === "[" ? "]" : "}");
    if (value !== undefined && typeof value === "object" && value !== null)
      return ok({ value, notice: text.slice(0, from).trim().slice(0, MAX_NOTICE_CHARACTERS) });
  }
  return fail("none");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The document alone, when lines follow it: it ends where its closing bracket is a line, or ends its own line. */
function parsedUntilClose(text: string, from: number, close: string): unknown {
  const lineEnd = text.indexOf("\n", from);
  const sameLine = parsed(lineEnd === -1 ? text.slice(from) : text.slice(from, lineEnd));
  if (sameLine !== undefined) return sameLine;
  const end = text.indexOf(`\n${close}\n`, from);
  return end === -1 ? undefined : parsed(text.slice(from, end + 2));
}
