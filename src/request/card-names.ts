import type { Card } from "./types.ts";

/** A name without case, with blanks and `_` as `-`, and without the maker's words that say nothing of the card. */
export function foldCardName(name: string): string {
  let folded = name
    .trim()
    .toLowerCase()
    .replace(/[\s_]+/g, "-");
  for (;;) {
    const shorter = folded.replace(/^(?:nvidia|tesla|geforce|amd|instinct|intel|habana)-/, "");
    if (shorter === folded) return folded;
    folded = shorter;
  }
}

/** Other words for a card, as folded: what the drivers report and sites write, beside the catalog names. */
const ALIASES: Readonly<Record<string, string>> = {
  "h100-nvl": "H100-NVL",
  h100nvl: "H100-NVL",
  "h200-nvl": "H200",
  "gh200-120gb": "GH200", // the driver names the module by the memory of its CPU
  "gh200-480gb": "GH200",
  "gh200-624gb": "GH200-144",
  "gh200-144g-hbm3e": "GH200-144",
  "gh200-144gb": "GH200-144",
  "gh200-144gb-hbm3e": "GH200-144",
  v100s: "V100-32",
  "v100s-pcie": "V100-32",
  "rtx-a6000": "A6000",
  "rtx-a5000": "A5000",
  "rtx-a4500": "A4500",
  "rtx-a4000": "A4000",
  "rtx-6000-ada": "RTX6000-Ada",
  "rtx-6000ada": "RTX6000-Ada",
  "rtx-ada-6000": "RTX6000-Ada",
  "rtx-ada6000": "RTX6000-Ada",
  rtxada6000: "RTX6000-Ada",
  "6000-ada": "RTX6000-Ada",
  "a6000-ada": "RTX6000-Ada",
  "rtx-5880-ada": "RTX5880-Ada",
  "rtx-5000-ada": "RTX5000-Ada",
  "rtx-4500-ada": "RTX4500-Ada",
  "rtx-4000-ada": "RTX4000-Ada",
  "rtx-2000-ada": "RTX2000-Ada",
  "quadro-rtx-6000": "Quadro-RTX6000",
  "quadro-rtx-8000": "Quadro-RTX8000",
  "rtx-8000": "Quadro-RTX8000",
  "rtx-3090": "RTX3090",
  "rtx-3090-ti": "RTX3090",
  "rtx3090-ti": "RTX3090",
  "3090": "RTX3090",
  "rtx-4090": "RTX4090",
  "4090": "RTX4090",
  "rtx-5090": "RTX5090",
  "5090": "RTX5090",
  "rtx-2080-ti": "RTX2080Ti",
  "rtx2080-ti": "RTX2080Ti",
  "rtx-2080ti": "RTX2080Ti",
  "2080ti": "RTX2080Ti",
  "titan-rtx": "TITAN-RTX",
  titanrtx: "TITAN-RTX",
  "gaudi-1": "Gaudi",
  "hl-205": "Gaudi",
  "gaudi-2": "Gaudi2",
  "hl-225": "Gaudi2",
  "gaudi-3": "Gaudi3",
  "hl-325": "Gaudi3",
  "hl-325l": "Gaudi3",
};

/** Words of a driver's card name that say how it is built in and what its memory is made of. */
const BUILD_WORDS = /^(?:sxm\d?|pcie|oam|hbm\d?e?|generation|gpu|pg\d+|cnx)$/;

/** What a card name says once the words about its build are gone: `a100` and 80 of `nvidia_a100-sxm4-80gb`. */
export interface CardWords {
  readonly family: string;
  /** Memory that the name states, in GB. */
  readonly statedGb: number | null;
}

export function cardWords(folded: string): CardWords {
  let statedGb: number | null = null;
  const kept = folded.split("-").filter((word) => {
    const memory = /^(\d{1,4})gb?$/.exec(word);
    if (memory !== null) statedGb = Number(memory[1]);
    return memory === null && !BUILD_WORDS.test(word);
  });
  return { family: kept.join("-"), statedGb };
}

/** The id of a built-in card that a folded name is another word for. */
export function aliasOf(folded: string): string | null {
  if (Object.hasOwn(ALIASES, folded)) return ALIASES[folded]!;
  if (/^rtx-?pro-?6000(?:-|$)/.test(folded)) return "RTXPRO6000";
  return null;
}

/** Cards of one family that only their memory tells apart, smallest first; the first one is meant by the bare name. */
const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  a100: ["A100-40", "A100-80"],
  v100: ["V100-16", "V100-32"],
  gh200: ["GH200", "GH200-144"],
};

export function variantsOf(family: string): readonly string[] | null {
  return Object.hasOwn(FAMILIES, family) ? FAMILIES[family]! : null;
}

/** Names that sites give to cards of different memory: no answer is better than the wrong one. */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  "rtx-6000": "the Quadro RTX 6000 (24 GB), the RTX 6000 Ada (48 GB) or the RTX PRO 6000 (96 GB)",
  "rtx-5000": "the Quadro RTX 5000 (16 GB) or the RTX 5000 Ada (32 GB)",
  "rtx-4000": "the Quadro RTX 4000 (8 GB) or the RTX 4000 Ada (20 GB)",
  rtx5000: "the Quadro RTX 5000 (16 GB) or the RTX 5000 Ada (32 GB)",
  rtx4000: "the Quadro RTX 4000 (8 GB) or the RTX 4000 Ada (20 GB)",
};

/** The cards that a name may mean, in words, when it does not tell them apart; null for any other name. */
export function ambiguityOf(name: string): string | null {
  const folded = foldCardName(name);
  return Object.hasOwn(AMBIGUOUS, folded) ? AMBIGUOUS[folded]! : null;
}

/** A MIG slice as its name says it: `nvidia_h100_80gb_hbm3_4g.40gb`, `a100_3g.20gb`, `1g.10gb+me`. */
export interface SliceWords {
  /** The name of the card it is cut from, folded; empty when the name does not say. */
  readonly parent: string;
  /** `3g.20gb`, without compute instances and media extensions. */
  readonly profile: string;
  readonly gb: number;
}

/**
 * Reads a MIG profile at the end of a name (NVIDIA MIG user guide, "GPU instance profiles"): compute slices, `g`,
 * memory in GB; `.`, `-`, `_` or nothing between; `1c.` for a compute instance before and `+me`, `+gfx` after.
 */
export function sliceWords(name: string): SliceWords | null {
  const match = /^(?:(.+?)[-.:])?(?:\d{1,2}c[.-])?(\d{1,2})g[.-]?(\d{1,4})gb(?:[-+.][a-z.+-]+)?$/.exec(
    foldCardName(name),
  );
  if (match === null) return null;
  const [, before = "", slices, memory] = match;
  const gb = Number(memory);
  if (gb === 0 || Number(slices) === 0) return null;
  return { parent: before.replace(/(?:^|[-.])mig$/, ""), profile: `${Number(slices)}g.${gb}gb`, gb };
}

/** A card known by a name alone: a slice, or a known family with a memory that no listed card has. */
export function namedCard(id: string, gb: number, name: string, parent: Card | null, slice: boolean): Card {
  return {
    id,
    gb,
    usdPerHour: null,
    names: [name],
    vendor: parent?.vendor ?? "cuda",
    candidate: false,
    slice,
    source: { capacity: slice ? "the MIG profile's name" : "the memory that the name states", price: null },
  };
}
