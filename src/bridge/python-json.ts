/** What can be written as JSON here: no `undefined`, no fractions where Python would have had a float. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/**
 * The text of `json.dumps(value, sort_keys=True, separators=(",", ":"))` in Python: digests and names are made from
 * it, so that both sides of a campaign come to the same ones. Whole numbers are written without a point, everything
 * outside ASCII as `\uXXXX` (`ensure_ascii`), keys in the order of their code points. Keys that are `undefined` are left out.
 */
export function canonicalJson(value: Json): string {
  if (value === null || typeof value === "boolean" || typeof value === "number") return String(value);
  if (typeof value === "string") return asciiText(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.entries(value as { readonly [key: string]: Json | undefined });
  const written = entries
    .filter((entry): entry is [string, Json] => entry[1] !== undefined)
    .sort(([a], [b]) => byCodePoint(a, b))
    .map(([key, item]) => `${asciiText(key)}:${canonicalJson(item)}`);
  return `{${written.join(",")}}`;
}

/** A text as Python's `json.dumps` has it by default: quotes, backslash and controls escaped, all else ASCII. */
function asciiText(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** JavaScript compares UTF-16 units, which puts the astral planes before U+E000. */
function byCodePoint(a: string, b: string): number {
  const left = Array.from(a);
  const right = Array.from(b);
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const difference = left[index]!.codePointAt(0)! - right[index]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
