import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { FACT_SPECS, type FactSpec } from "./keys.ts";
import { type RawFact, specOfRaw } from "./raw.ts";
import { type SiteDefaults, siteFacts } from "./site.ts";
import type { Fact, FactKey, FactProblem, FactsReading, JobFacts, Origin } from "./types.ts";
import { readValue, type ValueFault } from "./values.ts";

export interface ReadOptions {
  /** Whether a name that is none of ours is told: for directives and flags, not for the environment. */
  readonly unknownKeys: "report" | "ignore";
  /** A site's usual values of the facts beyond the core six. */
  readonly siteDefaults?: SiteDefaults;
  /** What was noticed while the values were gathered. */
  readonly notes?: readonly string[];
}

/** Notes on keys that are told; a script of thousands of them is not worth the time that a submit waits. */
const MOST_NOTES = 20;

/**
 * Reads what a job says of itself. Of a fact given twice the last one holds, as with `#SBATCH` options.
 * No model = `none`; a value that cannot be read = `unreadable`, never a default in its place.
 * Throws `GateError("settings-invalid")` when a site default is not one.
 */
export function readFacts(raw: readonly RawFact[], options: ReadOptions): FactsReading {
  const notes = [...(options.notes ?? [])];
  const given = new Map<FactKey, RawFact>();
  for (const fact of raw) {
    const spec = specOfRaw(fact);
    if (spec === null) {
      if (options.unknownKeys === "report" && notes.length < MOST_NOTES) notes.push(unknownKey(fact));
      continue;
    }
    const earlier = given.get(spec.key);
    if (earlier !== undefined && notes.length < MOST_NOTES && earlier.value.trim() !== fact.value.trim())
      notes.push(givenTwice(earlier, fact));
    given.set(spec.key, fact);
  }
  if (!isModelNamed(given.get("model"))) return { kind: "none", notes };
  const defaults = siteFacts(options.siteDefaults ?? {});
  const problems: FactProblem[] = [];
  let unresolved = true;
  const facts: Partial<Record<FactKey, Fact<unknown>>> = {};
  for (const spec of FACT_SPECS) {
    const fact = given.get(spec.key);
    if (fact === undefined) {
      facts[spec.key] = defaults.get(spec.key) ?? {
        value: spec.byDefault,
        from: { kind: "default", name: spec.flag },
      };
      continue;
    }
    const read = readValue(spec, fact.value);
    if (fact.fault === undefined && read.ok) {
      facts[spec.key] = { value: read.value, from: fact.from };
      continue;
    }
    const fault: ValueFault = read.ok ? { fault: "", write: String(read.value) } : read.error;
    if (fact.fault !== undefined || fault.unresolved !== true) unresolved = false;
    problems.push(problemOf(spec, fact, fault));
  }
  if (problems.length === 0) return { kind: "facts", facts: facts as unknown as JobFacts, notes };
  return unresolved
    ? { kind: "unreadable", problems, notes, unresolved: true }
    : { kind: "unreadable", problems, notes };
}

/**
 * An environment variable that is there and empty is how a shell unsets a stale one, so it names no model.
 * `model=` in a directive or flag was written for this job: it is a value that cannot be read.
 */
function isModelNamed(fact: RawFact | undefined): fact is RawFact {
  if (fact === undefined) return false;
  const written = fact.from.kind === "directive" || fact.from.kind === "flag";
  return written || fact.fault !== undefined || fact.value.trim() !== "";
}

function problemOf(spec: FactSpec, fact: RawFact, { fault, write }: ValueFault): FactProblem {
  const where = whereOf(fact);
  const value = fact.value.trim();
  const subject = value === "" ? where : `${where}: "${shown(value)}"`;
  return {
    key: spec.key,
    value: fact.value,
    from: fact.from,
    message: `${subject} ${fact.fault ?? fault}; ${fact.remedy ?? remedyOf(spec, fact.from, write)}.`,
  };
}

/** Where a value stands, as its reader knows the place. */
function whereOf({ name, from }: RawFact): string {
  const word = shown(name);
  switch (from.kind) {
    case "directive":
      return from.line === undefined ? `#NEURARCH ${word}` : `#NEURARCH ${word} on line ${from.line}`;
    case "label":
      return `label ${word}`;
    case "flag":
      return shown(from.name);
    default:
      return from.line === undefined ? word : `${word} on line ${from.line}`;
  }
}

function remedyOf(spec: FactSpec, from: Origin, write: string): string {
  switch (from.kind) {
    case "directive":
      return `write ${spec.flag}=${write}, say`;
    case "flag":
      return `write --${spec.flag} ${write}, say`;
    case "env":
      // With a line it stands in a task file, where a number without quotes is retyped on the way.
      return from.line === undefined
        ? `write ${spec.env}=${write}, say (in YAML ${spec.env}: "${write}", with the quotes)`
        : `write ${spec.env}: "${write}", say`;
    default:
      return `write "${write}", say`;
  }
}

function unknownKey(fact: RawFact): string {
  const at = fact.from.line === undefined ? "" : ` on line ${fact.from.line}`;
  const flags = FACT_SPECS.map((spec) => spec.flag);
  const near = nearest(fact.name, flags);
  const hint = near === null ? `the keys are ${flags.join(", ")}` : `did you mean \`${near}\`?`;
  return `Unknown key \`${shown(fact.name)}\`${at}, ${hint}`;
}

function givenTwice(earlier: RawFact, later: RawFact): string {
  const lines =
    earlier.from.line === undefined || later.from.line === undefined
      ? ""
      : earlier.from.line === later.from.line
        ? ` on line ${later.from.line}`
        : ` (lines ${earlier.from.line} and ${later.from.line})`;
  return `${shown(later.name)} is given twice${lines}: the last one, ${shown(later.value.trim())}, holds`;
}
