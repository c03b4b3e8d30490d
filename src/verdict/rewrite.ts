import type { Candidate, GpuRequest } from "../request/types.ts";
import type { Size } from "./suggest.ts";
import { cheapest, isNamed } from "./suggest.ts";
import type { JudgeSettings, RewriteBlocked } from "./types.ts";

/** What an over-request becomes, or why it stays. */
export interface Rewrite {
  readonly size: Size | null;
  readonly blocked: RewriteBlocked | null;
}

export const NO_REWRITE: Rewrite = { size: null, blocked: null };

/**
 * What an over-request is rewritten to: the cheapest that holds the need among the cards that the task's place
 * allows. A request that is its own cheapest is left alone, so a rewritten one is never rewritten again.
 */
export function rewriteOf(
  candidate: Candidate,
  request: GpuRequest,
  basis: { readonly cards: number; readonly capacityGb: number },
  holds: readonly Size[],
  settings: JudgeSettings,
): Rewrite {
  if (candidate.memoryForm || request.choice === "open") return { size: null, blocked: "memory-form" };
  if (candidate.nodes > 1) return { size: null, blocked: "multi-node" };
  const names = settings.rewriteCards;
  const allowed = names === null ? holds : holds.filter((size) => isNamed(size.card, names, settings.table));
  const size = cheapest(allowed);
  if (size === null || (names !== null && size.gb >= basis.capacityGb)) {
    return { size: null, blocked: "no-card-allowed" };
  }
  if (size.card.id === candidate.card.id && size.count === basis.cards) {
    return { size: null, blocked: "cheapest-already" };
  }
  return settings.mutate ? { size, blocked: null } : { size: null, blocked: "mutate-off" };
}
