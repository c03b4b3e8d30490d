import { nearest } from "../lib/nearest.ts";
import text from "./catalogue.jsonl" with { type: "text" };

/** A model whose config is carried inside the executable. */
export interface CatalogueEntry {
  /** The hub's id, as it is spelled there. */
  readonly id: string;
  readonly params: number;
  /** Parameters used by one token; null where all are. */
  readonly activeParams: number | null;
  /** The model's config.json, as far as it says something of sizes. */
  readonly config: unknown;
}

interface Row {
  readonly names: readonly string[];
  readonly params: number;
  readonly active?: number;
  readonly config: unknown;
}

/** The whole catalogue, for a check that it is what was built in. */
export function catalogueText(): string {
  return text;
}

/** Longest name that is looked up; no hub id is longer. */
const LONGEST_NAME = 200;

/**
 * The entry of a hub id or one of its copies' ids, in the given case first, else in any case. One line of the
 * catalogue is parsed, not the whole: it stands in the way of every submit.
 */
export function findInCatalogue(name: string): CatalogueEntry | null {
  if (name === "" || name.length > LONGEST_NAME) return null;
  const needle = JSON.stringify(name);
  const line = lineNaming(text, needle) ?? lineNaming(text.toLowerCase(), needle.toLowerCase());
  if (line === null) return null;
  const row = JSON.parse(text.slice(line.start, line.end)) as Row;
  return {
    id: row.names[0] ?? name,
    params: row.params,
    activeParams: row.active ?? null,
    config: row.config,
  };
}

/** The line whose list of names, which comes first on it, holds the quoted name. */
function lineNaming(
  haystack: string,
  needle: string,
): { readonly start: number; readonly end: number } | null {
  for (let at = haystack.indexOf(needle); at !== -1; at = haystack.indexOf(needle, at + 1)) {
    const start = haystack.lastIndexOf("\n", at) + 1;
    const listed = at > haystack.indexOf("[", start) && at < haystack.indexOf("]", start);
    if (!listed) continue;
    const end = haystack.indexOf("\n", at);
    return { start, end: end === -1 ? haystack.length : end };
  }
  return null;
}

/** Every name in the catalogue, ids before their copies' ids. Reads all of it: for suggestions and lists only. */
export function catalogueNames(): string[] {
  const ids: string[] = [];
  const others: string[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const names = JSON.parse(line.slice(line.indexOf("["), line.indexOf("]") + 1)) as string[];
    names.forEach((name, index) => {
      (index === 0 ? ids : others).push(name);
    });
  }
  return [...ids, ...others];
}

/** The catalogue's name that is most likely meant: the same name without its owner, else the nearest spelling. */
export function nearestInCatalogue(name: string): string | null {
  const asked = name.trim().toLowerCase();
  if (asked.length < 3 || asked.length > LONGEST_NAME) return null;
  const names = catalogueNames();
  const tail = asked.slice(asked.lastIndexOf("/") + 1);
  const sameTail = names.find((known) => known.toLowerCase().split("/").at(-1) === tail);
  if (sameTail !== undefined) return sameTail;
  return nearest(asked, alike(asked, names));
}

/** How many names are compared letter by letter: that costs the square of their length each. */
const MOST_COMPARED = 12;

/** The names that share most pairs of neighbouring letters with `asked`, half of its own at least. */
function alike(asked: string, names: readonly string[]): string[] {
  const pairs: string[] = [];
  for (let at = 0; at + 2 <= asked.length; at++) pairs.push(asked.slice(at, at + 2));
  return names
    .map((name) => {
      const low = name.toLowerCase();
      return { name, shared: pairs.filter((pair) => low.includes(pair)).length };
    })
    .filter(({ shared }) => 2 * shared >= pairs.length)
    .sort((a, b) => b.shared - a.shared)
    .slice(0, MOST_COMPARED)
    .map(({ name }) => name);
}
