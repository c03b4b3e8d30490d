import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { readAmount, readDollars } from "./amount.ts";
import { globCost } from "./glob.ts";
import { misspelledRule, ruleOf } from "./rules.ts";
import {
  type BadWaiver,
  type Budget,
  type FileProblem,
  type Place,
  type PolicyReading,
  SEVERITIES,
  type Severity,
  type Tree,
  type TreeEntry,
  type Waiver,
} from "./types.ts";
import { isBad, readWaiver } from "./waiver.ts";

/** The keys of a file; `policy` and `models` are other tools' and never looked at. */
export const OWN_KEYS = ["version", "waivers", "budget", "rules"] as const;
export const FOREIGN_KEYS = ["policy", "models"] as const;
export const BUDGET_KEYS = ["cards_allowed", "max_cost_per_run_usd", "max_params"] as const;

/** Characters of all patterns of a file, braces written out: what matching them all may cost. */
const MAX_GLOB_COST = 20_000;
const addCost = (sum: number, glob: string | null) => sum + (glob === null ? 0 : globCost(glob));

/** Thrown where the file cannot be applied, and caught at the door. */
class Unusable extends Error {
  constructor(readonly problem: FileProblem) {
    super(problem.message);
  }
}

/**
 * Reads a policy file. A waiver that cannot be read is one waiver less; anything else that cannot be read leaves
 * nothing of the file in force, so that a limit that was lost never goes with a waiver that was not.
 */
export function readPolicy(tree: Tree): PolicyReading {
  const problems: FileProblem[] = [];
  try {
    return { policy: read(tree, problems), problems };
  } catch (error) {
    if (!(error instanceof Unusable)) throw error;
    return { policy: null, problems: [...problems, error.problem] };
  }
}

function read(tree: Tree, problems: FileProblem[]) {
  const entries = mapOf(tree, "the file");
  for (const { key, keyPlace } of entries) {
    if (([...OWN_KEYS, ...FOREIGN_KEYS] as readonly string[]).includes(key)) continue;
    // `$schema` tells an editor where the file's schema is.
    if (key !== "$schema") problems.push(unknownKey(key, OWN_KEYS, keyPlace, "is not read", "warning"));
  }
  readVersion(under(entries, "version"), problems);
  const waivers: Waiver[] = [];
  const badWaivers: BadWaiver[] = [];
  const listed = under(entries, "waivers");
  if (listed !== null && listed.kind !== "empty") {
    if (listed.kind !== "list")
      throw unusable("`waivers` is not a list", "Begin each with a dash.", listed.place);
    for (const item of listed.items) {
      const waiver = readWaiver(item);
      if (isBad(waiver)) badWaivers.push(waiver);
      else waivers.push(waiver);
    }
  }
  const cost = waivers.flatMap(({ scope }) => Object.values(scope).flat()).reduce(addCost, 0);
  if (cost > MAX_GLOB_COST)
    throw unusable("its waivers hold too many patterns to match in time", "Shorten them.", tree.place);
  const places = new Map<string, Place>();
  const budget = readBudget(under(entries, "budget"), problems, places);
  const rules = readRules(under(entries, "rules"), problems, places);
  return { waivers, badWaivers, budget, rules, places };
}

function readVersion(value: Tree | null, problems: FileProblem[]): void {
  if (value === null || value.kind === "empty") {
    const message = "the file does not say its version";
    const place = value?.place ?? null;
    problems.push({ severity: "warning", rule: null, message, fix: "Add version: 1.", place });
    return;
  }
  if (value.kind === "text" && value.text.trim() === "1") return;
  const given = value.kind === "text" ? `\`${shown(value.text)}\`` : "not a number";
  throw unusable(
    `\`version\` is ${given}, and this program reads version 1`,
    "Write version: 1.",
    value.place,
  );
}

