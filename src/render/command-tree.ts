/** What can stand for a value: one of some words, a path, or what nobody can list. */
export type Values =
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** One of some words, or a path: a model is either. */
  | { readonly kind: "words-or-files"; readonly words: readonly string[] }
  | { readonly kind: "files" }
  | { readonly kind: "folders" }
  | { readonly kind: "any" };

export interface FlagNode {
  /** Without its dashes. */
  readonly name: string;
  readonly about: string;
  /** Null for a switch, which takes no value. */
  readonly values: Values | null;
  /** What stands for its value in a help. */
  readonly hint: string;
  readonly repeatable: boolean;
}

export interface WordNode {
  readonly name: string;
  readonly about: string;
  readonly required: boolean;
  readonly values: Values;
}

export interface CommandNode {
  /** `judge`, or the two words of a sub-command. */
  readonly name: string;
  readonly about: string;
  readonly flags: readonly FlagNode[];
  readonly words: readonly WordNode[];
  readonly examples: readonly (readonly [line: string, what: string])[];
}

/** The program as its help tells it: what completions and the man page are made from. */
export interface CommandTree {
  readonly program: string;
  readonly version: string;
  readonly about: string;
  readonly commands: readonly CommandNode[];
}

/** The first words of commands, each with what it is about and its sub-commands where it is a group of them. */
export function firstWords(tree: CommandTree): {
  readonly word: string;
  readonly about: string;
  /** The word is a command by itself, too. */
  readonly alone: boolean;
  readonly group: readonly { readonly word: string; readonly about: string }[];
}[] {
  const heads = [...new Set(tree.commands.map(({ name }) => name.split(" ")[0]!))];
  return heads.map((word) => {
    const group = tree.commands
      .filter(({ name }) => name.startsWith(`${word} `))
      .map(({ name, about }) => ({ word: name.slice(word.length + 1), about }));
    const own = tree.commands.find(({ name }) => name === word);
    return {
      word,
      about: own?.about ?? group.map((one) => one.word).join(", "),
      alone: own !== undefined,
      group,
    };
  });
}

/** The names of switches with `no-` before them, which turn them off. */
export function negated(command: CommandNode): string[] {
  return command.flags.filter(({ values }) => values === null).map(({ name }) => `no-${name}`);
}

/** Lists of words that many flags share, each written down once under a name of its own. */
export class WordLists {
  readonly #known = new Map<string, string>();

  constructor(private readonly prefix: string) {}

  /** The name of a list; null for a short one, which stands where it is used. */
  nameOf(words: readonly string[]): string | null {
    if (words.length <= 20) return null;
    const body = words.join(" ");
    const known = this.#known.get(body) ?? `${this.prefix}_list_${this.#known.size + 1}`;
    this.#known.set(body, known);
    return known;
  }

  /** Every named list. */
  all(): { readonly name: string; readonly words: string }[] {
    return [...this.#known].map(([words, name]) => ({ name, words }));
  }
}
