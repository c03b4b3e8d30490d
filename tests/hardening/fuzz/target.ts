import type { Random } from "./random.ts";

/** One parser (or the way through several) under random inputs. */
export interface Target {
  readonly name: string;
  /** Of the asked number of inputs, so many are tried: 1 = all, 20 = a twentieth, for what takes long. */
  readonly share?: number;
  /** An input that prints as JSON. */
  input(random: Random): unknown;
  /** Feeds one input; throws (or rejects) when something does not hold. */
  check(input: never): void | Promise<void>;
}

/** A target whose input and check agree on a type. */
export function target<T>(one: {
  readonly name: string;
  readonly share?: number;
  input(random: Random): T;
  check(input: T): void | Promise<void>;
}): Target {
  return one as Target;
}

/** What a check says of an input that it does not hold for. */
export function hold(what: boolean, sentence: string): void {
  if (!what) throw new Error(sentence);
}

/** A text as a terminal or a line protocol may get it: no control, no mark of direction, nothing invisible. */
export function isOneLine(text: string): boolean {
  return !/[\p{Cc}\p{Cs}\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/u.test(text);
}
