import type { ArgDef, ArgsDef } from "citty";
import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import type { Command, ParsedWords } from "./command.ts";

/**
 * Reads a command line against the flags a command declares, and refuses what it does not know. citty itself
 * accepts unknown flags, stray words and empty values silently, which in a gate would mean that a misspelled
 * `--max-cost-usd` is no cap at all.
 *
 * Throws `GateError("usage")` with the nearest known flag as a suggestion.
 */
export function parseStrict(
  rawWords: readonly string[],
  args: ArgsDef,
  manners: Pick<Command, "repeatable" | "bare" | "strayHint" | "verbatim"> = {},
): ParsedWords {
  const values: Record<string, string> = {};
  const lists: Record<string, string[]> = {};
  const switches: Record<string, boolean> = {};
  const words: string[] = [];
  const positionals = Object.entries(args).filter(([, def]) => def.type === "positional");

  for (let index = 0; index < rawWords.length; index++) {
    const word = rawWords[index]!;
    if (word === "--") {
      words.push(...rawWords.slice(index + 1));
      break;
    }
    if (!word.startsWith("-") || word === "-") {
      words.push(word);
      continue;
    }
    const { name, def, inline, negated } = resolveFlag(word, args);
    if (def.type === "boolean") {
      if (inline !== null)
        throw new GateError("usage", `--${name} takes no value`, `Write \`--${name}\` alone.`);
      switches[name] = !negated;
      continue;
    }
    let value = inline;
    if (value === null && manners.bare?.includes(name)) {
      const next = rawWords[index + 1];
      const taken = next !== undefined && !next.startsWith("-") && positionals.length === 0;
      values[name] = taken ? next : "";
      if (taken) index++;
      continue;
    }
    if (value === null) {
      const next = rawWords[index + 1];
      const flagLike =
        next?.startsWith("--") === true && next.length > 2 && !manners.verbatim?.includes(name);
      if (next === undefined || flagLike) {
        throw new GateError("usage", `--${name} needs a value`, hintOf(name, def));
      }
      value = next;
      index++;
    }
    if (value === "") throw new GateError("usage", `--${name} is empty`, hintOf(name, def));
    if (def.type === "enum" && !def.options?.includes(value)) {
      const near = nearest(value, def.options ?? []);
      throw new GateError(
        "usage",
        `--${name} is \`${value}\`, not one of ${def.options?.join(", ")}`,
        near === null ? null : `Did you mean \`${near}\`?`,
      );
    }
    values[name] = value;
    if (manners.repeatable?.includes(name)) {
      lists[name] ??= [];
      lists[name].push(value);
    }
  }

  if (words.length > positionals.length) {
    throw new GateError(
      "usage",
      `\`${words[positionals.length]}\` is not expected here`,
      positionals.length === 0
        ? (manners.strayHint ?? "This command takes flags only; `--help` lists them.")
        : "One such word is taken; quote it if it has blanks.",
    );
  }
  positionals.forEach(([name, def], place) => {
    if (def.required !== false && words[place] === undefined) {
      throw new GateError("usage", `${name.toUpperCase()} is missing${what(def)}`);
    }
    if (words[place] === "") throw new GateError("usage", `${name.toUpperCase()} is empty${what(def)}`);
  });
  return { values, lists, switches, words };
}

function what(def: ArgDef): string {
  return def.description === undefined ? "" : `: ${def.description}`;
}

function hintOf(name: string, def: ArgDef): string {
  if (def.type === "enum") return `One of ${def.options?.join(", ")}.`;
  return `Write \`--${name} ${def.valueHint ?? "VALUE"}\`.`;
}

function resolveFlag(
  word: string,
  args: ArgsDef,
): { name: string; def: ArgDef; inline: string | null; negated: boolean } {
  const equals = word.indexOf("=");
  const flag = equals === -1 ? word : word.slice(0, equals);
  const inline = equals === -1 ? null : word.slice(equals + 1);
  if (flag.startsWith("--")) {
    const name = flag.slice(2);
    const def = args[name];
    if (def !== undefined && def.type !== "positional") return { name, def, inline, negated: false };
    const positive = name.startsWith("no-") ? args[name.slice(3)] : undefined;
    if (positive?.type === "boolean") return { name: name.slice(3), def: positive, inline, negated: true };
  } else {
    for (const [name, def] of Object.entries(args)) {
      const alias = "alias" in def ? def.alias : undefined;
      if (alias !== undefined && [alias].flat().includes(flag.slice(1)))
        return { name, def, inline, negated: false };
    }
  }
  const known = Object.entries(args)
    .filter(([, def]) => def.type !== "positional")
    .map(([name]) => `--${name}`);
  const near = nearest(flag, known);
  throw new GateError(
    "usage",
    `unknown flag ${flag}`,
    near === null ? "`--help` lists the flags." : `Did you mean ${near}?`,
  );
}
