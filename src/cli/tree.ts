import type { ArgDef } from "citty";
import { catalogueNames } from "../model/catalogue.ts";
import type { CommandNode, CommandTree, FlagNode, Values, WordNode } from "../render/command-tree.ts";
import { buildCardTable } from "../request/cards.ts";
import { ABOUT } from "./about.ts";
import { COMMANDS } from "./app.ts";
import type { Command } from "./command.ts";
import { version } from "./version.ts";

/** The command tree with what can stand for each value, for completions and the man page. Loads every command. */
export async function commandTree(): Promise<CommandTree> {
  const cards = buildCardTable();
  const known: Known = {
    models: { kind: "words-or-files", words: catalogueNames().filter(isPlain) },
    cards: { kind: "words", words: cards.cards.map((card) => cards.nameOf(card)).filter(isPlain) },
  };
  const commands: CommandNode[] = [];
  for (const [name, load] of Object.entries(COMMANDS)) {
    const { command } = await load();
    commands.push(nodeOf(name, command, known));
  }
  return { program: "neurarch-gate", version: version(), about: ABOUT, commands };
}

type Known = Readonly<Record<"models" | "cards", Values>>;

/** Whether a word needs no quotes in any shell. */
function isPlain(word: string): boolean {
  return /^[\w./+@-]+$/.test(word);
}

function nodeOf(name: string, command: Command, known: Known): CommandNode {
  const flags: FlagNode[] = [];
  const words: WordNode[] = [];
  for (const [key, def] of Object.entries(command.args)) {
    const about = def.description ?? "";
    if (def.type === "positional") {
      const values = valuesOfWord(key, command, known);
      words.push({ name: key, about, required: def.required !== false, values });
      continue;
    }
    const hint = def.type === "enum" ? (def.options ?? []).join("|") : (def.valueHint ?? "");
    flags.push({
      name: key,
      about,
      values: def.type === "boolean" ? null : valuesOfFlag(def, hint, known),
      hint,
      repeatable: command.repeatable?.includes(key) === true,
    });
  }
  return { name, about: command.description, flags, words, examples: command.examples };
}

function valuesOfFlag(def: ArgDef, hint: string, known: Known): Values {
  if (hint.startsWith("FILE|")) return { kind: "files" };
  if (def.type === "enum" || hint.includes("|")) return { kind: "words", words: hint.split("|") };
  if (hint === "FILE" || hint === "PATH" || hint === "PROGRAM") return { kind: "files" };
  if (hint === "DIR") return { kind: "folders" };
  if (hint === "ID") return known.models;
  if (hint === "CARD:N") return known.cards;
  return { kind: "any" };
}

/** A word by what the command says of it, else by its name. */
function valuesOfWord(name: string, { completes }: Command, known: Known): Values {
  const words = completes?.[name];
  if (words !== undefined) return { kind: "words", words };
  if (name === "file") return { kind: "files" };
  if (name === "folder") return { kind: "folders" };
  return name === "model" ? known.models : { kind: "any" };
}
