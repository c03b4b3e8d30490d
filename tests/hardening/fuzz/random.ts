/** Random inputs that a seed gives again: grammar of pieces, and samples that are cut, repeated and crossed. */

/** A stream of numbers (mulberry32): the same for the same seed, on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 <= n < `below`. */
  int(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296) * below);
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.int(times) === 0;
  }

  of<T>(list: readonly T[]): T {
    return list[this.int(list.length)]!;
  }

  /** Up to `most` of what `make` gives. */
  many<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.int(most + 1) }, make);
  }

  /** Pieces strung together. */
  soup(pieces: readonly string[], most: number): string {
    let text = "";
    for (let left = this.int(most + 1); left > 0; left--) text += this.of(pieces);
    return text;
  }
}

/** Texts that readers of lines, numbers and names trip over. Written as escapes: most of them are not visible. */
export const ODD: readonly string[] = [
  "\0",
  "\n",
  "\r\n",
  "\r",
  "\t",
  "\u000b",
  "\u001b[31m",
  "\u001b]0;t\u0007",
  "\u0085",
  "\u009b",
  "\u00a0",
  "\u202e",
  "\u2066",
  "\u200b",
  "\u2028",
  "\ufeff",
  "\ufffd",
  "\ud800",
  "\udc00",
  "\u{1f600}",
  "\u{e0041}",
  "'",
  '"',
  "\\",
  "`",
  "$(id)",
  "$" + "{X}",
  ";",
  "|",
  "&",
  "<",
  ">",
  "%s",
  "%n",
  "%",
  "--",
  "-",
  "=",
  ":",
  ",",
  "/",
  "../",
  "0",
  "-1",
  "1e308",
  "9007199254740993",
  "99999999999999999999999999",
  "0x10",
  "NaN",
  "Infinity",
  "null",
  "true",
  "[]",
  "{}",
  "__proto__",
  "constructor",
  "toString",
  " ",
  "",
];

const MOST_CHARACTERS = 20_000;

/** A sample of the corpus, or a grammar's text, with a few changes; once in a while a piece of it many times over. */
export function mutated(random: Random, text: string, pieces: readonly string[]): string {
  let changed = text;
  for (let times = random.int(4) + 1; times > 0; times--) changed = once(random, changed, pieces);
  return changed.length > MOST_CHARACTERS ? changed.slice(0, MOST_CHARACTERS) : changed;
}

function once(random: Random, text: string, pieces: readonly string[]): string {
  const at = random.int(text.length + 1);
  const length = random.int(random.once(3) ? 40 : 4);
  const put = () => (random.once(2) ? random.of(pieces) : random.of(ODD));
  switch (random.int(8)) {
    case 0:
      return text.slice(0, at) + text.slice(at + length);
    case 1:
      return text.slice(0, at) + put() + text.slice(at);
    case 2:
      return text.slice(0, at) + put() + text.slice(at + length);
    case 3:
      return (
        text.slice(0, at) +
        String.fromCharCode(random.int(random.once(4) ? 65_536 : 128)) +
        text.slice(at + 1)
      );
    case 4: {
      // A piece of it elsewhere.
      const from = random.int(text.length + 1);
      return text.slice(0, at) + text.slice(from, from + length) + text.slice(at);
    }
    case 5:
      return text.slice(0, at);
    case 6: {
      const number = /\d+/g;
      const numbers = [...text.matchAll(number)];
      const found = numbers.length === 0 ? null : random.of(numbers);
      if (found === null) return text + put();
      return text.slice(0, found.index) + random.of(NUMBERS) + text.slice(found.index + found[0].length);
    }
    default: {
      if (!random.once(40)) return text + put();
      const piece = random.once(2) ? put() : text.slice(at, at + length + 1);
      return text.slice(0, at) + piece.repeat(random.int(3000)) + text.slice(at);
    }
  }
}

const NUMBERS = [
  "0",
  "1",
  "-1",
  "2",
  "07",
  "1.5",
  "1e9",
  "4294967296",
  "9007199254740993",
  "1e400",
  "0.1",
  "-0",
  "",
];

/** JSON with a value or key changed, so that it stays JSON. */
export function mutatedJson(random: Random, value: unknown): unknown {
  const copy = structuredClone(value);
  for (let times = random.int(3) + 1; times > 0; times--) {
    let at = copy as Record<string, unknown>;
    for (let depth = 0; depth < 6; depth++) {
      const keys = typeof at === "object" && at !== null ? Object.keys(at) : [];
      if (keys.length === 0) break;
      const key = random.of(keys);
      const next = at[key];
      if (typeof next === "object" && next !== null && !random.once(4)) {
        at = next as Record<string, unknown>;
        continue;
      }
      const way = random.int(8);
      if (way < 2 && Array.isArray(at)) at.splice(Number(key), 1);
      else if (way < 2) delete at[key];
      else if (way === 2) at[random.of(keys)] = next;
      else if (way === 3 && !Array.isArray(at)) at[`${key}${random.of(ODD)}`] = next;
      else at[key] = changedValue(random, next);
      break;
    }
  }
  return copy;
}

function changedValue(random: Random, value: unknown): unknown {
  if (typeof value === "number" && random.once(2))
    return random.of([
      0,
      1,
      -1,
      2,
      value + 1,
      value - 1,
      value * 2,
      value / 2,
      value * 1e6,
      1e308,
      -value,
      0.5,
    ]);
  if (typeof value === "string" && random.once(2)) return mutated(random, value, ODD);
  if (Array.isArray(value) && random.once(3)) return Array(random.int(200)).fill(value[0] ?? 1);
  return random.of([
    null,
    true,
    false,
    0,
    1,
    -1,
    3,
    1e18,
    "",
    "1",
    "x",
    [],
    {},
    [1, 2],
    [[]],
    { a: 1 },
    "\u001b[2J",
  ]);
}
