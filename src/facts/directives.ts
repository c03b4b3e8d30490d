import type { RawFact } from "./raw.ts";

/** One `#NEURARCH` line: what follows the word, and the 1-based line of the script it stands on. */
export interface DirectiveLine {
  readonly text: string;
  readonly line: number;
}

/**
 * The facts in a script's `#NEURARCH` lines: `key=value` words. A value with blanks is quoted as in a shell
 * (`'...'`, `"..."`, `\ `); an unquoted `#` begins a comment, as in `#SBATCH` lines.
 */
export function directiveFacts(lines: readonly DirectiveLine[]): RawFact[] {
  return lines.flatMap(({ text, line }) => {
    const { words: split, open } = splitWords(text);
    const words = joined(split);
    return words.map((word, index): RawFact => {
      const equals = word.indexOf("=");
      const name = equals < 0 ? word : word.slice(0, equals);
      const fact = {
        name,
        value: equals < 0 ? "" : word.slice(equals + 1),
        from: { kind: "directive", name, line },
      } as const;
      if (open !== null && index === words.length - 1) return { ...fact, fault: `has no closing ${open}` };
      return equals < 0 ? { ...fact, fault: "has no value (key=value, without blanks around =)" } : fact;
    });
  });
}

/** `batch = 8` is one fault of one key, not three words of which none is a key: what stands around `=` is dropped. */
function joined(words: readonly string[]): readonly string[] {
  return words.filter((word, index) => word !== "=" && words[index - 1] !== "=");
}

/** Words of one line, shell-like; `open` is the quote that is never closed. */
function splitWords(text: string): { readonly words: readonly string[]; readonly open: string | null } {
  const words: string[] = [];
  let word: string | null = null;
  let quote: string | null = null;
  for (let index = 0; index < text.length; index++) {
    const char = text[index]!;
    if (char === "\\" && quote !== "'") {
      const next = text[index + 1];
      // Inside double quotes a shell keeps the backslash unless it protects something.
      if (
        next !== undefined &&
        (quote === null || next === '"' || next === "\\" || next === "$" || next === "`")
      ) {
        word = (word ?? "") + next;
        index++;
      } else word = (word ?? "") + char;
    } else if (quote !== null) {
      if (char === quote) quote = null;
      else word = (word ?? "") + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word = word ?? "";
    } else if (char === "#") {
      break;
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (word !== null) words.push(word);
  return { words, open: quote };
}