function readBudget(tree: Tree | null, problems: FileProblem[], places: Map<string, Place>): Budget {
  const entries = tree === null || tree.kind === "empty" ? [] : mapOf(tree, "`budget`");
  for (const { key, keyPlace } of entries) {
    if (!(BUDGET_KEYS as readonly string[]).includes(key))
      problems.push(unknownKey(key, BUDGET_KEYS, keyPlace, "of `budget` is not read", "error"));
  }
  const amount = (
    name: (typeof BUDGET_KEYS)[number],
    parse: (text: string) => number | null,
    like: string,
  ) => {
    const value = under(entries, name);
    if (value === null || value.kind === "empty") return null;
    const amount = value.kind === "text" ? parse(value.text) : null;
    if (amount !== null) return amount;
    const given = value.kind === "text" ? `\`${shown(value.text)}\`` : "not one value";
    throw unusable(`\`${name}\` is ${given}, not an amount`, `Write it as ${like}.`, value.place);
  };
  return {
    cardsAllowed: readCards(under(entries, "cards_allowed"), places),
    maxCostPerRunUsd: amount("max_cost_per_run_usd", readDollars, "250 (US dollars)"),
    maxParams: amount("max_params", readAmount, "500K, 7B or 7000000000"),
  };
}

function readCards(value: Tree | null, places: Map<string, Place>): readonly string[] | null {
  if (value === null || value.kind === "empty") return null;
  const items = value.kind === "list" ? value.items : [value];
  const names = items.map((item, index) => {
    places.set(`cards_allowed/${index}`, item.place);
    if (item.kind === "text" && item.text.trim() !== "") return item.text.trim();
    throw unusable(
      "`cards_allowed` holds something that is not a card's name",
      "Write [A100-80GB, H100].",
      item.place,
    );
  });
  if (names.length > 0) return names;
  throw unusable(
    "`cards_allowed` is an empty list, which allows no card",
    "Name the cards, or take it out.",
    value.place,
  );
}

function readRules(
  tree: Tree | null,
  problems: FileProblem[],
  places: Map<string, Place>,
): ReadonlyMap<string, Severity> {
  const rules = new Map<string, Severity>();
  if (tree === null || tree.kind === "empty") return rules;
  for (const { key, keyPlace, value } of mapOf(tree, "`rules`")) {
    const misspelled = misspelledRule(key);
    if (misspelled !== null) {
      const { near } = misspelled;
      problems.push({
        severity: "error",
        rule: null,
        message: `the rule \`${shown(key)}\` is not known`,
        fix: near === null ? "`policy explain` lists the rules." : `Did you mean \`${near}\`?`,
        place: keyPlace,
      });
      continue;
    }
    const word = value.kind === "text" ? value.text.trim().toLowerCase() : "";
    const severity = SEVERITIES.find((known) => known === word);
    // Another tool's rule may have words of its own.
    if (severity === undefined && ruleOf(key) === null) continue;
    if (severity === undefined) {
      throw unusable(
        `\`${key}\` is ${value.kind === "text" ? `\`${shown(value.text)}\`` : "not one word"}, not one of ${SEVERITIES.join(", ")}`,
        `Write ${key}: warn.`,
        value.place,
      );
    }
    rules.set(key, severity);
    places.set(`rules/${key}`, keyPlace);
  }
  return rules;
}

function mapOf(tree: Tree, what: string): readonly TreeEntry[] {
  if (tree.kind === "map") return tree.entries;
  if (tree.kind === "empty") return [];
  throw unusable(`${what} is not a mapping`, "Write keys with a colon.", tree.place);
}

function under(entries: readonly TreeEntry[], name: string): Tree | null {
  return entries.find(({ key }) => key === name)?.value ?? null;
}

/** A key near one that is known is taken for a slip, so for an error. */
function unknownKey(
  key: string,
  known: readonly string[],
  place: Place,
  then: string,
  severity: FileProblem["severity"],
): FileProblem {
  const near = nearest(key, known);
  return {
    severity: near === null ? severity : "error",
    rule: null,
    message: `the unknown key \`${shown(key)}\` ${then}`,
    fix: near === null ? `Known keys: ${known.join(", ")}.` : `Did you mean \`${near}\`?`,
    place,
  };
}

function unusable(message: string, fix: string, place: Place): Unusable {
  return new Unusable({ severity: "error", rule: null, message, fix, place });
}
