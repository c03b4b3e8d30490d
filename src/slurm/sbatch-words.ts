import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { isBlank } from "./comments.ts";
import { longOption, longOptionNames, type SbatchOption, shortOption } from "./sbatch-options.ts";

/** A word of the `#SBATCH` lines, and the 1-based line it stands on. */
export interface SbatchWord {
  readonly text: string;
  readonly line: number;
  /** Where it begins, from 1, in the text that was split. */
  readonly column?: number;
}

/** An option as set; `value` is `set` for one that takes none, as the filter's options table has it. */
export interface SetOption {
  readonly option: SbatchOption;
  readonly value: string;
  readonly line: number;
  /** Of the option's own word. */
  readonly column: number;
}

export interface WordProblem {
  readonly code: "quote-open" | "option-unknown" | "option-value" | "word-stray";
  readonly line: number;
  /** Made when it is told: looking for the name that was meant takes its time, and most of many are never told. */
  readonly message: string;
}

/**
 * Words of one `#SBATCH` line as `get_argument` in Slurm's `src/sbatch/opt.c` splits them: blanks separate, `'` and
 * `"` group (also inside a word), `\` takes the next character as it is, also inside quotes, and an unquoted `#`
 * begins a comment. An empty word (`""`) ends the line there too, and so does the separator `hetjob` or `packjob`,
 * which it blanks out (tried against sbatch 22.05). Since 24.05 `\\ ` keeps a blank; earlier it split the word.
 */
export function splitSbatchLine(
  text: string,
  line: number,
): { words: SbatchWord[]; problem: WordProblem | null } {
  const words: SbatchWord[] = [];
  let at = 0;
  for (;;) {
    while (at < text.length && isBlank(text.charCodeAt(at))) at++;
    if (at >= text.length || SEPARATOR.test(text.slice(at, at + 8))) return { words, problem: null };
    const column = at + 1;
    let word = "";
    let quote = "";
    let escaped = false;
    while (at < text.length && (quote !== "" || !isBlank(text.charCodeAt(at)))) {
      const char = text[at]!;
      if (escaped) escaped = false;
      else if (char === "\\") {
        at++;
        if (text[at] === " ") {
          word += " ";
          at++;
        } else escaped = true;
        continue;
      } else if (quote !== "") {
        if (char === quote) {
          quote = "";
          at++;
          continue;
        }
      } else if (char === '"' || char === "'") {
        quote = char;
        at++;
        continue;
      } else if (char === "#") break;
      word += char;
      at++;
    }
    if (word !== "") words.push({ text: word.replaceAll("\r", ""), line, column });
    if (quote !== "") {
      const message = `Line ${line} has no closing ${quote}, which sbatch refuses`;
      return { words, problem: { code: "quote-open", line, message } };
    }
    if (word === "") return { words, problem: null };
  }
}

const SEPARATOR = /^(?:packjob|hetjob)(?:\s|$)/i;

/** Whether what follows `#SBATCH` begins a new component of a heterogeneous job. */
export function isSeparator(text: string): boolean {
  return SEPARATOR.test(text.slice(0, 200).trimStart().slice(0, 8));
}

/**
 * Reads words as sbatch's `getopt_long` does: `--name=value`, `--name value`, `-N2`, `-N 2`, flags together
 * (`-Hv`), and the value on a later line when a line ends with the option. Where sbatch would stop (an unknown
 * option, a stray word) the rest is still read, and the problem is told.
 */
export function readSbatchWords(words: readonly SbatchWord[]): {
  readonly set: readonly SetOption[];
  readonly problems: readonly WordProblem[];
} {
  const set: SetOption[] = [];
  const problems: WordProblem[] = [];
  let next = 0;
  const take = (option: SbatchOption, spelled: string, attached: string | null, word: SbatchWord) => {
    const { line, column = 1 } = word;
    if (option.takes === "nothing") {
      if (attached === null) set.push({ option, value: "set", line, column });
      else problems.push(valueProblem(line, `${spelled} takes no value`));
      return;
    }
    if (attached !== null) {
      set.push({ option, value: attached, line, column });
      return;
    }
    if (option.takes === "optional") {
      set.push({ option, value: option.name === "exclusive" ? "exclusive" : "set", line, column });
      return;
    }
    const value = words[next];
    if (value === undefined) problems.push(valueProblem(line, `${spelled} has no value`));
    else {
      next++;
      set.push({ option, value: value.text, line, column });
    }
  };
  while (next < words.length) {
    const word = words[next++]!;
    const { text, line } = word;
    // `--` ends the options: alone it is nothing, and what follows it is reported as no option.
    if (text === "--") continue;
    if (text.startsWith("--")) {
      const equals = text.indexOf("=");
      const name = text.slice(2, equals < 0 ? undefined : equals);
      const option = longOption(name);
      if (option === null) problems.push(unknownProblem(line, name));
      else take(option, `--${name}`, equals < 0 ? null : text.slice(equals + 1), word);
    } else if (text.startsWith("-") && text.length > 1) {
      for (let at = 1; at < text.length; at++) {
        const option = shortOption(text[at]!);
        if (option === null) {
          problems.push({
            code: "option-unknown",
            line,
            message: `sbatch has no option -${shown(text[at]!)} (line ${line})`,
          });
          break;
        }
        const rest = text.slice(at + 1);
        if (option.takes === "nothing") take(option, `-${text[at]}`, null, word);
        else {
          take(option, `-${text[at]}`, rest === "" ? null : rest, word);
          break;
        }
      }
    } else {
      const message = `"${shown(text)}" on line ${line} is no option, which sbatch refuses`;
      problems.push({ code: "word-stray", line, message });
    }
  }
  return { set, problems };
}

function valueProblem(line: number, what: string): WordProblem {
  return { code: "option-value", line, message: `${shown(what)} (line ${line}), which sbatch refuses` };
}

function unknownProblem(line: number, name: string): WordProblem {
  return {
    code: "option-unknown",
    line,
    get message() {
      const near = nearest(name, longOptionNames());
      const hint = near === null ? "" : `; did you mean --${near}?`;
      return `sbatch has no option --${shown(name)} (line ${line})${hint}`;
    },
  };
}
