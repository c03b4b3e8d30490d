import type { Candidate, Card, CardTable, GpuRequest } from "../request/types.ts";
import { isJudged } from "../request/types.ts";
import type { CardCount } from "./types.ts";

/** Suggestions go up to this many cards, or to the number asked when that is more. */
export const MOST_CARDS = 64;

/** A number of cards of one kind as one pool. */
export interface Size {
  readonly card: Card;
  readonly count: number;
  readonly gb: number;
}

/**
 * The cards a candidate is compared with: the table's candidates and those that the user's own list names, of the
 * same vendor. Memory forms name no card, so they add none.
 */
export function comparable(candidate: Candidate, request: GpuRequest, table: CardTable): Card[] {
  const own = request.candidates.filter(isJudged).filter((other) => !other.memoryForm);
  const listed = request.choice === "open" || own.length < 2 ? [] : own.map((other) => other.card);
  const cards = [...table.cards.filter((card) => card.candidate), ...listed];
  const seen = new Set<string>();
  return cards.filter((card) => {
    if (card.vendor !== candidate.card.vendor || seen.has(card.id)) return false;
    seen.add(card.id);
    return true;
  });
}

/** Every card at 1, 2, 4, 8, ... cards up to `most`; slices of a card only alone, as they are never sharded. */
export function sizesUpTo(cards: readonly Card[], most: number): Size[] {
  const sizes: Size[] = [];
  for (let count = 1; count <= most; count *= 2) {
    for (const card of cards) {
      if (count === 1 || !card.slice) sizes.push({ card, count, gb: card.gb * count });
    }
  }
  return sizes;
}

/** Those that hold the need. */
export function holding(sizes: readonly Size[], needGb: number): Size[] {
  return sizes.filter((size) => size.gb >= needGb);
}

/** The cheapest: single cards first, then by hourly price, by count, by memory. A card without a price comes last. */
export function cheapest(sizes: readonly Size[]): Size | null {
  return (
    [...sizes].sort(
      (a, b) =>
        Number(a.count > 1) - Number(b.count > 1) ||
        ascending(hourly(a), hourly(b)) ||
        a.count - b.count ||
        a.gb - b.gb,
    )[0] ?? null
  );
}

/** The smallest single card that holds the need: by memory, then by price. */
export function smallestCard(cards: readonly Card[], needGb: number): Size | null {
  const singles = holding(sizesUpTo(cards, 1), needGb);
  return singles.sort((a, b) => a.gb - b.gb || ascending(hourly(a), hourly(b)))[0] ?? null;
}

/**
 * The smallest request that holds the need where no single card does: the cheapest of those up to the number of
 * cards asked, else, up to `MOST_CARDS`, the one of the fewest cards, then the cheapest, then the smallest. With
 * everything offloaded the need grows with the number of cards.
 */
export function smallestRequest(
  cards: readonly Card[],
  needGbOn: (count: number) => number,
  asked: number,
): Size | null {
  const upTo = (most: number) => sizesUpTo(cards, most).filter(({ gb, count }) => gb >= needGbOn(count));
  const within = cheapest(upTo(asked));
  if (within !== null) return within;
  const beyond = upTo(MOST_CARDS);
  return (
    beyond.sort((a, b) => a.count - b.count || ascending(hourly(a), hourly(b)) || a.gb - b.gb)[0] ?? null
  );
}

/** A size under the name it is asked by. */
export function asCardCount(size: Size | null, table: CardTable, count?: number): CardCount | null {
  return size === null ? null : { accelerator: table.nameOf(size.card), count: count ?? size.count };
}

/** Whether a list of card names (ids, scheduler names or the site's own) holds this card. */
export function isNamed(card: Card, names: readonly string[], table: CardTable): boolean {
  const own = new Set([card.id, table.nameOf(card), ...card.names].map((name) => name.toLowerCase()));
  return names.some((name) => own.has(name.toLowerCase()));
}

function hourly(size: Size): number {
  return size.card.usdPerHour === null ? Number.POSITIVE_INFINITY : size.card.usdPerHour * size.count;
}

/** Subtraction would make NaN of two missing prices. */
function ascending(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
