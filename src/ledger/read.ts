import { DECISIONS } from "../verdict/types.ts";
import { ADAPTERS, ENTRY_VERSION, type Entry } from "./types.ts";

/** What one line is: an entry, one of a later program's form, nothing, or something that cannot be read. */
export type LineReading = Entry | "later" | "blank" | "corrupt";

type Form = "text" | "text?" | "number" | "number?" | "boolean" | "id" | readonly string[];

/** Every key of an entry and what may stand there; `?` = null as well, `id` = it may be absent. */
export const ENTRY_FORM: Readonly<Record<keyof Entry, Form>> = {
  v: "number",
  time: "text",
  adapter: ADAPTERS,
  user: "text?",
  host: "text",
  cluster: "text?",
  model: "text?",
  structure: "text?",
  request: "text?",
  card: "text?",
  count: "number?",
  nodes: "number?",
  tasks: "number",
  candidates: "number",
  requestGb: "number?",
  needGb: "number?",
  decision: DECISIONS,
  stopped: "boolean",
  rule: "text?",
  reason: "text?",
  fit: "text?",
  waiver: "text?",
  usd: "number?",
  overUsd: "number?",
  gpuHours: "number?",
  source: "text?",
  version: "text",
  id: "id",
};

const ID = /^[\w-]{8,64}$/;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Reads one line of a ledger, without its line end. What a killed writer or a full disk left half-written is `corrupt`. */
export function readLine(line: string): LineReading {
  if (line.trim() === "") return "blank";
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return "corrupt";
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "corrupt";
  const fields = value as Record<string, unknown>;
  if (typeof fields.v === "number" && Number.isInteger(fields.v) && fields.v > ENTRY_VERSION) return "later";
  if (fields.v !== ENTRY_VERSION) return "corrupt";
  for (const [key, form] of Object.entries(ENTRY_FORM)) if (!isOf(form, fields[key])) return "corrupt";
  return TIME.test(fields.time as string) ? (value as Entry) : "corrupt";
}

function isOf(form: Form, value: unknown): boolean {
  if (typeof form !== "string") return typeof value === "string" && form.includes(value);
  if (form === "id") return value === undefined || (typeof value === "string" && ID.test(value));
  if (value === null) return form.endsWith("?");
  if (form.startsWith("text")) return typeof value === "string";
  if (form === "boolean") return typeof value === "boolean";
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
