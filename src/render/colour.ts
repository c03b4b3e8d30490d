/** How good or bad a word is. */
export type Tone = "good" | "doubtful" | "bad" | "faint";

const CODES: Readonly<Record<Tone, string>> = { good: "32", doubtful: "33", bad: "1;31", faint: "2" };

/** A word in a terminal's colour for its tone. The eight colours of every terminal are the user's own choice of hue. */
export function painted(word: string, tone: Tone): string {
  return `\u001b[${CODES[tone]}m${word}\u001b[0m`;
}
