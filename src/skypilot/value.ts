import type { Node, Pair } from "yaml";
import { pyRepr, pyScalar, type YamlScalar } from "./scalar.ts";

export interface YamlEntry {
  readonly key: YamlValue;
  readonly value: YamlValue;
  /** The pair in the text; null when it came through a merge key (`<<`). */
  readonly pair: Pair<Node, Node | null> | null;
}

export interface YamlList {
  readonly kind: "list";
  readonly items: readonly YamlValue[];
}

export interface YamlMap {
  readonly kind: "map";
  /** In Python's order: merged keys first, a repeated key at its first place with its last value. */
  readonly entries: readonly YamlEntry[];
  /** A `!!set`: its keys only. */
  readonly set: boolean;
}

/** Where a value stands; `alias` when the text at that place is `*name`, so that it cannot be edited there. */
export interface Place {
  readonly at: number;
  readonly node: Node | null;
  readonly alias: boolean;
}

export type YamlValue = (YamlScalar | YamlList | YamlMap) & Place;
export type YamlMapValue = YamlMap & Place;

/** The value of a key given as text; null when the mapping lacks it. */
export function entryOf(map: YamlMap, name: string): YamlEntry | null {
  return map.entries.find(({ key }) => key.kind === "str" && key.value === name) ?? null;
}

/** Python's `str()` of any value: `[1, 'a']`, `{'b': 2.0}`. */
export function pyText(value: YamlValue): string {
  return value.kind === "list" || value.kind === "map" ? nested(value) : pyScalar(value);
}

function nested(value: YamlValue): string {
  if (value.kind === "str") return pyRepr(value.value);
  if (value.kind === "other") return value.repr;
  if (value.kind === "list") return `[${value.items.map(nested).join(", ")}]`;
  if (value.kind !== "map") return pyScalar(value);
  if (value.set) return `{${value.entries.map(({ key }) => nested(key)).join(", ")}}`;
  return `{${value.entries.map(({ key, value: of }) => `${nested(key)}: ${nested(of)}`).join(", ")}}`;
}

/** Python's `repr()` of an `!!omap` or `!!pairs`, a list of pairs; null for items that are not one pair each. */
export function pyPairs(items: readonly YamlValue[]): string | null {
  const pairs = items.map((item) => {
    const [entry] = item.kind === "map" && item.entries.length === 1 ? item.entries : [];
    return entry === undefined ? null : `(${nested(entry.key)}, ${nested(entry.value)})`;
  });
  return pairs.includes(null) ? null : `[${pairs.join(", ")}]`;
}
