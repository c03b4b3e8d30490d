/**
 * Globs of a waiver's scopes. `*` stands for any characters, `?` for one, `[a-z]` for one of a class, `{a,b}` for one
 * of several words, `\` takes the next character as it is. In a path `*` and `?` stop at `/`, and `**` does not.
 *
 * Matching takes time in proportion to pattern times text, whatever they hold: the file is somebody else's, and a
 * submit waits for it.
 */

/** Longest pattern that is read. */
const MAX_PATTERN = 300;
/** Most words that the braces of one pattern may stand for. */
const MAX_WORDS = 32;
/** Longest text that is matched; nothing that a pattern is meant for is longer. */
const MAX_TEXT = 1024;

type Token =
  | { readonly kind: "char"; readonly char: string }
  | {
      readonly kind: "class";
      readonly negated: boolean;
      readonly ranges: readonly (readonly [string, string])[];
    }
  | { readonly kind: "one" }
  | { readonly kind: "any" }
  /** `**`: any characters, slashes too. */
  | { readonly kind: "all" }
  /** `**` with its slash is two tokens: nothing at all or the first character, and the rest up to a slash. */
  | { readonly kind: "folders" }
  | { readonly kind: "within" };

/** What is wrong with a pattern, as the end of a sentence; null when it can be matched. */
export function globProblem(pattern: string): string | null {
  if (pattern === "") return "is empty";
  if (pattern.length > MAX_PATTERN) return `is longer than ${MAX_PATTERN} characters`;
  const words = expand(pattern);
  if (words === null) return `has braces that stand for more than ${MAX_WORDS} words`;
  return words.some((word) => tokensOf(word) === null) ? "has a [ without its ]" : null;
}

/** What a pattern costs to match, in characters of all the words it stands for. */
export function globCost(pattern: string): number {
  return (expand(pattern) ?? []).reduce((sum, word) => sum + word.length, 0);
}

/** Whether a name (a model, a cluster) matches; a pattern with a problem matches nothing. */
export function matchesName(pattern: string, name: string): boolean {
  return matchesWords(pattern, name, false);
}

/**
 * Whether a path matches. A pattern without `/` is held against the last part of the path, as in a `.gitignore`; one
 * that ends in `/` stands for all that is in that folder.
 */
