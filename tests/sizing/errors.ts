/** How far sizes are off, in percent: number, median and 95th percentile of the distance, worst under and over. */
export function summary(errors: readonly number[]) {
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const at = (q: number) => sizes[Math.min(sizes.length - 1, Math.floor(q * sizes.length))]!;
  return {
    n: errors.length,
    median: at(0.5),
    p95: at(0.95),
    under: Math.min(...errors),
    over: Math.max(...errors),
  };
}

/** A table for the test's output, a line a group. */
export function table<T extends { readonly errorPercent: number }>(
  rows: readonly T[],
  keyOf: (row: T) => string,
): string {
  const groups = new Map<string, number[]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row.errorPercent]);
  const lines = [...groups].sort().map(([key, errors]) => {
    const { n, median, p95, under, over } = summary(errors);
    const figures = [median, p95, under, over].map((x) => x.toFixed(3).padStart(8)).join("");
    return `${key.padEnd(34)}${String(n).padStart(5)}${figures}`;
  });
  return [`${"percent off".padEnd(34)}    n  median     p95   under    over`, ...lines].join("\n");
}
