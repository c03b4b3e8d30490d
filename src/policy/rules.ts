import { nearest } from "../lib/nearest.ts";
import type { RuleId } from "../verdict/types.ts";
import type { Severity } from "./types.ts";

/** What a file may do about a rule. */
export interface Rule {
  /** What a finding comes to when no file says anything. */
  readonly severity: Severity;
  readonly waivable: boolean;
  /** A file may set its severity. */
  readonly settable: boolean;
}

/** Every rule of ours. The site's cost cap is the site's: no file of a repository touches it. */
export const RULES: Readonly<Record<RuleId, Rule>> = {
  "admission/request-does-not-fit": { severity: "block", waivable: true, settable: true },
  "admission/cost-cap": { severity: "block", waivable: false, settable: false },
  "admission/over-requested": { severity: "warn", waivable: true, settable: true },
  "admission/borderline-fit": { severity: "warn", waivable: true, settable: true },
  "budget/card-not-allowed": { severity: "block", waivable: true, settable: true },
  "budget/cost-per-run": { severity: "block", waivable: true, settable: true },
  "budget/params": { severity: "block", waivable: true, settable: true },
  "policy/waiver-expired": { severity: "warn", waivable: false, settable: true },
  "policy/waiver-invalid": { severity: "warn", waivable: false, settable: true },
};

export const RULE_IDS = Object.keys(RULES) as RuleId[];

/** The rule of that id; null for one of another tool, or a misspelled one. */
export function ruleOf(id: string): Rule | null {
  return Object.hasOwn(RULES, id) ? RULES[id as RuleId] : null;
}

/**
 * What was most likely meant by a rule id that is not ours; null for one that looks like another tool's. Our folders
 * (`admission/`, ...) are nobody else's.
 */
export function misspelledRule(id: string): { readonly near: string | null } | null {
  if (ruleOf(id) !== null) return null;
  const near = nearest(id, RULE_IDS) ?? RULE_IDS.find((known) => known.endsWith(`/${id}`)) ?? null;
  return near !== null || /^(?:admission|budget|policy)\//.test(id) ? { near } : null;
}

const RANK: Readonly<Record<Severity, number>> = { off: 0, warn: 1, block: 2 };

/** Whether `a` asks less of a job than `b`. */
export function isLooser(a: Severity, b: Severity): boolean {
  return RANK[a] < RANK[b];
}
