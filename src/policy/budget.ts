import { shown } from "../lib/shown.ts";
import { shortAmount } from "./amount.ts";
import type { Budget, Finding, RunFacts } from "./types.ts";

/** A card's identity whatever it is called; null for a name without a card on file. */
export type CardIdentity = (name: string) => string | null;

/** A line of the budget that a run crosses, before waivers and severities. */
export interface Crossed extends Finding {
  readonly fix: string;
}

/** The lines of a budget that a run crosses, in the order of the file's keys. What is not known crosses no line. */
export function crossedLines(budget: Budget, run: RunFacts, identity: CardIdentity): Crossed[] {
  const { model, paths, ref } = run;
  const about = { checker: "budget", severity: "block", model, paths, ref } as const;
  const crossed: Crossed[] = [];
  const { cardsAllowed, maxCostPerRunUsd, maxParams } = budget;
  if (cardsAllowed !== null) {
    const list = cardsAllowed.map((name) => shown(name)).join(", ");
    for (const card of new Set(run.cards)) {
      if (isAllowed(card, cardsAllowed, identity)) continue;
      crossed.push({
        ...about,
        rule: "budget/card-not-allowed",
        title: `${shown(card)} is not an allowed card (${list})`,
        fix: `Request one of ${list}.`,
      });
    }
  }
  if (maxCostPerRunUsd !== null && run.costUsd !== null && run.costUsd > maxCostPerRunUsd) {
    crossed.push({
      ...about,
      severity: run.upperBound ? "warn" : "block",
      rule: "budget/cost-per-run",
      title:
        `The run ${run.upperBound ? "may cost up to" : "costs"} $${run.costUsd.toFixed(2)} at list price, ` +
        `over the $${maxCostPerRunUsd.toFixed(2)} that max_cost_per_run_usd allows`,
      fix: "Ask for fewer or cheaper cards, or fewer hours.",
    });
  }
  if (maxParams !== null && run.params !== null && run.params > maxParams) {
    crossed.push({
      ...about,
      rule: "budget/params",
      title:
        `${shown(model, 200)} has ${amountAbove(run.params, maxParams)} parameters, ` +
        `over the ${shortAmount(maxParams)} that max_params allows`,
      fix: "Train a smaller model.",
    });
  }
  return crossed;
}

/** Whether a card is on a list of names: by the name itself, or because both are names of one card. */
export function isAllowed(card: string, allowed: readonly string[], identity: CardIdentity): boolean {
  const id = identity(card);
  return allowed.some(
    (name) =>
      name.toLowerCase() === card.trim().toLowerCase() ||
      (id !== null && (identity(name) === id || name.toLowerCase() === id.toLowerCase())),
  );
}

/** In full where the short form would say that a count is over itself. */
function amountAbove(count: number, most: number): string {
  const short = shortAmount(count);
  return short === shortAmount(most) ? String(count) : short;
}
