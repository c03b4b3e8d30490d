import { recipeOf } from "../facts/recipe.ts";
import type { Recipe } from "../facts/types.ts";
import { GB } from "../lib/units.ts";
import type { Candidate, Card, GpuRequest } from "../request/types.ts";
import type { Sizing } from "../sizing/types.ts";
import { alternativesFor } from "./alternatives.ts";
import { costOf } from "./cost.ts";
import { agreeing, dependsOnBatch, failsAtFirstStep, largestBatch, peakGb, peakMoment } from "./figures.ts";
import { fitOf, isBorderline } from "./fit.ts";
import { NO_REWRITE, rewriteOf } from "./rewrite.ts";
import type { Size } from "./suggest.ts";
import {
  asCardCount,
  cheapest,
  comparable,
  holding,
  sizesUpTo,
  smallestCard,
  smallestRequest,
} from "./suggest.ts";
import type { JobToJudge, Judged, JudgeSettings, Verdict } from "./types.ts";

/** How a job lies on its cards: one job over all of them, or a whole copy on each. */
interface Basis {
  readonly pooled: boolean;
  /** Cards that share one copy. */
  readonly cards: number;
  readonly capacityGb: number;
  readonly samples: number;
}

/**
 * Judges one candidate. Several cards hold one job sharded over all of them (FSDP, ZeRO-3) at the global batch,
 * except under `parallel=ddp`, where every card holds a whole copy, and on MIG slices, which cannot be sharded.
 * ZeRO-1 and ZeRO-2 lie between the two: judged where both agree, else not judged.
 */
export function judgeCandidate(
  job: JobToJudge,
  candidate: Candidate,
  request: GpuRequest,
  settings: JudgeSettings,
): Verdict {
  const parallel = job.facts.parallel.value;
  const several = candidate.count * candidate.nodes > 1;
  if (candidate.card.slice || parallel === "ddp") return judgeOn(false, job, candidate, request, settings);
  if (!several || parallel === "sharded") return judgeOn(true, job, candidate, request, settings);
  const pooled = judgeOn(true, job, candidate, request, settings);
  if (pooled.reason === "too-small") return pooled;
  const alone = judgeOn(false, job, candidate, request, settings);
  if (alone.reason !== "too-small") return alone;
  return {
    kind: "unjudged",
    candidate,
    reason: "recipe-not-sized",
    message:
      `parallel=${parallel} over ${pooled.totalCards} cards is not sized: sharded fully the job holds on ` +
      `${candidate.label}, copied whole to each card it does not`,
  };
}

function judgeOn(
  pooled: boolean,
  job: JobToJudge,
  candidate: Candidate,
  request: GpuRequest,
  settings: JudgeSettings,
): Judged {
  const { sizing, facts } = job;
  const { table, headroom } = settings;
  const { card, count, nodes } = candidate;
  const batch = facts.batch.value;
  const totalCards = count * nodes;
  const basis = basisOf(pooled, job, candidate);
  const { capacityGb, samples } = basis;
  const peak = peakGb(sizing, samples);
  const needGb = peak * headroom;
  const figures = { needGb, peakGb: peak, capacityGb, cards: basis.cards };

  const cards = comparable(candidate, request, table);
  const sizes = sizesUpTo(cards, basis.cards);
  const holds = holding(sizes, needGb);
  const fit = fitOf(
    needGb,
    capacityGb,
    holds.map((size) => size.gb),
  );
  const over = fit === "over" && settings.wholeNodes !== true;
  const right = over ? cheapest(holds) : null;
  const rewrite = over ? rewriteOf(candidate, request, basis, holds, settings) : NO_REWRITE;
  const target = rewrite.size;
  const countOf = (size: Size | null) => asCardCount(size, table, pooled ? undefined : count);

  const hours = facts.hours.value ?? settings.fallbackHours;
  const paid = target ?? { card, count };
  const paidCards = pooled ? (target?.count ?? totalCards) : totalCards;
  const cost = fit === "under" ? null : costOf(paid.card, paidCards, hours, settings);
  const refusedByCost = cost?.overCap === true && !cost.upperBound;
  const outcome = outcomeOf({
    fit,
    over,
    rewrites: target !== null,
    overCap: cost?.overCap === true,
    refusedByCost,
    borderline: isBorderline(figures, sizing.source === "builtin"),
  });

  const single = smallestCard(cards, needGb);
  const asked = facts.parallel.from.kind !== "default";
  const copied = asked || basis.cards === 1 ? null : job.resize({ parallel: "ddp" });
  const oneCardNeedGb = basis.cards === 1 ? needGb : peakGb(copied ?? sizing, batch) * headroom;
  return {
    kind: "judged",
    candidate,
    ...outcome,
    requestGb: card.gb * totalCards,
    pooled,
    totalCards,
    capacityGb,
    globalBatch: pooled ? samples : batch * totalCards,
    peakGb: peak,
    needGb,
    stateGb: sizing.stateBytes / GB,
    stateNeedGb: (sizing.stateBytes / GB) * headroom,
    peakMoment: peakMoment(sizing, samples)?.name ?? null,
    failsAtFirstStep: fit === "under" && failsAtFirstStep(sizing, samples, capacityGb, headroom),
    fit,
    largestBatch: agreeing(largestBatch(sizing, capacityGb, basis.cards, headroom), {
      fits: fit !== "under",
      asked: samples / basis.cards,
    }),
    dependsOnBatch: dependsOnBatch(sizing),
    oneSampleNeedGb: peakGb(sizing, basis.cards) * headroom,
    smallestCard: countOf(single),
    smallestRequest:
      fit === "under" && single === null
        ? asCardCount(sharded(job, candidate, cards, headroom), table)
        : null,
    rightSized: countOf(right),
    rightSizedCard: right?.card ?? null,
    rewriteTo: refusedByCost ? null : countOf(target),
    rewriteCard: refusedByCost ? null : (target?.card ?? null),
    rewriteBlocked: rewrite.blocked,
    alternatives: fit === "under" ? alternatives(pooled, job, candidate, headroom) : [],
    cost,
    costUnchecked:
      settings.maxCostUsd === null || fit === "under" || cost !== null
        ? null
        : hours === null
          ? "no-hours"
          : "no-price",
    onlySharded: basis.cards > 1 && !asked && fit !== "under" && oneCardNeedGb > card.gb,
    oneCardNeedGb,
  };
}

