import { recipeOf } from "../facts/recipe.ts";
import type { Recipe } from "../facts/types.ts";
import { GB } from "../lib/units.ts";
import type { Candidate } from "../request/types.ts";
import type { Sizing } from "../sizing/types.ts";
import { peakGb } from "./figures.ts";
import type { JobToJudge, Within } from "./types.ts";

/** How a job lies on its cards: one job over all of them, or each card looked at by itself. */
export interface Basis {
  readonly pooled: boolean;
  /** Cards whose memory is taken together. */
  readonly cards: number;
  readonly capacityGb: number;
  readonly samples: number;
}

/** The basis of a candidate: its cards as one pool at the global batch, or one of its cards at its own batch. */
export function basisOf(pooled: boolean, job: JobToJudge, candidate: Candidate): Basis {
  const batch = job.facts.batch.value;
  if (!pooled) return { pooled, cards: 1, capacityGb: candidate.card.gb, samples: batch };
  const cards = candidate.count * candidate.nodes;
  return {
    pooled,
    cards,
    capacityGb: candidate.card.gb * cards,
    samples: job.globalBatches?.get(candidate.label) ?? batch * cards,
  };
}

/** Whether every card is looked at by itself while it shares a part of what it holds with the others. */
export function sharesState({ parallel }: Pick<Recipe, "parallel">): boolean {
  return parallel === "zero1" || parallel === "zero2";
}

/**
 * The sizing that a candidate is judged by: the job's own, but where what a card holds depends on how many there are.
 * Under ZeRO-1 and 2 it is that of one card of so many. With everything offloaded no card holds a part of the weights:
 * each gathers whole layers, so the pool of a sharded job holds that part once a card. Null when it cannot be sized.
 */
export function sizingOn(
  job: JobToJudge,
  change: Partial<Recipe>,
  pooled: boolean,
  candidate: Candidate,
  within?: Within,
): Sizing | null {
  const recipe = { ...recipeOf(job.facts), ...change };
  const cards = candidate.count * candidate.nodes;
  const asked = Object.keys(change).length === 0;
  const usual = () => (asked ? job.sizing : job.resize(change, within));
  if (cards === 1 || candidate.card.slice) return usual();
  if (sharesState(recipe) || (recipe.offload === "all" && !pooled))
    return job.perCard?.(change, cards) ?? null;
  if (recipe.offload === "all") {
    const each = job.perCard?.(change, cards) ?? usual();
    return each === null ? null : onAll(each, cards);
  }
  return usual();
}

/** What a job needs under a change, and what that is held against. */
export function needUnder(
  job: JobToJudge,
  change: Partial<Recipe>,
  candidate: Candidate,
  headroom: number,
  within: Within,
): { readonly needGb: number; readonly capacityGb: number } | null {
  const { parallel } = { ...recipeOf(job.facts), ...change };
  const pooled = isPooled(parallel, candidate);
  const sizing = sizingOn(job, change, pooled, candidate, within);
  // A change that the run itself would not take up is none to suggest.
  if (sizing === null || cautionsOf(sizing) > cautionsOf(job.sizing)) return null;
  const { samples, capacityGb } = basisOf(pooled, job, candidate);
  return { needGb: peakGb(sizing, samples) * headroom, capacityGb };
}

function cautionsOf({ cautions }: Sizing): number {
  return cautions?.length ?? 0;
}

/** The bytes beyond which no change is of use: of all cards together, with the samples of the smaller basis. */
export function boundOf(pooled: boolean, job: JobToJudge, candidate: Candidate, headroom: number): Within {
  const { card, count, nodes } = candidate;
  return {
    bytes: (card.gb * count * nodes * GB) / headroom,
    samples: basisOf(pooled, job, candidate).samples,
  };
}

/** Several cards are one pool but for modes in which each holds a whole copy of the weights, and slices. */
export function isPooled(parallel: Recipe["parallel"], candidate: Candidate): boolean {
  if (candidate.card.slice || parallel === "ddp") return false;
  return parallel === "sharded" || candidate.count * candidate.nodes === 1;
}

/** What all cards hold together where each holds the fixed part of every moment. */
function onAll(sizing: Sizing, cards: number): Sizing {
  return {
    ...sizing,
    floorBytes: sizing.floorBytes * cards,
    stateBytes: sizing.stateBytes * cards,
    moments: sizing.moments.map((moment) => ({
      ...moment,
      fixedBytes: moment.fixedBytes * cards,
      get terms() {
        return moment.terms.map((term) => ({ ...term, fixedBytes: term.fixedBytes * cards }));
      },
    })),
  };
}
