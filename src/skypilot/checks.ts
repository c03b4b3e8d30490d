import { shown } from "../lib/shown.ts";
import { pyText, type YamlValue } from "./value.ts";

/* Checks of single values of a task file, and how they are put together. */

/** What is wrong with a field: `message` is a sentence without its place. */
export interface Complaint {
  readonly at: number;
  readonly message: string;
}

export type Check = (value: YamlValue, path: string) => Complaint | null;

/** Python's name of a value's type, as SkyPilot's own messages say it. */
export function typeName(value: YamlValue): string {
  const names = { null: "None", map: "dict", other: "date" } as const;
  return value.kind in names ? names[value.kind as keyof typeof names] : value.kind;
}

/** Fields whose values may be told: what else a task holds can be a secret, or stand beside one. */
const TOLD =
  /^(?:resources|num_nodes|name|inputs|outputs|api_server_access)(?![^.[])(?!.*_docker_login_config)/;

export function typed(what: string, test: (value: YamlValue) => boolean): Check {
  return (value, path) => {
    if (test(value)) return null;
    const told = TOLD.test(path)
      ? `${shown(pyText(value), 40) || "empty"} (${typeName(value)})`
      : typeName(value);
    return { at: value.at, message: `\`${path}\` must be ${what}, and it is ${told}.` };
  };
}

export function isInteger(value: YamlValue): boolean {
  return value.kind === "int" || (value.kind === "float" && Number.isInteger(value.value));
}

export const str = typed("text (quote it)", (value) => value.kind === "str");
export const bool = typed("true or false", (value) => value.kind === "bool");
export const int = typed("a whole number", isInteger);
export const number = typed("a number", (value) => value.kind === "int" || value.kind === "float");
export const dict = typed("a mapping", (value) => value.kind === "map" && !value.set);
export const strOrInt = typed("text or a whole number", (value) => value.kind === "str" || isInteger(value));
export const strOrNumber = typed(
  "text or a number",
  (value) => value.kind === "str" || value.kind === "int" || value.kind === "float",
);
export const strOrDict = typed(
  "text or a mapping",
  (value) => value.kind === "str" || (value.kind === "map" && !value.set),
);

export function orNull(check: Check): Check {
  return (value, path) => (value.kind === "null" ? null : check(value, path));
}

export function listOf(check: Check): Check {
  return (value, path) => {
    if (value.kind !== "list") return { at: value.at, message: `\`${path}\` must be a list.` };
    return firstOf(value.items, (item, index) => check(item, `${path}[${index}]`));
  };
}

export function dictOf(check: Check): Check {
  return (value, path) => {
    if (value.kind !== "map") return dict(value, path);
    return firstOf(value.entries, (entry) => check(entry.value, `${path}.${pyText(entry.key)}`));
  };
}

export function firstOf<T>(
  items: readonly T[],
  check: (item: T, index: number) => Complaint | null,
): Complaint | null {
  for (const [index, item] of items.entries()) {
    const complaint = check(item, index);
    if (complaint !== null) return complaint;
  }
  return null;
}

/** A text of a form; `what` is how that form is said. */
export function matching(what: string, form: RegExp): Check {
  return typed(what, (value) => value.kind === "str" && form.test(value.value));
}

/** Whether it is a number above zero, or a text of a form that begins with one. */
export function above(value: YamlValue, form?: RegExp): boolean {
  if (value.kind === "int") return value.value > 0n;
  if (value.kind === "float") return value.value > 0;
  if (value.kind !== "str" || form?.test(value.value) !== true) return false;
  return Number.parseFloat(value.value.replaceAll("_", "")) > 0;
}
