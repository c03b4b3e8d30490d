/** One GPU entry of a list: how many of which type; `type` is null when the list does not say. */
export interface GpuEntry {
  /** As written. */
  readonly type: string | null;
  readonly count: number;
}

/** What a list of generic resources asks for. */
export interface GresList {
  readonly gpus: readonly GpuEntry[];
  /** Shares of a GPU (`shard`, `mps`), by kind and type. */
  readonly shares: readonly (GpuEntry & { readonly kind: "shard" | "mps" })[];
  /** Entries that Slurm would not accept, as written; `fraction` tells `gpu:0.5` from the rest. */
  readonly unreadable: readonly { readonly text: string; readonly fraction: boolean }[];
}

/**
 * - `gres`: `--gres`, where an entry needs no prefix (`gpu:a100:2`; the options table has `gres:gpu...` before
 *   23.11 and `gres/gpu...` since);
 * - `tres`: `--tres-per-task`, where `cpu=2` and `license/x=1` stand beside `gres/gpu:h100=1`;
 * - `gpus`: `--gpus` and `--gpus-per-*`, `[type:]count`, where a lone word is a type.
 */
export type GresSyntax = "gres" | "tres" | "gpus";

/** Suffixes of a count (`suffix_mult` in Slurm's `src/common/slurm_protocol_defs.c`), powers of 1024. */
const SUFFIX: Readonly<Record<string, number>> = { k: 1, m: 2, g: 3, t: 4, p: 5 };

/**
 * Reads a list as `slurm_get_next_tres` does: what follows the last `=` or `:` is the count when it is a number,
 * else a type that is meant once; what precedes the first `:` is the name, what is between is the type. Brackets
 * (`(S:0-1)`, `(IDX:0-3)`), which `scontrol` and `sinfo` print, are dropped. An entry named again replaces the
 * earlier one, one with count 0 asks for nothing, and `none` is an empty list.
 */
export function readGres(text: string, syntax: GresSyntax): GresList {
  const gpus = new Map<string, GpuEntry>();
  const shares = new Map<string, GresList["shares"][number]>();
  const unreadable: { text: string; fraction: boolean }[] = [];
  for (const item of splitItems(text)) {
    const name = nameOf(item, syntax);
    if (name === null) continue;
    const entry = readEntry(name.rest);
    if (entry === "unreadable" || entry === "fraction") {
      unreadable.push({ text: item, fraction: entry === "fraction" });
    } else if (name.kind === "gpu") {
      gpus.set(entry.type ?? "", entry);
    } else shares.set(`${name.kind}:${entry.type ?? ""}`, { ...entry, kind: name.kind });
  }
  const asked = <T extends GpuEntry>(entries: Map<string, T>) =>
    [...entries.values()].filter((entry) => entry.count > 0);
  return { gpus: asked(gpus), shares: asked(shares), unreadable };
}

/** Entries between commas; a comma inside brackets (`(S:0,2)`) separates nothing, and the brackets go. */
function splitItems(text: string): string[] {
  const items: string[] = [];
  let item = "";
  let depth = 0;
  for (const char of text) {
    if (char === "(") depth++;
    else if (char === ")") depth = Math.max(0, depth - 1);
    else if (depth > 0) continue;
    else if (char === ",") {
      items.push(item);
      item = "";
    } else item += char;
  }
  items.push(item);
  return items.map((each) => each.trim()).filter((each) => each !== "");
}

/** What kind of GPU resource an entry is, and what follows its name; null for every other resource. */
function nameOf(
  item: string,
  syntax: GresSyntax,
): { readonly kind: "gpu" | "shard" | "mps"; readonly rest: string } | null {
  if (syntax === "gpus") return /^none$/i.test(item) ? null : { kind: "gpu", rest: `:${item}` };
  const bare = item.replace(/^(?:gres[:/])+/i, "");
  const match = /^(gpu|shard|mps)(?=$|[:=])/i.exec(bare);
  if (match === null) return null;
  return { kind: match[1]!.toLowerCase() as "gpu" | "shard" | "mps", rest: bare.slice(match[0].length) };
}

/** `""`, `:2`, `=2`, `:a100`, `:a100:2`, `:a100=2`. */
function readEntry(rest: string): GpuEntry | "unreadable" | "fraction" {
  if (rest === "") return { type: null, count: 1 };
  const equals = rest.lastIndexOf("=");
  const at = equals >= 0 ? equals : rest.lastIndexOf(":");
  const last = rest.slice(at + 1).trim();
  const before = rest.slice(0, at);
  if (last === "") return "unreadable";
  const count = readCount(last);
  if (count === "too-many") return "unreadable";
  if (count !== null) {
    if (before !== "" && !before.startsWith(":")) return "unreadable";
    const type = before.slice(1).trim();
    if (before !== "" && type === "") return "unreadable";
    // A type has no colon: `gpu:a10g:1:2` is one count too many.
    return isNumeric(type) || type.includes(":") ? "unreadable" : { type: type === "" ? null : type, count };
  }
  if (isNumeric(last)) return /[.]/.test(last) && !last.startsWith("-") ? "fraction" : "unreadable";
  // A word after `=` is no count, and after `type:` the place of the count is taken: `gpu:a100:eight`.
  return equals >= 0 || before !== "" ? "unreadable" : { type: last, count: 1 };
}

/** Largest number of cards that is believed to be asked for; more is a mistake, and would overflow sums. */
const MAX_COUNT = 1_000_000;

function readCount(text: string): number | "too-many" | null {
  const match = /^\+?(\d+)(?:([kmgtp])(?:i?b)?)?$/i.exec(text);
  if (match === null) return null;
  const count = Number(match[1]) * 1024 ** (SUFFIX[match[2]?.toLowerCase() ?? ""] ?? 0);
  return count <= MAX_COUNT ? count : "too-many";
}

function isNumeric(text: string): boolean {
  return /^[-+]?(?:\d[\d.]*|\.\d+)$/.test(text);
}
