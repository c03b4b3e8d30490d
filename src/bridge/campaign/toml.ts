import { parse, TomlError } from "smol-toml";
import * as v from "valibot";
import type { ErrorCode } from "../../lib/errors.ts";
import { GateError } from "../../lib/errors.ts";
import { nearest } from "../../lib/nearest.ts";
import { shown } from "../../lib/shown.ts";

/** A file as it was read: the name is for messages. */
export interface FileText {
  readonly path: string;
  readonly text: string;
}

/**
 * Reads a file of the campaign against its schema. No message repeats a value: some of them are secrets.
 * Throws `GateError(code)` naming the file, the line or the key, and what to write.
 */
export function readToml<Schema extends v.GenericSchema>(
  schema: Schema,
  file: FileText,
  code: ErrorCode,
): v.InferOutput<Schema> {
  let raw: unknown;
  try {
    raw = parse(file.text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const why = (error.message.split("\n")[0] ?? "").replace(/^Invalid TOML document: /, "");
    throw new GateError(
      code,
      `${file.path}:${error.line}:${error.column} is not TOML: ${shown(why, 200)}`,
      "Correct the line.",
    );
  }
  return checked(schema, raw, file.path, code);
}

/** As `readToml`, of a JSON text. */
export function readJson<Schema extends v.GenericSchema>(
  schema: Schema,
  file: FileText,
  code: ErrorCode,
): v.InferOutput<Schema> {
  let raw: unknown;
  try {
    raw = JSON.parse(file.text);
  } catch {
    throw new GateError(code, `${file.path} is not JSON`, "Move the file away, or name another folder.");
  }
  return checked(schema, raw, file.path, code);
}

function checked<Schema extends v.GenericSchema>(
  schema: Schema,
  raw: unknown,
  path: string,
  code: ErrorCode,
): v.InferOutput<Schema> {
  const list = listForTable(schema, raw, []);
  if (list !== null)
    throw new GateError(
      code,
      `\`${shown(list.join("."), 120)}\` in ${path} is a list, not a table`,
      `Write it as [${shown(list.join("."), 120)}] and KEY = VALUE lines.`,
    );
  const result = v.safeParse(schema, raw);
  if (result.success) return result.output;
  // A misspelled key is also a missing one; its own name helps more.
  const issue = result.issues.find(({ expected }) => expected === "never") ?? result.issues[0];
  const steps = (issue.path ?? []).map((item: { key: unknown }) => String(item.key));
  const key = shown(steps.join("."), 120);
  if (issue.type === "strict_object") {
    const parent = partAt(schema, steps.slice(0, -1));
    const entries = parent !== null && "entries" in parent ? (parent.entries as Entries) : {};
    const last = steps.at(-1);
    if (last === undefined) throw new GateError(code, `${path} is not a table`, "Write KEY = VALUE lines.");
    if (issue.expected === "never") {
      const known = Object.keys(entries);
      const near = nearest(last, known);
      throw new GateError(
        code,
        `${path} has the unknown key \`${key}\``,
        near === null ? `Known keys: ${known.join(", ")}.` : `Did you mean \`${near}\`?`,
      );
    }
    const wanted = entries[last];
    if (issue.received === "undefined" && wanted !== undefined) {
      const [what, remedy] = said(messageOf(wanted));
      throw new GateError(code, `${path} has no \`${key}\`${what === "" ? "" : `: ${what}`}`, remedy);
    }
    throw new GateError(code, `\`${key}\` in ${path} is not a table`, `Write it as [${key}].`);
  }
  const [what, remedy] = said(issue.message);
  throw new GateError(code, `\`${key || "the whole"}\` in ${path} is not ${what}`, remedy);
}

/** Where a list stands in place of a table, as steps from the top; valibot takes a list for an object. */
export function listForTable(
  schema: v.GenericSchema,
  raw: unknown,
  steps: readonly string[],
): readonly string[] | null {
  const part = bare(schema);
  const isTable = "entries" in part || "key" in part;
  if (!isTable || typeof raw !== "object" || raw === null) return null;
  if (Array.isArray(raw)) return steps;
  for (const [key, item] of Object.entries(raw)) {
    const inner = partAt(part, [key]);
    const found = inner === null ? null : listForTable(inner, item, [...steps, key]);
    if (found !== null) return found;
  }
  return null;
}

type Entries = Readonly<Record<string, v.GenericSchema | undefined>>;

/** The two lines of a message: what the value is to be, and what to write. */
function said(message: string): [string, string] {
  const [what = "", remedy = ""] = message.split("\n");
  return [what, remedy === "" ? "Correct the value." : remedy];
}

/** A schema without what is wrapped around it. */
export function bare(schema: v.GenericSchema): v.GenericSchema {
  if ("wrapped" in schema) return bare(schema.wrapped as v.GenericSchema);
  if ("pipe" in schema) {
    const first = (schema.pipe as readonly v.GenericSchema[])[0]!;
    return first === schema ? schema : bare(first);
  }
  return schema;
}

/** The schema of what lies at a path; null where the path leads nowhere. */
function partAt(schema: v.GenericSchema, steps: readonly string[]): v.GenericSchema | null {
  let at = bare(schema);
  for (const step of steps) {
    const next =
      "entries" in at
        ? Object.hasOwn(at.entries as Entries, step)
          ? (at.entries as Entries)[step]
          : undefined
        : "value" in at
          ? (at.value as v.GenericSchema)
          : "item" in at
            ? (at.item as v.GenericSchema)
            : undefined;
    if (next === undefined) return null;
    at = bare(next);
  }
  return at;
}

function messageOf(schema: v.GenericSchema): string {
  const part = bare(schema);
  const message = "message" in part ? part.message : undefined;
  if (typeof message === "string") return message;
  return "entries" in part || "key" in part ? "a table\nAdd it as a table." : "";
}
