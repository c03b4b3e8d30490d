import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { BUILT_IN_CARDS, PRICE_SOURCE } from "./card-data.ts";
import { aliasOf, cardWords, foldCardName, namedCard, sliceWords, variantsOf } from "./card-names.ts";
import { invalid, SITE_PRICES, siteCards, sitePrices, siteTypes, withSiteCard } from "./card-settings.ts";
import type { Card, CardTable } from "./types.ts";

export { ambiguityOf } from "./card-names.ts";

/** What a site lays over the built-in table: the contents of its files, parsed and not yet looked at. */
export interface CardSettings {
  /** Cards to add or change; they become candidates. */
  readonly cards?: unknown;
  /** Card id or any name -> USD per card-hour. */
  readonly prices?: unknown;
  /** The site's GPU type -> card. With it only these types are judged and suggested. */
  readonly gpuMap?: unknown;
}

/** Longest text that is looked up as a card's name. */
const MAX_NAME_LENGTH = 200;

/**
 * The card table in force. Names are found as the catalog, the drivers (`nvidia_a100-sxm4-80gb`) and sites write
 * them; a bare `a100` is the 40 GB card, as in SkyPilot; a MIG slice has the memory that its name says.
 * Throws `GateError("settings-invalid")` naming the key and what to write.
 */
export function buildCardTable(settings: CardSettings = {}): CardTable {
  const cards = new Map<string, Card>(BUILT_IN_CARDS.map((card) => [card.id.toLowerCase(), card]));
  const ofSite = new Set<string>();
  for (const site of siteCards(settings.cards)) {
    const id = site.id.trim();
    const card = withSiteCard(cards.get(id.toLowerCase()) ?? null, { ...site, id });
    cards.set(id.toLowerCase(), card);
    ofSite.add(card.id);
  }
  const prices = sitePrices(settings.prices);
  const types = siteTypes(settings.gpuMap);
  const plain = new Names([...cards.values()], ofSite);
  const priceOf = new Map<string, number>();
  for (const [name, usd] of prices) {
    const type = types.find(([site]) => site.toLowerCase() === name.trim().toLowerCase());
    const card = plain.find(type?.[1] ?? name);
    if (card === null) throw unknownCard(`the prices name \`${shown(name)}\`,`, plain.nearest(name));
    priceOf.set(card.id.toLowerCase(), usd);
  }
  const priced = (card: Card): Card => {
    const usd = priceOf.get(card.id.toLowerCase());
    return usd === undefined
      ? card
      : { ...card, usdPerHour: usd, source: { ...card.source, price: SITE_PRICES } };
  };
  const priceSource = prices.length === 0 ? PRICE_SOURCE : `${SITE_PRICES} over ${PRICE_SOURCE}`;
  const table = types.length === 0 ? plain : siteNames(plain, types);
  return {
    cards: table.cards.map(priced),
    mapped: types.length > 0,
    find: (name) => {
      const card = table.find(name);
      return card === null ? null : priced(card);
    },
    nearest: (name) => table.nearest(name),
    nameOf: (card) => table.nameOf(card),
    priceSource,
  };
}

/** The lookups of a table, before prices. */
interface Lookup {
  readonly cards: readonly Card[];
  find(name: string): Card | null;
  nearest(name: string): string | null;
  nameOf(card: Card): string;
}

/** Names of cards that are kept with what they were found to be. */
const MOST_KEPT = 200;

class Names implements Lookup {
  /** Card by folded name; made when no name is the very one that is asked for. */
  #folded: Map<string, Card> | null = null;
  /** Cards by names that were asked for; a server hears the same ones over and over. */
  readonly #found = new Map<string, Card | null>();

  constructor(
    readonly cards: readonly Card[],
    private readonly ofSite: ReadonlySet<string>,
  ) {}

