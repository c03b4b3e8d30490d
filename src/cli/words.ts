import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";

/** A word that has to be one of some; throws `GateError("usage")` with the one most likely meant. */
export function oneOfWords(what: string, word: string, known: readonly string[]): string {
  if (known.includes(word)) return word;
  const near = nearest(word, known);
  throw new GateError(
    "usage",
    `there is no ${what} \`${shown(word)}\``,
    near === null ? `There is ${known.join(", ")}.` : `Did you mean \`${near}\`?`,
  );
}
