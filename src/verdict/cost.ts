import type { Card } from "../request/types.ts";
import type { Cost, JudgeSettings } from "./types.ts";

/**
 * The run's cost at the table's price: price x cards x hours x array tasks. Null without hours or price.
 * With spot the list price is only an upper bound, so being over the cap is then not a reason to refuse.
 */
export function costOf(
  card: Card,
  cards: number,
  hours: number | null,
  settings: JudgeSettings,
): Cost | null {
  if (hours === null || card.usdPerHour === null) return null;
  const usd = card.usdPerHour * cards * hours * settings.tasks;
  return {
    usd,
    usdPerCardHour: card.usdPerHour,
    cards,
    hours,
    tasks: settings.tasks,
    upperBound: settings.useSpot,
    card,
    capUsd: settings.maxCostUsd,
    overCap: settings.maxCostUsd !== null && usd > settings.maxCostUsd,
  };
}
