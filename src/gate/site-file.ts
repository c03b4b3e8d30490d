import { parse, TomlError } from "smol-toml";
import * as v from "valibot";
import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { REPO_POLICIES } from "../policy/types.ts";
import { MODES, SIZINGS, type SiteFile } from "./settings.ts";

const table = v.union([v.string(), v.record(v.string(), v.unknown())], "a path or a table");
const positive = v.pipe(v.number("a number"), v.finite("a finite number"), v.gtValue(0, "above 0"));

/** `/etc/neurarch/gate.toml`: every key is optional, an unknown one is an error. */
export const SITE_SCHEMA = v.strictObject({
  mode: v.optional(v.picklist(MODES, `one of ${MODES.join(", ")}`)),
  mutate: v.optional(v.boolean("true or false")),
  fail_closed: v.optional(v.boolean("true or false")),
  max_cost_usd: v.optional(positive),
  headroom: v.optional(
    v.pipe(v.number("a number"), v.minValue(1, "1 or more"), v.maxValue(10, "10 or less")),
  ),
  sizing: v.optional(v.picklist(SIZINGS, `one of ${SIZINGS.join(", ")}`)),
  cli: v.optional(v.pipe(v.string("text"), v.minLength(1, "not empty"))),
  plan_url: v.optional(v.pipe(v.string("text"), v.regex(/^https?:\/\//, "an http or https address"))),
  timeout_s: v.optional(positive),
  cluster: v.optional(v.string("text")),
  policy_file: v.optional(v.pipe(v.string("text"), v.startsWith("/", "a path that begins with /"))),
  repo_policy: v.optional(v.picklist(REPO_POLICIES, `one of ${REPO_POLICIES.join(", ")}`)),
  client_sizing: v.optional(v.boolean("true or false")),
  ledger: v.optional(
    v.pipe(
      v.string("text"),
      v.regex(/^(?:unix:)?\/|^https?:\/\//, "a path that begins with /, unix:/PATH or an http address"),
    ),
  ),
  ledger_anonymous: v.optional(v.boolean("true or false")),
  ledger_token_file: v.optional(
    v.pipe(v.string("text"), v.regex(/^(?:~\/|\/)/, "a path that begins with / or ~/")),
  ),
  ledger_rotate_mb: v.optional(positive),
  ledger_rotate_days: v.optional(positive),
  ledger_keep_days: v.optional(positive),
  annotate: v.optional(v.boolean("true or false")),
  default_gpu_type: v.optional(v.pipe(v.string("text"), v.minLength(1, "not empty"))),
  hours_from_time: v.optional(v.boolean("true or false")),
  cards: v.optional(table),
  prices: v.optional(table),
  gpu_map: v.optional(table),
  partition_map: v.optional(table),
  defaults: v.optional(
    v.record(v.string(), v.union([v.string(), v.number(), v.boolean()], "text, a number or true/false")),
  ),
});

/**
 * Reads the text of a site file. `path` is only for messages.
 * Throws `GateError("settings-invalid")` with line and column, or with the key and what it should be.
 */
export function parseSiteFile(text: string, path: string): SiteFile {
  let raw: unknown;
  try {
    raw = parse(text);
  } catch (error) {
    const at = error instanceof TomlError ? `:${error.line}:${error.column}` : "";
    const why =
      error instanceof Error
        ? (error.message.split("\n")[0] ?? "").replace(/^Invalid TOML document: /, "")
        : String(error);
    throw new GateError(
      "settings-invalid",
      `${path}${at} is not TOML: ${why}`,
      "Correct the line, or remove the file.",
    );
  }
  const result = v.safeParse(SITE_SCHEMA, raw);
  if (result.success) return result.output as SiteFile;
  const issue = result.issues[0];
  const key = v.getDotPath(issue) ?? "the file";
  const known = Object.keys(SITE_SCHEMA.entries);
  if (issue.type === "strict_object") {
    const near = nearest(key, known);
    throw new GateError(
      "settings-invalid",
      `${path} has the unknown key \`${key}\``,
      near === null ? `Known keys: ${known.join(", ")}.` : `Did you mean \`${near}\`?`,
    );
  }
  throw new GateError(
    "settings-invalid",
    `\`${key}\` in ${path} is not ${issue.message}`,
    "Correct the value.",
  );
}