export function matchesPath(pattern: string, path: string): boolean {
  const plain = pattern.replace(/^\.\//, "");
  if (plain.endsWith("/")) return matchesWords(`${plain}**`, path, true);
  const whole = pattern.includes("/") || plain.includes("**");
  return matchesWords(plain, whole ? path : path.slice(path.lastIndexOf("/") + 1), true);
}

function matchesWords(pattern: string, text: string, path: boolean): boolean {
  if (text.length > MAX_TEXT || globProblem(pattern) !== null) return false;
  const characters = Array.from(text);
  return expand(pattern)!.some((word) => matches(tokensOf(word)!, characters, path));
}

/** Walks the text with the set of all places in the pattern that can be reached so far. */
function matches(tokens: readonly Token[], text: readonly string[], path: boolean): boolean {
  const end = tokens.length;
  let reached = new Uint8Array(end + 2);
  let next = new Uint8Array(end + 2);
  reached[0] = 1;
  withoutCharacter(reached, tokens);
  for (const char of text) {
    next.fill(0);
    const slash = path && char === "/";
    for (let place = 0; place < end; place++) {
      if (reached[place] === 0) continue;
      const token = tokens[place]!;
      switch (token.kind) {
        case "char":
          if (token.char === char) next[place + 1] = 1;
          break;
        case "class":
          if (!slash && holds(token, char)) next[place + 1] = 1;
          break;
        case "one":
          if (!slash) next[place + 1] = 1;
          break;
        case "any":
          if (!slash) next[place] = 1;
          break;
        case "all":
          next[place] = 1;
          break;
        case "folders":
          next[place + 1] = 1;
          if (char === "/") next[place + 2] = 1;
          break;
        case "within":
          next[place] = 1;
          if (char === "/") next[place + 1] = 1;
      }
    }
    [reached, next] = [next, reached];
    withoutCharacter(reached, tokens);
  }
  return reached[end] === 1;
}

/** Adds the places that are reached from these without a character; each leads only further on. */
function withoutCharacter(places: Uint8Array, tokens: readonly Token[]): void {
  for (let place = 0; place < tokens.length; place++) {
    if (places[place] === 0) continue;
    const { kind } = tokens[place]!;
    if (kind === "any" || kind === "all") places[place + 1] = 1;
    else if (kind === "folders") places[place + 2] = 1;
  }
}

function holds(token: Extract<Token, { kind: "class" }>, char: string): boolean {
  return token.ranges.some(([from, to]) => from <= char && char <= to) !== token.negated;
}

/** Null where a class is not closed. */
function tokensOf(word: string): Token[] | null {
  const characters = Array.from(word);
  const tokens: Token[] = [];
  for (let at = 0; at < characters.length; at++) {
    const char = characters[at]!;
    if (char === "\\" && at + 1 < characters.length) {
      at++;
      tokens.push({ kind: "char", char: characters[at]! });
    } else if (char === "*") {
      const start = at;
      while (characters[at + 1] === "*") at++;
      const wholePart = start === 0 || characters[start - 1] === "/";
      if (at === start) tokens.push({ kind: "any" });
      else if (wholePart && characters[at + 1] === "/") {
        at++;
        tokens.push({ kind: "folders" }, { kind: "within" });
      } else tokens.push({ kind: "all" });
    } else if (char === "?") tokens.push({ kind: "one" });
    else if (char === "[") {
      const read = classAt(characters, at);
      if (read === null) return null;
      tokens.push(read.token);
      at = read.end;
    } else tokens.push({ kind: "char", char });
  }
  return tokens;
}

function classAt(characters: readonly string[], start: number): { token: Token; end: number } | null {
  let at = start + 1;
  const negated = characters[at] === "!" || characters[at] === "^";
  if (negated) at++;
  const ranges: [string, string][] = [];
  // A ] that comes first stands for itself.
  for (let first = true; characters[at] !== "]" || first; first = false) {
    const from = characters[at];
    if (from === undefined) return null;
    const to = characters[at + 2];
    if (characters[at + 1] === "-" && to !== undefined && to !== "]") {
      ranges.push([from, to]);
      at += 3;
    } else {
      ranges.push([from, from]);
      at++;
    }
  }
  return { token: { kind: "class", negated, ranges }, end: at };
}

/** The words that the braces stand for; a brace without its other half stands for itself. Null when too many. */
function expand(pattern: string): string[] | null {
  const done: string[] = [];
  const open = [pattern];
  while (open.length > 0) {
    if (done.length + open.length > MAX_WORDS) return null;
    const word = open.pop()!;
    const brace = bracesIn(word);
    if (brace === null) {
      done.push(word);
      continue;
    }
    for (const choice of brace.choices)
      open.push(word.slice(0, brace.start) + choice + word.slice(brace.end));
  }
  return done;
}

/** The first braces with a comma at their own level. */
function bracesIn(word: string): { start: number; end: number; choices: string[] } | null {
  for (let start = word.indexOf("{"); start !== -1; start = word.indexOf("{", start + 1)) {
    if (word[start - 1] === "\\") continue;
    const commas = [start];
    let depth = 0;
    for (let at = start; at < word.length; at++) {
      if (word[at] === "\\") at++;
      else if (word[at] === "{") depth++;
      else if (word[at] === "," && depth === 1) commas.push(at);
      else if (word[at] === "}" && --depth === 0) {
        if (commas.length === 1) break;
        const ends = [...commas.slice(1), at];
        return { start, end: at + 1, choices: ends.map((end, i) => word.slice(commas[i]! + 1, end)) };
      }
    }
  }
  return null;
}

/**
 * Why a pattern can match no name or path that is ever held against it, as the end of a sentence; null where it may.
 * Model names and clusters have no blanks at their ends; paths are held against as seen from the policy file's folder,
 * and in full.
 */
export function neverMatches(pattern: string, of: "model" | "path" | "cluster"): string | null {
  if (pattern !== pattern.trim()) return "as it begins or ends with a blank";
  if (/\[[^\]]*([^\]])-([^\]])[^\]]*\]/.test(pattern) && hasEmptyRange(pattern))
    return "as a range in its [ ] ends before it begins";
  if (of === "model" && /^https?:\/\//i.test(pattern))
    return "as a model is named by its id, not by an address";
  if (of === "cluster" && pattern.includes("/")) return "as no cluster has a / in its name";
  if (of !== "path") return null;
  if (pattern.includes("//")) return "as no path has two / together";
  if (pattern.split("/").includes(".."))
    return "as paths are seen from the policy file's folder and never go up";
  return pattern.includes("\\") && !pattern.includes("/") && /\\\w/.test(pattern)
    ? "as folders are divided by /, not by \\"
    : null;
}

function hasEmptyRange(pattern: string): boolean {
  return (expand(pattern) ?? []).some((word) =>
    (tokensOf(word) ?? []).some(
      (token) => token.kind === "class" && !token.negated && token.ranges.every(([from, to]) => from > to),
    ),
  );
}
