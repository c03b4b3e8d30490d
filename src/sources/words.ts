import { fail, ok, type Result } from "../lib/result.ts";

/**
 * Splits a command line into words: blanks part them, single quotes keep everything, double quotes keep all but
 * `\"` and `\\`, a backslash outside quotes keeps the next character. No shell: no variables, no globs, no
 * pipes. An open quote or a trailing backslash is an error.
 */
export function splitWords(line: string): Result<string[], string> {
  const words: string[] = [];
  let word = "";
  let started = false;
  let quote: "'" | '"' | null = null;
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (quote !== null) {
      if (char === quote) quote = null;
      else if (quote === '"' && char === "\\" && /["\\]/.test(line.charAt(at + 1))) word += line.charAt(++at);
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      started = true;
    } else if (char === "\\") {
      if (at + 1 === line.length) return fail("the command line ends in a backslash");
      word += line.charAt(++at);
      started = true;
    } else if (/\s/.test(char)) {
      if (started) words.push(word);
      word = "";
      started = false;
    } else {
      word += char;
      started = true;
    }
  }
  if (quote !== null)
    return fail(`the command line has an open ${quote === "'" ? "single" : "double"} quote`);
  if (started) words.push(word);
  return ok(words);
}
