import { GB } from "../lib/units.ts";
import type { Sizing } from "./types.ts";

/**
 * The largest batch per device at which every moment, at `batch * totalCards` samples and times `headroom`,
 * fits into `capacityGb` (GB summed over all cards). Null when none fits, or when no moment depends on the
 * batch. In plain double arithmetic on GB, so that a sizing of one line gives what the published neurarch
 * packages give: floor((capacity / headroom - fixed) / (per sample * cards)).
 */
export function largestBatch(
  sizing: Sizing,
  capacityGb: number,
  totalCards: number,
  headroom: number,
): number | null {
  const roomGb = capacityGb / headroom;
  let largest: number | null = null;
  for (const { fixedBytes, perSampleBytes } of sizing.moments) {
    const fixedGb = fixedBytes / GB;
    if (perSampleBytes <= 0) {
      if (fixedGb > roomGb && sizing.moments.length > 1) return null;
      continue;
    }
    const fits = Math.floor((roomGb - fixedGb) / ((perSampleBytes / GB) * totalCards));
    largest = largest === null ? fits : Math.min(largest, fits);
  }
  return largest !== null && largest >= 1 ? largest : null;
}
