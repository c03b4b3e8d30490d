/**
 * The known word that is most likely meant by `word`, for "did you mean"; null when nothing is near.
 *
 * Compared without case and with `_`, blanks and `-` alike. Near means at most a third of the longer word's
 * letters differ (Damerau-Levenshtein: a swap of neighbours counts once), or `word` begins or ends with a known
 * word of three letters or more. Of equally near words the one with the longer common beginning wins, then the
 * first one given.
 */
export function nearest(word: string, known: readonly string[]): string | null {
  const asked = folded(word);
  // A word longer than any name is no misspelling, and comparing it would cost its square.
  if (asked === "" || asked.length > 100) return null;
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  let bestCommon = 0;
  for (const name of known) {
    const candidate = folded(name);
    const distance = editDistance(asked, candidate);
    if (distance > Math.max(1, Math.floor(Math.max(asked.length, candidate.length) / 3))) continue;
    if (distance >= candidate.length) continue;
    const common = commonStart(asked, candidate);
    if (distance < bestDistance || (distance === bestDistance && common > bestCommon)) {
      best = name;
      bestDistance = distance;
      bestCommon = common;
    }
  }
  return best ?? longestPart(asked, known);
}

function longestPart(asked: string, known: readonly string[]): string | null {
  let best: string | null = null;
  for (const name of known) {
    const part = folded(name);
    if (part.length < 3 || part.length <= (best === null ? 0 : folded(best).length)) continue;
    if (asked.startsWith(part) || asked.endsWith(part)) best = name;
  }
  return best;
}

function commonStart(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

function folded(word: string): string {
  return word
    .trim()
    .toLowerCase()
    .replace(/[\s_]+/g, "-");
}

/** Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, before[j - 2]! + 1);
      }
      row.push(least);
    }
    before = previous;
    previous = row;
  }
  return previous[b.length]!;
}
