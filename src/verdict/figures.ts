import { GB } from "../lib/units.ts";
import type { Moment, Sizing } from "../sizing/types.ts";

/*
 * The arithmetic of a verdict, in GB and in the order of operations of the published packages: each line is turned
 * into GB before it is multiplied out, so that the same job gives the same figure there and here, to the last bit.
 */

/** The training peak in GB at a number of samples: the largest of all moments and of the floor. */
export function peakGb(sizing: Sizing, samples: number): number {
  let peak = sizing.floorBytes / GB;
  for (const moment of sizing.moments) peak = Math.max(peak, momentGb(moment, samples));
  return peak;
}

/** One moment in GB at a number of samples. */
export function momentGb(line: Pick<Moment, "fixedBytes" | "perSampleBytes">, samples: number): number {
  return line.fixedBytes / GB + (line.perSampleBytes / GB) * samples;
}

/** The moment in force: the largest at this number of samples, the first of equals; null without moments. */
export function peakMoment(sizing: Sizing, samples: number): Moment | null {
  let largest: Moment | null = null;
  for (const moment of sizing.moments) {
    if (largest === null || momentGb(moment, samples) > momentGb(largest, samples)) largest = moment;
  }
  return largest;
}

/** Whether the peak grows with the batch at all. */
export function dependsOnBatch(sizing: Sizing): boolean {
  return sizing.moments.some((moment) => moment.perSampleBytes > 0);
}

/**
 * The largest batch per device at which every moment x headroom fits the memory of `cards` cards that share one job;
 * null when not even one sample a device fits, or when the size does not depend on the batch.
 */
export function largestBatch(
  sizing: Sizing,
  capacityGb: number,
  cards: number,
  headroom: number,
): number | null {
  const roomGb = capacityGb / headroom;
  if (sizing.floorBytes / GB > roomGb) return null;
  let largest = Number.POSITIVE_INFINITY;
  for (const { fixedBytes, perSampleBytes } of sizing.moments) {
    const fixedGb = fixedBytes / GB;
    if (perSampleBytes > 0) {
      largest = Math.min(largest, Math.floor((roomGb - fixedGb) / ((perSampleBytes / GB) * cards)));
    } else if (fixedGb > roomGb) return null;
  }
  return Number.isFinite(largest) && largest >= 1 ? largest : null;
}

/**
 * Optimizer state is made by the first step, so a first forward and backward can pass where that step cannot. True
 * when the optimizer step does not hold and everything before it, less that state, does.
 */
export function failsAtFirstStep(
  sizing: Sizing,
  samples: number,
  capacityGb: number,
  headroom: number,
): boolean {
  const step = sizing.moments.find((moment) => moment.name === "optimizer-step");
  if (step === undefined || momentGb(step, samples) * headroom <= capacityGb) return false;
  const optimizerBytes = optimizerState(step);
  if (optimizerBytes === 0) return false;
  let beforeGb = (sizing.stateBytes - optimizerBytes) / GB;
  for (const moment of sizing.moments) {
    if (moment === step) continue;
    beforeGb = Math.max(beforeGb, momentGb(moment, samples) - optimizerState(moment) / GB);
  }
  return beforeGb * headroom <= capacityGb;
}

function optimizerState(moment: Moment): number {
  return moment.terms
    .filter((term) => term.name === "optimizer")
    .reduce((sum, term) => sum + term.fixedBytes, 0);
}

/** Division and multiplication can differ in the last bit: the largest batch never contradicts the verdict. */
export function agreeing(largest: number | null, verdict: { fits: boolean; asked: number }): number | null {
  if (largest === null || !Number.isInteger(verdict.asked)) return largest;
  if (verdict.fits) return Math.max(largest, verdict.asked);
  const below = Math.min(largest, verdict.asked - 1);
  return below >= 1 ? below : null;
}
