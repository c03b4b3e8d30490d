import { recipeOf } from "../facts/recipe.ts";
import type { Recipe } from "../facts/types.ts";
import { GB } from "../lib/units.ts";
import type { Candidate, Card, GpuRequest } from "../request/types.ts";
import { alternativesFor } from "./alternatives.ts";
import { basisOf, boundOf, isPooled, needUnder, sizingOn } from "./basis.ts";
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

/**
 * Judges one candidate. Several cards hold one job sharded over all of them (FSDP, ZeRO-3) at the global batch.
 * Under `ddp` every card holds a whole copy, as MIG slices do, which cannot be sharded; under ZeRO-1 and ZeRO-2 every
 * card holds the weights and its share of the rest. There each card is judged by itself, at its own batch.
 */
export function judgeCandidate(
  job: JobToJudge,
  candidate: Candidate,
  request: GpuRequest,
  settings: JudgeSettings,
): Verdict {
  const parallel = job.facts.parallel.value;
  const pooled = isPooled(parallel, candidate);
  const sizing = sizingOn(job, {}, pooled, candidate);
  if (sizing !== null) return judgeOn(pooled, { ...job, sizing }, candidate, request, settings);
  // A source that gives one line for the whole job cannot say what is shared: both ends have to agree.
  const shared = judgeOn(true, job, candidate, request, settings);
  if (shared.reason === "too-small") return shared;
  const alone = judgeOn(false, job, candidate, request, settings);
  if (alone.reason !== "too-small") return alone;
  return {
    kind: "unjudged",
    candidate,
    reason: "recipe-not-sized",
    message:
      `parallel=${parallel} over ${shared.totalCards} cards is not sized: sharded fully the job holds on ` +
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
    borderline: isBorderline(figures, sizing.source === "builtin" || sizing.source === "client"),
  });

  const single = smallestCard(cards, needGb);
  const asked = facts.parallel.from.kind !== "default";
  const copied = asked || basis.cards === 1 ? null : job.resize({ parallel: "ddp" });
  const oneCardNeedGb = basis.cards === 1 ? needGb : peakGb(copied ?? sizing, batch) * headroom;
  return {
    kind: "judged",
    candidate,
    sizing,
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
    // Offloaded parameters are gathered for every layer: that is sharding, asked for by another name.
    onlySharded:
      basis.cards > 1 &&
      !asked &&
      facts.offload.value !== "all" &&
      fit !== "under" &&
      oneCardNeedGb > card.gb,
    oneCardNeedGb,
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
  const change: Partial<Recipe> = job.facts.parallel.value === "sharded" ? {} : { parallel: "sharded" };
  const basis = basisOf(true, job, candidate);
  const on = (count: number) => sizingOn(job, change, true, { ...candidate, count, nodes: 1 }) ?? job.sizing;
  const needGbOn = (count: number) => peakGb(on(count), basis.samples) * headroom;
  // A vendor without listed cards has only the card that was asked to suggest more of.
  return smallestRequest(cards.length > 0 ? cards : [candidate.card], needGbOn, basis.cards);
}

function alternatives(pooled: boolean, job: JobToJudge, candidate: Candidate, headroom: number) {
  const within = boundOf(pooled, job, candidate, headroom);
  const several = candidate.count * candidate.nodes > 1 && !candidate.card.slice;
  return alternativesFor(recipeOf(job.facts), several, (change) =>
    needUnder(job, change, candidate, headroom, within),
  );
}