function basisOf(pooled: boolean, job: JobToJudge, candidate: Candidate): Basis {
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

/** The rule, worst first: cannot hold, over the cap, rewritten, over-requested, borderline, over a soft cap, fits. */
function outcomeOf(is: {
  fit: Judged["fit"];
  over: boolean;
  rewrites: boolean;
  overCap: boolean;
  refusedByCost: boolean;
  borderline: boolean;
}): Pick<Judged, "decision" | "rule" | "reason"> {
  if (is.fit === "under") {
    return { decision: "refuse", rule: "admission/request-does-not-fit", reason: "too-small" };
  }
  if (is.refusedByCost) {
    return { decision: "refuse", rule: "admission/cost-cap", reason: "over-cost-cap" };
  }
  if (is.over) {
    const decision = is.rewrites ? "rewrite" : "warn";
    return { decision, rule: "admission/over-requested", reason: "over-requested" };
  }
  if (is.borderline) {
    return { decision: "warn", rule: "admission/borderline-fit", reason: "borderline" };
  }
  if (is.overCap) return { decision: "warn", rule: "admission/cost-cap", reason: "over-cost-cap" };
  return { decision: "allow", rule: null, reason: "fits" };
}

/** The smallest request as one sharded job at the same global batch; none for slices. */
function sharded(
  job: JobToJudge,
  candidate: Candidate,
  cards: readonly Card[],
  headroom: number,
): Size | null {
  if (candidate.card.slice) return null;
  const sizing = job.facts.parallel.value === "sharded" ? null : job.resize({ parallel: "sharded" });
  const basis = basisOf(true, job, candidate);
  const needGb = peakGb(sizing ?? job.sizing, basis.samples) * headroom;
  // A vendor without listed cards has only the card that was asked to suggest more of.
  return smallestRequest(cards.length > 0 ? cards : [candidate.card], needGb, basis.cards);
}

function alternatives(pooled: boolean, job: JobToJudge, candidate: Candidate, headroom: number) {
  const { card, count, nodes } = candidate;
  const needOf = (sizing: Sizing, recipe: Recipe) => {
    const basis = basisOf(pooled || (recipe.parallel === "sharded" && !card.slice), job, candidate);
    return { needGb: peakGb(sizing, basis.samples) * headroom, capacityGb: basis.capacityGb };
  };
  // Of one copy on one card and one job over all of them the roomier may be meant: the bound is for that.
  const bytes = (card.gb * count * nodes * GB) / headroom;
  const { samples } = basisOf(pooled, job, candidate);
  return alternativesFor(job, recipeOf(job.facts), needOf, { bytes, samples });
}
