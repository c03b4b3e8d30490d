import type { Fit } from "./types.ts";

/** A request above this share of its memory is a borderline fit. */
export const BORDERLINE_SHARE = 0.85;

/**
 * What measured runs add on top of a built-in sizing: up to 5 % of the peak (fragmentation) and 1.5 GB a card
 * (CUDA context, libraries' work space). On small cards that is more than the headroom.
 */
export const MEASURED_FACTOR = 1.05;
export const MEASURED_GB_PER_CARD = 1.5;

/**
 * Compares what is asked with what is needed. `holdingGb` are the memory sizes of all compared requests that hold
 * the need; a request is right-sized up to the second smallest of them. Where none holds it, the request is itself
 * the only size.
 */
export function fitOf(needGb: number, capacityGb: number, holdingGb: readonly number[]): Fit {
  if (needGb > capacityGb) return "under";
  const sizes = [...new Set(holdingGb)].sort((a, b) => a - b);
  const limit = sizes[Math.min(1, sizes.length - 1)] ?? capacityGb;
  return capacityGb <= limit ? "right-sized" : "over";
}

/** Holds, but so narrowly that the estimate's own error could decide. */
export function isBorderline(
  figures: { needGb: number; peakGb: number; capacityGb: number; cards: number },
  builtin: boolean,
): boolean {
  const { needGb, peakGb, capacityGb, cards } = figures;
  if (needGb > BORDERLINE_SHARE * capacityGb) return true;
  return builtin && measuredGb(peakGb, cards) > capacityGb;
}

/** The most a run of this peak was measured to take on `cards` cards. */
export function measuredGb(peakGb: number, cards: number): number {
  return peakGb * MEASURED_FACTOR + MEASURED_GB_PER_CARD * cards;
}
