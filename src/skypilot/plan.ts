import { isMap, isSeq, type Node, type Pair } from "yaml";
import {
  type Edit,
  insertPair,
  lineEnd,
  movedAnchors,
  removeItems,
  replaceValue,
  replaceWord,
  spelled,
} from "./edits.ts";
import type { CandidateOrigin, ExpandedResources } from "./resources.ts";
import { pyText, type YamlEntry, type YamlMap, type YamlMapValue, type YamlValue } from "./value.ts";

/** What is wanted of one candidate: left alone, gone, or other cards. */
export type Wanted = typeof KEEP | typeof DROP | Cards;
export const KEEP = null;
export const DROP = "drop";

interface Cards {
  readonly accelerator: string;
  /** Per node. */
  readonly count: number;
}

type Expanded = ExpandedResources["candidates"];

/** What a candidate asks for now, `A100:8`; empty when it names no accelerator. */
export function now(candidates: Expanded, index: number): string {
  const accelerator = candidates[index]?.candidate.accelerator ?? null;
  return accelerator === null ? "" : `${accelerator.name}:${accelerator.count}`;
}

/**
 * The edits that bring a task's resources to what is wanted of each candidate, by where its accelerators stand:
 * in `accelerators` itself, in an entry of `any_of` or `ordered`, or in the base under such entries.
 *
 * @returns null where that cannot be said in the text as it is.
 */
export function editsOf(
  text: string,
  map: YamlMapValue,
  resources: YamlEntry | null,
  candidates: Expanded,
  wanted: readonly Wanted[],
): Edit[] | null {
  const items = new Map<number, number[]>();
  for (const [index, { origin }] of candidates.entries()) {
    if (origin.item !== null) items.set(origin.item.index, [...(items.get(origin.item.index) ?? []), index]);
  }
  const goneItems = new Set(
    [...items]
      .filter(([, members]) => members.every((index) => wanted[index] === DROP))
      .map(([item]) => item),
  );
  const edits: (Edit | null)[] = [];
  const list = candidates[0]?.origin.item?.list ?? null;
  if (goneItems.size > 0) edits.push(...(removeItems(text, valueNode(list!)!, goneItems) ?? [null]));

  // Candidates that share a place in the text must come to the same there.
  const places = new Map<string, { origin: CandidateOrigin; members: number[] }>();
  const keys = new Map<YamlEntry, number>();
  for (const [index, { origin }] of candidates.entries()) {
    if (origin.item !== null && goneItems.has(origin.item.index)) continue;
    const entry = origin.accelerators?.entry;
    if (entry !== undefined && !keys.has(entry)) keys.set(entry, keys.size);
    const name = entry === undefined ? `none ${index}` : `${keys.get(entry)} ${origin.part}`;
    const place = places.get(name) ?? { origin, members: [] };
    place.members.push(index);
    places.set(name, place);
  }
  const drops = new Map<YamlEntry, Set<number>>();
  for (const { origin, members } of places.values()) {
    const wishes = new Set(members.map((index) => JSON.stringify(wanted[index])));
    const wish = wanted[members[0]!]!;
    if (wishes.size > 1 || isIndirect(origin)) {
      for (const index of members)
        edits.push(inserted(text, map, resources, candidates[index]!.origin, wanted[index]!));
    } else if (wish === DROP) {
      if (origin.part === null || origin.accelerators === null) return null;
      const { entry } = origin.accelerators;
      drops.set(entry, (drops.get(entry) ?? new Set()).add(origin.part));
    } else if (wish !== KEEP) {
      edits.push(...(replaced(text, map, resources, origin, wish) ?? [null]));
    }
  }
  for (const [entry, parts] of drops) {
    const node = valueNode(entry);
    edits.push(
      ...((node === null ? null : removeItems(text, node, withRepeats(entry.value, parts))) ?? [null]),
    );
  }
  const made = edits.filter((edit) => edit !== null);
  if (made.length < edits.length) return null;
  const root = map.node;
  return root === null ? made : [...made, ...movedAnchors(root, text, made)];
}

/** The node in the text at an entry's value: an alias itself, not what it stands for. */
function valueNode(entry: YamlEntry): Node | null {
  return entry.pair?.value ?? null;
}

