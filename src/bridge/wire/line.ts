import { fail, ok, type Result } from "../../lib/result.ts";
import { shown } from "../../lib/shown.ts";

/** The version that every message names. */
export const PROTOCOL_VERSION = 2;
/** Most bytes of a request, and of an acknowledgement, with its line end. */
export const MAX_REQUEST_BYTES = 4096;
/** Most bytes of a frame, with its line end. */
export const MAX_FRAME_BYTES = 1_048_576;

/** One message: a JSON object, and which of its own numbers were written as whole numbers. */
export interface Message {
  readonly fields: Readonly<Record<string, unknown>>;
  /** Whether a field is a whole number as JSON has it: neither `true`, nor `"2"`, nor `2.0`. */
  isInt(key: string): boolean;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads a line, with or without its line end, as a JSON object in UTF-8. The error says what it is not. */
export function readLine(line: Uint8Array, what: string, maxBytes: number): Result<Message, string> {
  if (line.length > maxBytes) return fail(`${what} is larger than ${maxBytes} bytes`);
  let text: string;
  try {
    text = decoder.decode(line);
  } catch {
    return fail(`${what} is not UTF-8`);
  }
  const fractions = new Set<unknown>();
  let value: unknown;
  try {
    // Nearly every frame is output; its only number stands first and is whole.
    value = text.startsWith('{"version":2,"type":"std')
      ? JSON.parse(text)
      : JSON.parse(text, function (this: unknown, key, item, context?: { readonly source?: string }) {
          if (typeof item === "number" && !/^-?\d+$/.test(context?.source ?? String(item)))
            fractions.add(`${this === undefined ? "" : key}`);
          return item;
        });
  } catch {
    return fail(`${what} is not JSON`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return fail(`${what} is not a JSON object`);
  const fields = value as Readonly<Record<string, unknown>>;
  return ok({
    fields,
    isInt: (key) => Object.hasOwn(fields, key) && Number.isInteger(fields[key]) && !fractions.has(key),
  });
}

/** What is wrong with a message's keys: one that is unknown, by name, or one that is missing; null = nothing. */
export function keyProblem(
  message: Message,
  what: string,
  keys: { readonly needed: readonly string[]; readonly optional?: readonly string[] },
): string | null {
  const known = [...keys.needed, ...(keys.optional ?? [])];
  const unknown = Object.keys(message.fields).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    return `${what} has the unknown key${unknown.length === 1 ? "" : "s"} ${unknown
      .slice(0, 5)
      .map((key) => JSON.stringify(shown(key, 40)))
      .join(", ")}`;
  const missing = keys.needed.find((key) => !Object.hasOwn(message.fields, key));
  return missing === undefined ? null : `${what} has no ${missing}`;
}

/** What is wrong with a message's version; null = nothing. */
export function versionProblem(message: Message, what: string): string | null {
  if (message.isInt("version") && message.fields.version === PROTOCOL_VERSION) return null;
  return `${what} has another version than ${PROTOCOL_VERSION}`;
}

/** A list of texts, or null. */
export function textList(value: unknown): readonly string[] | null {
  return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : null;
}

/** One line of at most `most` characters: line ends become blanks, broken surrogates U+FFFD. */
export function oneLine(text: string, most: number): string {
  const flat = text
    .slice(0, most * 2)
    .toWellFormed()
    .replace(/[\r\n]/g, " ");
  return flat.length <= most ? flat : Array.from(flat).slice(0, most).join("");
}
