import { shown } from "../lib/shown.ts";
import type { Candidate, CardTable, GpuRequest } from "../request/types.ts";
import { isJudged } from "../request/types.ts";
import { isOpen } from "../verdict/decide.ts";
import { type CardIdentity, isAllowed } from "./budget.ts";

/**
 * A request by memory ("80GB+") stands for many cards, and the scheduler picks: it is not refused for those that are
 * not allowed as long as one that is may be given. What is then to be said, the end of a sentence; null where every
 * card it may give is allowed, where none is, and for a request that names its cards.
 */
export function mayGiveOthers(
  request: GpuRequest,
  allowed: readonly string[] | null,
  identity: CardIdentity,
  table: CardTable,
): string | null {
  if (allowed === null || !isOpen(request)) return null;
  const members = request.candidates.filter(isJudged);
  const good = members.filter((member) => mayBeAllowed(member, allowed, identity, table));
  if (good.length === 0) return null;
  const named = members.filter((member) => table.find(member.accelerator) !== null);
  const others = [...new Set(named.filter((member) => !good.includes(member)).map((one) => one.accelerator))];
  if (named.length === members.length && others.length === 0) return null;
  const list = allowed.map((name) => shown(name)).join(", ");
  const what =
    others.length === 0
      ? "cards"
      : others
          .slice(0, 3)
          .map((name) => shown(name))
          .join(", ");
  return `the request may give ${what}, and only ${list} ${allowed.length === 1 ? "is" : "are"} allowed`;
}

function mayBeAllowed(
  { accelerator, card }: Candidate,
  allowed: readonly string[],
  identity: CardIdentity,
  table: CardTable,
): boolean {
  if (table.find(accelerator) !== null) return isAllowed(accelerator, allowed, identity);
  const more = accelerator.includes("+");
  return allowed.some((name) => {
    const gb = table.find(name)?.gb;
    return gb !== undefined && (more ? gb >= card.gb : gb === card.gb);
  });
}