  /** Cards as their claims on a name rise: where two have one name, the site's holds it. */
  *#claimants(): Iterable<Card> {
    for (const card of this.cards) if (!this.ofSite.has(card.id)) yield card;
    for (const card of this.cards) if (this.ofSite.has(card.id)) yield card;
  }

  /** The card of an id or name in small letters. A submit asks once or twice, so no index is made. */
  #named(asked: string): Card | null {
    let found: Card | null = null;
    const is = (name: string) => name.length >= asked.length && name.trim().toLowerCase() === asked;
    for (const card of this.#claimants()) if (is(card.id) || card.names.some(is)) found = card;
    return found;
  }

  #withId(id: string): Card | null {
    return this.cards.find((card) => card.id === id) ?? null;
  }

  find(name: string): Card | null {
    const asked = name.trim();
    if (asked === "" || asked.length > MAX_NAME_LENGTH) return null;
    const known = this.#found.get(asked);
    if (known !== undefined) return known;
    const card = this.#look(asked);
    // Names are what clients write: they are not all kept.
    if (this.#found.size >= MOST_KEPT) this.#found.clear();
    this.#found.set(asked, card);
    return card;
  }

  #look(asked: string): Card | null {
    const exact = this.#named(asked.toLowerCase());
    if (exact !== null) return exact;
    const slice = sliceWords(asked);
    if (slice !== null) {
      const parent = slice.parent === "" ? null : this.find(slice.parent);
      return namedCard(`${parent?.id ?? "MIG"}-${slice.profile}`, slice.gb, asked, parent, true);
    }
    const folded = foldCardName(asked);
    const whole = this.#known(folded) ?? this.#withItsMemory(folded);
    if (whole !== null) return whole;
    const { family, statedGb } = cardWords(folded);
    const variants = variantsOf(family)?.map((id) => this.#withId(id)!);
    const card = variants?.[0] ?? this.#known(family);
    if (card === null || statedGb === null) return card;
    const stated = [...(variants ?? []), card].find((variant) => variant.gb === statedGb);
    return stated ?? namedCard(`${family.toUpperCase()}-${statedGb}GB`, statedGb, asked, card, false);
  }

  #known(folded: string): Card | null {
    const alias = aliasOf(folded);
    this.#folded ??= new Map(
      [...this.#claimants()].flatMap((card) =>
        [card.id, ...card.names].map((name) => [foldCardName(name), card] as const),
      ),
    );
    return this.#folded.get(folded) ?? (alias === null ? null : this.#withId(alias));
  }

  /** `h100-80`, `a6000-48`: a bare number after a card's name, when it is that card's memory. */
  #withItsMemory(folded: string): Card | null {
    const match = /^(.+)-(\d{1,4})$/.exec(folded);
    const card = match === null ? null : this.#known(match[1]!);
    return card !== null && card.gb === Number(match?.[2]) ? card : null;
  }

  nearest(name: string): string | null {
    return nearestOf(
      name,
      this,
      this.cards.flatMap((card) => [...card.names, card.id]),
    );
  }

  nameOf(card: Card): string {
    return card.names[0] ?? card.id;
  }
}

/** The same lookups with a site's GPU map: its types and nothing else, spelled its way. */
function siteNames(plain: Lookup, types: readonly (readonly [string, string])[]): Lookup {
  const byType = new Map<string, Card>();
  const spelling = new Map<string, string>();
  for (const [type, name] of types) {
    const card = plain.find(name);
    if (card === null)
      throw unknownCard(`the GPU map maps \`${shown(type)}\` to \`${shown(name)}\`,`, plain.nearest(name));
    byType.set(type.toLowerCase(), { ...card, candidate: true });
    if (!spelling.has(card.id)) spelling.set(card.id, type);
  }
  const cards = new Map([...byType.values()].map((card) => [card.id, card]));
  const lookup: Lookup = {
    cards: [...cards.values()],
    find: (name) => byType.get(name.trim().toLowerCase()) ?? null,
    nearest: (name) =>
      nearestOf(
        name,
        lookup,
        types.map(([type]) => type),
      ),
    nameOf: (card) => spelling.get(card.id) ?? plain.nameOf(card),
  };
  return lookup;
}

/** `H100:8` for `8xH100` and `H100 x 8`; otherwise the nearest name. */
function nearestOf(name: string, lookup: Lookup, known: readonly string[]): string | null {
  const asked = name.trim().slice(0, MAX_NAME_LENGTH);
  const swapped = /^(\d{1,4})\s*[xX*]\s*(\S+)$/.exec(asked) ?? /^(\S+?)\s*[xX*]\s*(\d{1,4})$/.exec(asked);
  if (swapped !== null) {
    const [, first = "", second = ""] = swapped;
    const [count, word] = /^\d+$/.test(first) ? [first, second] : [second, first];
    const card = lookup.find(word);
    const near = card === null ? nearest(word, known) : lookup.nameOf(card);
    return near === null ? null : `${near}:${Number(count)}`;
  }
  return nearest(asked, known);
}

function unknownCard(what: string, near: string | null) {
  const hint = near === null ? "Add it with a card file (--cards)." : `Did you mean \`${near}\`?`;
  return invalid(`${what} which has no capacity on file`, hint);
}
