import { decodeStrict } from "../host/fs.ts";
import { readStdin } from "../host/stdin.ts";
import { GateError } from "../lib/errors.ts";
import type { Finding, RunFacts } from "../policy/types.ts";

/** Largest text of findings that is read. */
const MAX_ASKED_BYTES = 16_000_000;

/** What `policy apply` is asked about. */
export interface Asked {
  readonly findings: readonly Finding[];
  readonly runs: readonly RunFacts[];
}

/** Reads the findings from standard input. Throws `GateError` (`input-unreadable`, `input-invalid`). */
export function readAsked(): Asked {
  const bytes = readStdin(MAX_ASKED_BYTES);
  if (!bytes.ok) throw new GateError("input-unreadable", bytes.error, "Give the findings as JSON on stdin.");
  const text = decodeStrict(bytes.value);
  if (text === null) throw invalid("it is not UTF-8 text");
  return parseAsked(text);
}

/**
 * The findings and facts that the published packages send: `{model, findings: [{checker, rule, severity, title, model,
 * ref}], facts: [{model, cards, estCostUsd?, params?, ref}]}`, with `path` and `paths` as further keys of either.
 * Keys that are not known are passed over, an absent list is an empty one. Throws `GateError("input-invalid")`.
 */
export function parseAsked(text: string): Asked {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw invalid(`it is not JSON: ${(error as Error).message}`);
  }
  if (!isRecord(body)) throw invalid("it is not a JSON object");
  const model = textOf(body.model) ?? "";
  return {
    findings: listOf(body, "findings").map((one, index) => {
      const { severity } = one;
      const where = `findings[${index}]`;
      if (severity !== "block" && severity !== "warn")
        throw invalid(`\`severity\` of ${where} is not block or warn`);
      const rule = textOf(one.rule);
      if (rule === null) throw invalid(`\`rule\` of ${where} is not a text`);
      return {
        checker: textOf(one.checker) ?? "admission",
        rule,
        severity,
        title: (textOf(one.title) ?? "").replace(/\.$/, ""),
        model: textOf(one.model) ?? model,
        paths: pathsOf(one, textOf(one.model) ?? model),
        ref: refOf(one.ref),
      };
    }),
    runs: listOf(body, "facts").map((one, index) => {
      const where = `facts[${index}]`;
      const cards = one.cards ?? [];
      if (!Array.isArray(cards) || !cards.every((card) => typeof card === "string"))
        throw invalid(`\`cards\` of ${where} is not a list of names`);
      return {
        model: textOf(one.model) ?? model,
        paths: pathsOf(one, textOf(one.model) ?? model),
        cards,
        costUsd: numberOf(one.estCostUsd, `estCostUsd\` of ${where}`),
        upperBound: one.upperBound === true,
        params: numberOf(one.params, `params\` of ${where}`),
        ref: refOf(one.ref),
      };
    }),
  };
}

function listOf(body: Record<string, unknown>, key: string): readonly Record<string, unknown>[] {
  const list = body[key] ?? [];
  if (Array.isArray(list) && list.every(isRecord)) return list;
  throw invalid(`\`${key}\` is not a list of objects`);
}

/** The paths that are named, and the model where it is one. */
function pathsOf(one: Record<string, unknown>, model: string): string[] {
  const named = [one.path, ...(Array.isArray(one.paths) ? one.paths : [])].flatMap(
    (path) => textOf(path) ?? [],
  );
  const own = /^(?:\.{0,2}\/|~\/)|\.json$/.test(model) ? [model] : [];
  return [...named, ...own].map((path) => path.replace(/^\.\//, ""));
}

function refOf(value: unknown): number | null {
  return Number.isSafeInteger(value) ? (value as number) : null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function numberOf(value: unknown, what: string): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === "number") return value;
  throw invalid(`\`${what} is not a number`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(why: string): GateError {
  return new GateError("input-invalid", `the findings on standard input cannot be used: ${why}`);
}