/** The accelerators come through a merge or an alias of the whole candidate, so they stand somewhere else. */
function isIndirect(origin: CandidateOrigin): boolean {
  if (origin.accelerators === null) return false;
  return origin.accelerators.entry.pair === null;
}

/** A repeated name in a list is one candidate; it goes with its repeats. */
function withRepeats(value: YamlValue, parts: ReadonlySet<number>): Set<number> {
  if (value.kind !== "list") return new Set(parts);
  const names = new Set([...parts].map((part) => pyText(value.items[part]!)));
  return new Set(value.items.flatMap((item, index) => (names.has(pyText(item)) ? [index] : [])));
}

/** Gives a candidate accelerators of its own. */
function inserted(
  text: string,
  map: YamlMapValue,
  resources: YamlEntry | null,
  origin: CandidateOrigin,
  wish: Wanted,
): Edit | null {
  if (wish === DROP) return null;
  const none: Edit = { start: 0, end: 0, text: "" };
  if (wish === KEEP) return none;
  if (origin.part !== null && partsIn(origin) > 1) return null;
  const value = `${wish.accelerator}:${wish.count}`;
  if (origin.item !== null) {
    const { list, index } = origin.item;
    const node = valueNode(list);
    const item = isSeq(node) ? (node.items[index] as Node) : null;
    return item === null ? null : insertPair(text, item, "accelerators", value);
  }
  const node = resources === null ? null : valueNode(resources);
  if (resources !== null && isMap(node)) return insertPair(text, node, "accelerators", value);
  const root = map.node;
  if (resources !== null || root === null) return null;
  const edit = insertPair(text, root, "resources", "x");
  if (edit === null) return null;
  const nested = root.range !== null && isMap(root) && root.flow === true ? null : `${lineEnd(text)}  `;
  const pair = `accelerators: ${spelled(value, undefined)}`;
  return {
    ...edit,
    text: edit.text.replace(" x", () => (nested === null ? ` {${pair}}` : `${nested}${pair}`)),
  };
}

function partsIn(origin: CandidateOrigin): number {
  const value = origin.accelerators?.entry.value;
  return value?.kind === "list" ? value.items.length : value?.kind === "map" ? value.entries.length : 1;
}

function replaced(
  text: string,
  map: YamlMapValue,
  resources: YamlEntry | null,
  origin: CandidateOrigin,
  wish: Cards,
): Edit[] | null {
  if (origin.accelerators === null) return some(inserted(text, map, resources, origin, wish));
  const node = valueNode(origin.accelerators.entry);
  const value = `${wish.accelerator}:${wish.count}`;
  if (node === null) return null;
  if (isSeq(node) && origin.part !== null) {
    const { value: list } = origin.accelerators.entry;
    const same = list.kind === "list" ? withRepeats(list, new Set([origin.part])) : new Set([origin.part]);
    return all([...same].map((part) => replaceValue(node.items[part] as Node, value)));
  }
  if (!isMap(node) || origin.part === null) return some(replaceValue(node, value));
  const entry = (origin.accelerators.entry.value as YamlMap).entries[origin.part];
  const pair = entry?.pair ?? null;
  return pair === null ? null : replacedPair(pair, node.items as Pair<Node, Node | null>[], wish);
}

function replacedPair(
  pair: Pair<Node, Node | null>,
  pairs: readonly Pair<Node, Node | null>[],
  { accelerator, count }: Cards,
): Edit[] | null {
  const { key, value } = pair;
  const empty = value === null || (value.range != null && value.range[0] === value.range[1]);
  const taken = pairs.some((other) => other !== pair && String(other.key) === accelerator);
  if (empty || taken) {
    const name = empty && count === 1 && !taken ? accelerator : `${accelerator}:${count}`;
    return all([replaceValue(key, name), ...(empty ? [] : [replaceWord(value, "null")])]);
  }
  return all([replaceValue(key, accelerator), replaceWord(value, String(count))]);
}

function some(edit: Edit | null): Edit[] | null {
  return edit === null ? null : [edit];
}

function all(edits: readonly (Edit | null)[]): Edit[] | null {
  return edits.every((edit) => edit !== null) ? (edits as Edit[]) : null;
}
