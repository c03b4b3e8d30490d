import * as v from "valibot";

/**
 * Values as the files of a campaign hold them. A message has two lines: what the value is to be (ends the sentence
 * "KEY is not ..."), and what to write.
 */
const message = (what: string, remedy: string) => `${what}\n${remedy}`;

export function text(what: string, remedy: string) {
  const said = message(what, remedy);
  return v.pipe(v.string(said), v.regex(/\S/, said));
}

export function shaped(pattern: RegExp, what: string, remedy: string) {
  const said = message(what, remedy);
  return v.pipe(v.string(said), v.regex(pattern, said));
}

export function wholeNumber(least: number, remedy: string) {
  const said = message(least === 0 ? "a whole number, 0 or more" : `a whole number from ${least}`, remedy);
  return v.pipe(v.number(said), v.integer(said), v.minValue(least, said), v.maxValue(1_000_000, said));
}

export function positiveNumber(remedy: string) {
  const said = message("a number above 0", remedy);
  return v.pipe(v.number(said), v.finite(said), v.gtValue(0, said));
}

export function oneOf<const Values extends readonly string[]>(values: Values) {
  const [last = "", ...before] = values.toReversed();
  const listed = before.length === 0 ? last : `${before.toReversed().join(", ")} or ${last}`;
  return v.picklist(
    values,
    message(values.length === 1 ? `\`${last}\`` : `one of ${values.join(", ")}`, `Write ${listed}.`),
  );
}

export function yesNo(remedy: string) {
  return v.boolean(message("true or false", remedy));
}

/** A list of texts, none of them blank. */
export function texts(what: string, remedy: string, least = 0) {
  const said = message(what, remedy);
  return v.pipe(v.array(v.pipe(v.string(said), v.regex(/\S/, said)), said), v.minLength(least, said));
}
