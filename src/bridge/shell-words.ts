import { fail, ok, type Result } from "../lib/result.ts";
import { PROJECT_TOKEN, PYTHON_TOKEN } from "./tokens.ts";

/** A text that a shell would do more with than split it. `message` ends the sentence "COMMAND ...". */
export interface WordsProblem {
  readonly message: string;
  readonly hint: string;
}

const LITERAL = "Put it into single quotes where it is meant as it stands.";
const SCRIPT = "Write the line as sh -c '...', or put it into a script.";

/**
 * Splits a command line into words as a POSIX shell does (XCU 2.2, quoting): blanks between words, single and double
 * quotes, backslashes. The command is run without a shell, so what a shell would act upon (pipes, redirections,
 * variables, substitutions) is refused by name: it would silently be an argument.
 */
export function shellWords(source: string): Result<readonly string[], WordsProblem> {
  const words: string[] = [];
  let word: string | null = null;
  let index = 0;
  const add = (piece: string) => {
    word = (word ?? "") + piece;
  };
  while (index < source.length) {
    const character = source[index]!;
    if (character === " " || character === "\t") {
      if (word !== null) words.push(word);
      word = null;
      index++;
    } else if (character === "\\") {
      const next = source[index + 1];
      if (next === undefined)
        return fail({ message: "ends in a backslash", hint: "Leave it out, or double it." });
      if (next !== "\n") add(next);
      index += 2;
    } else if (character === "'") {
      const end = source.indexOf("'", index + 1);
      if (end === -1) return fail({ message: "has a single quote that is not closed", hint: "Close it." });
      add(source.slice(index + 1, end));
      index = end + 1;
    } else if (character === '"') {
      const quoted = doubleQuoted(source, index + 1);
      if (!quoted.ok) return quoted;
      add(quoted.value.text);
      index = quoted.value.next;
    } else if (character === "\n") {
      // Before the first word and behind the last one a line break says nothing.
      const outside = (words.length === 0 && word === null) || source.slice(index).trim() === "";
      if (outside) {
        if (word !== null) words.push(word);
        word = null;
        index++;
      } else return fail({ message: "has several lines, each of them a command", hint: SCRIPT });
    } else if ("|&;<>()".includes(character)) {
      return fail({ message: `holds \`${character}\`, and no shell reads it`, hint: `${SCRIPT} ${LITERAL}` });
    } else if (character === "`") {
      return fail({ message: "holds a backquote, and no shell reads it", hint: `${SCRIPT} ${LITERAL}` });
    } else if (character === "$") {
      const taken = dollar(source, index);
      if (!taken.ok) return taken;
      add(taken.value);
      index += taken.value.length;
    } else {
      add(character);
      index++;
    }
  }
  if (word !== null) words.push(word);
  if (words.length === 0) return fail({ message: "is empty", hint: "Name the program and its arguments." });
  return ok(words);
}

function doubleQuoted(source: string, from: number): Result<{ text: string; next: number }, WordsProblem> {
  let text = "";
  let index = from;
  while (index < source.length) {
    const character = source[index]!;
    if (character === '"') return ok({ text, next: index + 1 });
    if (character === "\\" && index + 1 < source.length) {
      const next = source[index + 1]!;
      if (next !== "\n") text += '$`"\\'.includes(next) ? next : `\\${next}`;
      index += 2;
    } else if (character === "`") {
      return fail({ message: "holds a backquote, and no shell reads it", hint: `${SCRIPT} ${LITERAL}` });
    } else if (character === "$") {
      const taken = dollar(source, index);
      if (!taken.ok) return taken;
      text += taken.value;
      index += taken.value.length;
    } else {
      text += character;
      index++;
    }
  }
  return fail({ message: "has a double quote that is not closed", hint: "Close it." });
}

/** What stands at a `$`: itself where a shell would leave it, one of our tokens, or a refusal. */
function dollar(source: string, index: number): Result<string, WordsProblem> {
  const rest = source.slice(index);
  const token = [PROJECT_TOKEN, PYTHON_TOKEN].find((one) => rest.startsWith(one));
  if (token !== undefined) return ok(token);
  const used = /^\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[^}]*\}?|\(|[0-9@*#?$!-])/.exec(rest)?.[0];
  if (used === undefined) return ok("$");
  return fail({
    message: `names ${used}${used.endsWith("(") ? "...)" : ""}, and nothing expands it`,
    hint: `Write the value itself. ${LITERAL}`,
  });
}

/** A word as a POSIX shell reads it back: left alone where it is plain, otherwise in single quotes. */
export function quoteWord(word: string): string {
  if (/^[A-Za-z0-9@%+=:,./_-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", `'"'"'`)}'`;
}

export function quoteWords(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}
