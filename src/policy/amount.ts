const UNITS: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

/** A count as people write it: `500K`, `7B`, `1.5b`, `7_000_000`; null for anything else. */
export function readAmount(text: string): number | null {
  const match = /^(\d[\d_]*(?:\.\d+)?)\s*([kmbt]?)$/i.exec(text.trim());
  if (match === null) return null;
  const amount = Number(match[1]!.replaceAll("_", "")) * UNITS[match[2]!.toLowerCase()]!;
  return Number.isFinite(amount) ? amount : null;
}

/** A number of dollars, zero or more: `100`, `99.5`, `1_000`; null for anything else. */
export function readDollars(text: string): number | null {
  const match = /^\d[\d_]*(?:\.\d+)?$/.exec(text.trim());
  const usd = match === null ? Number.NaN : Number(match[0].replaceAll("_", ""));
  return Number.isFinite(usd) ? usd : null;
}

/** `8.2B`, `500K`: a count in the unit people use for it, at most one decimal. */
export function shortAmount(count: number): string {
  for (const [unit, size] of [
    ["T", 1e12],
    ["B", 1e9],
    ["M", 1e6],
    ["K", 1e3],
  ] as const) {
    if (count >= size) return `${Number((count / size).toFixed(1))}${unit}`;
  }
  return String(count);
}
