import { type CardIdentity, type Crossed, crossedLines } from "./budget.ts";
import { isLooser, ruleOf } from "./rules.ts";
import type {
  BadWaiver,
  Circumstances,
  FileProblem,
  Finding,
  Policy,
  Ruled,
  RunFacts,
  Severity,
  Waiver,
} from "./types.ts";
import { inScope, type Subject, stateOf } from "./waiver.ts";

/**
 * Everything a policy has to say: on each finding, on each run's budget, and on its own waivers, in this order.
 * Under `ignore` the findings stand as they came.
 */
export function applyPolicy(
  policy: Policy,
  asked: { readonly findings: readonly Finding[]; readonly runs: readonly RunFacts[] },
  circumstances: Circumstances,
  identity: CardIdentity,
): Ruled[] {
  return [
    ...asked.findings.map((finding) => ruleOn(policy, finding, circumstances)),
    ...asked.runs.flatMap((run) => ruleOnRun(policy, run, circumstances, identity)),
    ...ruleOnWaivers(policy, circumstances),
  ];
}

/**
 * The policy's word on one finding. Its severity is the file's, where the file may set it; what would then refuse is
 * a warning under a waiver that is in force and in scope. Never looser than the finding where the rule is the site's,
 * or where the site lets a file only tighten; a budget is the file's own, so it may loosen that.
 */
export function ruleOn(policy: Policy, finding: Finding, circumstances: Circumstances): Ruled {
  const { checker, rule, ref, title } = finding;
  const fix = "fix" in finding ? (finding as Crossed).fix : null;
  const { repoPolicy } = circumstances;
  const ours = ruleOf(rule);
  const own = checker === "budget";
  const mayLoosen = own || repoPolicy === "honour";
  const effective =
    repoPolicy === "ignore" || ours?.settable === false
      ? finding.severity
      : setSeverity(policy.rules.get(rule), finding.severity, mayLoosen);
  const base = { checker, rule, effective, ref, title, fix, gates: effective === "block" };
  if (effective !== "block" || repoPolicy === "ignore" || ours?.waivable === false) {
    return { ...base, waiver: null, withheld: null };
  }
  const waiver = waiverFor(policy.waivers, finding, circumstances);
  if (waiver === null) return { ...base, waiver: null, withheld: null };
  if (!mayLoosen) return { ...base, waiver: null, withheld: waiver };
  return { ...base, effective: "warn", gates: false, waiver, withheld: null };
}

/** The policy's word on what a run takes of its budget. */
export function ruleOnRun(
  policy: Policy,
  run: RunFacts,
  circumstances: Circumstances,
  identity: CardIdentity,
): Ruled[] {
  if (circumstances.repoPolicy === "ignore") return [];
  return crossedLines(policy.budget, run, identity).map((line) => ruleOn(policy, line, circumstances));
}

/** A finding about the file and the waiver that it is about. */
export interface AboutWaiver extends Ruled {
  readonly about: Waiver | BadWaiver;
}

/** What is to be said of the file's waivers: those that cannot be read, and those that are not in force. */
export function ruleOnWaivers(policy: Policy, circumstances: Circumstances): AboutWaiver[] {
  if (circumstances.repoPolicy === "ignore") return [];
  return waiverProblems(policy, circumstances.today).map(({ about, problem, title }) => {
    const rule = problem.rule!;
    const effective = policy.rules.get(rule) ?? "warn";
    const gates = effective === "block";
    const { fix } = problem;
    return {
      checker: "policy",
      rule,
      gates,
      effective,
      ref: null,
      title,
      fix,
      waiver: null,
      withheld: null,
      about,
    };
  });
}

/** Why waivers do not apply on a day: a place and a message for a linter, a title for a finding. */
export function waiverProblems(policy: Policy, today: string) {
  const problems: { about: Waiver | BadWaiver; problem: FileProblem; title: string }[] = [];
  const add = (
    about: Waiver | BadWaiver,
    rule: "policy/waiver-invalid" | "policy/waiver-expired",
    words: { readonly message: string; readonly title: string; readonly fix: string },
  ) => {
    const { message, title, fix } = words;
    const problem: FileProblem = { severity: "error", rule, message, fix, place: about.place };
    problems.push({ about, problem, title });
  };
  for (const bad of policy.badWaivers) {
    const named = bad.rule === null || bad.rule === "" ? "" : ` for ${bad.rule}`;
    const at = `line ${bad.place.line}`;
    const message = `the waiver${named} does not apply: ${bad.why}`;
    const title = `Waiver${named} (${at}) does not apply: ${bad.why}`;
    add(bad, "policy/waiver-invalid", { message, title, fix: bad.fix });
  }
  for (const waiver of policy.waivers) {
    const state = stateOf(waiver, today);
    if (state === "expired") {
      const title = `Waiver for ${waiver.rule} expired on ${waiver.expires}`;
      const message = `the waiver for ${waiver.rule} expired on ${waiver.expires}`;
      add(waiver, "policy/waiver-expired", { message, title, fix: "Renew it, or take it out." });
    } else if (state === "not-yet") {
      const why = `its \`created\` is ${waiver.created}, which is still to come`;
      const message = `the waiver for ${waiver.rule} does not apply: ${why}`;
      const title = `Waiver for ${waiver.rule} (line ${waiver.place.line}) does not apply: ${why}`;
      add(waiver, "policy/waiver-invalid", { message, title, fix: "Write the day on which it was agreed." });
    }
  }
  return problems.sort((a, b) => a.about.place.line - b.about.place.line);
}

function setSeverity(set: Severity | undefined, given: Severity, mayLoosen: boolean): Severity {
  if (set === undefined) return given;
  return isLooser(set, given) && !mayLoosen ? given : set;
}

/** Of several waivers the one that holds longest, so that what is said is when the job will really be refused. */
function waiverFor(
  waivers: readonly Waiver[],
  finding: Finding,
  { today, cluster }: Circumstances,
): Waiver | null {
  const subject: Subject = { model: finding.model, paths: finding.paths, cluster };
  let best: Waiver | null = null;
  for (const waiver of waivers) {
    if (waiver.rule !== finding.rule || stateOf(waiver, today) !== "in-force") continue;
    if (!inScope(waiver.scope, subject)) continue;
    if (best === null || waiver.expires > best.expires) best = waiver;
  }
  return best;
}
