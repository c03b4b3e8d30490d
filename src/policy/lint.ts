import { shown } from "../lib/shown.ts";
import { waiverProblems } from "./apply.ts";
import type { CardIdentity } from "./budget.ts";
import { addDays } from "./dates.ts";
import { neverMatches } from "./glob.ts";
import { ruleOf } from "./rules.ts";
import type { FileProblem, Place, Policy, PolicyReading, Waiver } from "./types.ts";

/** A waiver that holds longer than this is as good as one for ever. */
const LONG_DAYS = 366;

/** What a linter knows beside the file. */
export interface LintContext {
  readonly today: string;
  readonly identity: CardIdentity;
  /** The nearest known name of a card. */
  nearestCard(name: string): string | null;
}

/**
 * All that is wrong or doubtful about a file, in its order. What keeps a waiver from applying has the severity that
 * the file gives the rule: an expired waiver is a warning until it says `block`, an invalid one an error until it
 * says `warn`.
 */
export function lintPolicy({ policy, problems }: PolicyReading, context: LintContext): FileProblem[] {
  const found = [...problems];
  if (policy !== null) {
    for (const { problem } of waiverProblems(policy, context.today)) {
      const rule = problem.rule!;
      const severity = policy.rules.get(rule) ?? (rule === "policy/waiver-invalid" ? "block" : "warn");
      if (severity !== "off")
        found.push({ ...problem, severity: severity === "block" ? "error" : "warning" });
    }
    found.push(...policy.waivers.flatMap((waiver) => doubtsOf(waiver, policy, context)));
    found.push(...repeatedWaivers(policy.waivers), ...doubtsOfBudget(policy, context));
    if (policy.rules.has("admission/cost-cap")) {
      found.push(
        doubt(
          "the severity of admission/cost-cap has no effect: the cap is the site's",
          "Take it out.",
          policy.places.get("rules/admission/cost-cap") ?? null,
        ),
      );
    }
  }
  const at = ({ place }: FileProblem) => (place === null ? 0 : place.line * 100_000 + place.column);
  return found
    .map((problem, index) => ({ problem, index }))
    .sort((a, b) => at(a.problem) - at(b.problem) || a.index - b.index)
    .map(({ problem }) => problem);
}

function doubtsOf(waiver: Waiver, policy: Policy, { today }: LintContext): FileProblem[] {
  const { rule, place, scope } = waiver;
  const doubts: FileProblem[] = [];
  const about = `the waiver for ${rule}`;
  if (waiver.reason === "no reason given")
    doubts.push(doubt(`${about} gives no reason`, "Write reason: and why.", place));
  if (waiver.expires > addDays(waiver.created ?? today, LONG_DAYS)) {
    doubts.push(
      doubt(
        `${about} holds until ${waiver.expires}, more than a year`,
        "Let it end sooner, and renew it.",
        place,
      ),
    );
  }
  const known = ruleOf(rule);
  if (known === null) {
    doubts.push(
      doubt(
        `${about} is about a rule of another tool`,
        "`policy explain` lists the rules of this one.",
        place,
      ),
    );
  } else if ((policy.rules.get(rule) ?? known.severity) !== "block") {
    doubts.push(doubt(`${about} has nothing to waive: that rule does not refuse`, "Take it out.", place));
  }
  for (const [name, globs] of Object.entries(scope) as [keyof typeof scope, readonly string[] | null][]) {
    for (const glob of globs ?? []) {
      const why = neverMatches(glob, name);
      if (why === null) continue;
      const message = `${about} never applies: its \`${name}\` \`${shown(glob)}\` matches nothing, ${why}`;
      doubts.push(doubt(message, "Correct the pattern.", place));
    }
  }
  return doubts;
}

function repeatedWaivers(waivers: readonly Waiver[]): FileProblem[] {
  const first = new Map<string, Waiver>();
  return waivers.flatMap((waiver) => {
    const key = JSON.stringify([waiver.rule, waiver.scope]);
    const before = first.get(key);
    if (before === undefined) {
      first.set(key, waiver);
      return [];
    }
    const message = `the waiver for ${waiver.rule} has the scope of the one at line ${before.place.line}`;
    return [doubt(message, "Keep one of the two: the later day counts.", waiver.place)];
  });
}

function doubtsOfBudget({ budget, places }: Policy, { identity, nearestCard }: LintContext): FileProblem[] {
  return (budget.cardsAllowed ?? []).flatMap((name, index) => {
    if (identity(name) !== null) return [];
    const near = nearestCard(name);
    const fix = near === null ? "`cards` lists the cards." : `Did you mean \`${near}\`?`;
    return [
      doubt(
        `\`cards_allowed\` names \`${shown(name)}\`, which is no card on file`,
        fix,
        places.get(`cards_allowed/${index}`) ?? null,
      ),
    ];
  });
}

function doubt(message: string, fix: string, place: Place | null): FileProblem {
  return { severity: "warning", rule: null, message, fix, place };
}
