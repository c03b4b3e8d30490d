import { capacityGb } from "../lib/units.ts";
import type { Sizing } from "../sizing/types.ts";
import type { CardCount, Judged, Verdict } from "../verdict/types.ts";
import { counted, cut, oneDecimal, printable, unstopped } from "./text.ts";
import type { Telling } from "./types.ts";

/** Every message begins with it. */
export const PREFIX = "Neurarch: ";

/** `A100-80GB:4`: a suggestion as it is written in a request. */
export function spelled(request: CardCount): string {
  return `${printable(request.accelerator)}:${request.count}`;
}

/** The request as the user wrote it. */
export function labelOf(verdict: Verdict): string {
  return cut(verdict.candidate.label);
}

/** Why a verdict is what it is; what a policy file's budget decided goes by its rule: `card-not-allowed`. */
export function reasonOf(verdict: Verdict): string {
  return verdict.budget?.rule?.replace(/^budget\//, "") ?? verdict.reason;
}

/** The model as the user wrote it, on one line. */
export function modelOf(telling: Telling): string {
  return cut(telling.facts.model.value);
}

/**
 * What the job needs and how it was asked to run: `org/model needs 252.0 GB to train at batch 8 per device, 2048
 * tokens (peak 219.1 GB x 1.15 headroom)`. Facts that are not the default are named, so that two people who read the
 * same message think of the same run.
 */
export function subject(verdict: Judged, telling: Telling): string {
  const { facts, settings } = telling;
  const kept = verdict.globalBatch !== facts.batch.value * verdict.totalCards;
  const batch = kept ? `the global batch of ${verdict.globalBatch}` : `batch ${facts.batch.value} per device`;
  const seqLen = tokensOf(telling);
  const tokens = seqLen === null ? "" : `, ${seqLen} tokens`;
  const recipe = recipeWords(telling).map((word) => `, ${word}`);
  return (
    `${modelOf(telling)} needs ${oneDecimal(verdict.needGb)} GB to train at ${batch}${tokens}${recipe.join("")}` +
    `${spread(verdict)} (peak ${oneDecimal(verdict.peakGb)} GB x ${settings.headroom} headroom)`
  );
}

/** Tokens of a sample; null where a sample is no text, or its length is not known. */
function tokensOf({ sizing, facts }: Telling): number | null {
  return sizing?.asTraced === true ? null : (sizing?.seqLen ?? facts.seqLen.value);
}

/** The facts beyond model, batch and length that are not the default, as a message names them. */
export function recipeWords({ facts }: Pick<Telling, "facts">): string[] {
  const rank = facts.loraRank.value;
  const words: (string | false)[] = [
    rank !== null && `LoRA rank ${rank}`,
    rank !== null && facts.loraTargets.value !== "attention" && `lora-targets=${facts.loraTargets.value}`,
    rank !== null && facts.loraDropout.value > 0 && `lora-dropout=${facts.loraDropout.value}`,
    facts.attention.value !== "sdpa" && `attention=${facts.attention.value}`,
    facts.precision.value !== "amp-bf16" && `precision=${facts.precision.value}`,
    facts.optimizer.value !== "adamw" && `optimizer=${facts.optimizer.value}`,
    facts.checkpointing.value !== "none" && `checkpointing=${facts.checkpointing.value}`,
    facts.quant.value !== "none" && `quant=${facts.quant.value}`,
    facts.parallel.value !== "sharded" && `parallel=${facts.parallel.value}`,
    facts.offload.value !== "none" && `offload=${facts.offload.value}`,
    facts.gradAccum.value !== 1 && `grad-accum=${facts.gradAccum.value}`,
    facts.loss.value !== "full" && `loss=${facts.loss.value}`,
    facts.paddingMask.value && "padding-mask=on",
  ];
  return words.filter((word) => word !== false);
}

/** How the job lies on several cards. */
function spread(verdict: Judged): string {
  if (verdict.totalCards === 1) return "";
  if (verdict.pooled) return ` sharded over ${verdict.totalCards} cards`;
  return verdict.candidate.card.slice ? " on each slice" : " on each card";
}

/** What the need is held against: `24 GB`, or `at least 80 GB` where a memory size stands for many cards. */
export function capacityOf(verdict: Judged, telling: Telling): string {
  const { memoryForm, accelerator } = verdict.candidate;
  const least = memoryForm && telling.settings.table.find(accelerator) === null ? "at least " : "";
  return `${least}${capacityGb(verdict.capacityGb)}`;
}

/** `A10G:1 holds 24 GB`, or what one card of several holds when each has the whole job. */
export function holds(verdict: Judged, telling: Telling): string {
  const amount = capacityOf(verdict, telling);
  if (verdict.pooled || verdict.totalCards === 1) return `${labelOf(verdict)} holds ${amount}`;
  return `each ${verdict.candidate.card.slice ? "slice" : "card"} of ${labelOf(verdict)} holds ${amount}`;
}

/** What a smaller batch would do; null when the size does not depend on the batch. */
export function batchSentence(verdict: Judged, telling: Telling): string | null {
  if (!verdict.dependsOnBatch) return null;
  const label = labelOf(verdict);
  if (verdict.largestBatch !== null) {
    return `The largest batch that fits ${label} is ${verdict.largestBatch} per device.`;
  }
  if (verdict.stateNeedGb > verdict.capacityGb) {
    const state = oneDecimal(verdict.stateNeedGb);
    return `No batch fits ${label}: ${stateWords(verdict)} alone need ${state} GB.`;
  }
  const tokens = tokensOf(telling);
  const sample = tokens === null ? "one sample" : `one sample of ${tokens} tokens`;
  const each = verdict.pooled && verdict.totalCards > 1 ? " (one on each card)" : "";
  return `No batch fits ${label}: ${sample} already needs ${oneDecimal(verdict.oneSampleNeedGb)} GB${each}.`;
}

/** What the state is on what the need is held against: of a mode that shares it, one card's. */
function stateWords({ pooled, totalCards, sizing, candidate }: Judged): string {
  const shares = !pooled && totalCards > 1 && !candidate.card.slice;
  const parallel = shares ? sizing?.recipe.parallel : null;
  if (parallel === "zero1")
    return "on each card the weights, the gradients and its share of the optimizer state";
  if (parallel === "zero2") return "on each card the weights and its share of gradients and optimizer state";
  return "the weights, gradients and optimizer state";
}

/** More cards than a node usually has are said as nodes too: ` (H200:8 on 4 nodes)`. */
function onNodes({ accelerator, count }: CardCount): string {
  if (count <= CARDS_A_NODE || count % CARDS_A_NODE !== 0) return "";
  return ` (${spelled({ accelerator, count: CARDS_A_NODE })} on ${count / CARDS_A_NODE} nodes)`;
}
const CARDS_A_NODE = 8;

/** The smallest card or request that holds the job as asked. */
export function smallestSentence(verdict: Judged): string {
  const { smallestCard, smallestRequest, totalCards, globalBatch, pooled } = verdict;
  const same = `at the same global batch of ${globalBatch}`;
  if (smallestCard !== null) {
    if (totalCards === 1) return `The smallest card that holds this job is ${spelled(smallestCard)}.`;
    if (!pooled) return `The smallest cards that hold this job are ${spelled(smallestCard)}.`;
    return `The smallest single card that holds this job ${same} is ${spelled(smallestCard)}.`;
  }
  if (smallestRequest !== null) {
    return (
      `No single card holds it; the smallest request that does is ${spelled(smallestRequest)}, ` +
      `sharded (FSDP or ZeRO-3) ${same}${onNodes(smallestRequest)}.`
    );
  }
  if (verdict.candidate.card.slice) return "No single card holds it.";
  const most = Math.max(64, totalCards);
  return `No single card holds it; no listed request of up to ${most} cards holds it.`;
}

/** What had to be assumed and what was sized instead of what was asked; null when neither. */
export function assumedSentence(telling: Telling): string | null {
  const { sizing, facts } = telling;
  if (sizing === null) return null;
  const sentences: string[] = [];
  const { attention } = sizing.recipe;
  if (["builtin", "client"].includes(sizing.source) && attention !== facts.attention.value) {
    sentences.push(`Sized with attention=${attention} instead of ${facts.attention.value}.`);
  }
  if (sizing.assumed.length > 0) {
    sentences.push(`Assumed: ${cut(sizing.assumed.map(unstopped).join("; "), 400)}.`);
  }
  return sentences.length === 0 ? null : sentences.join(" ");
}

/** Which source gave the figure. */
export function sizedBy(source: Sizing["source"] | null): string {
  switch (source) {
    case "cli":
      return "Sized offline by the neurarch CLI from the model's structure; nothing was trained.";
    case "hosted":
      return "Sized by the hosted plan from the model's graph; nothing was trained.";
    case "client":
      return "Sized by the client, whose word it is: the model cannot be read here; nothing was trained.";
    default:
      return "Sized offline from the model's structure; nothing was trained.";
  }
}

/** `8 cards x 6 h x $2.50 per card-hour (source, date)`, with the array's tasks where there are several. */
export function rate(verdict: Judged, telling: Telling): string {
  const cost = verdict.cost!;
  const tasks = cost.tasks > 1 ? ` x ${cost.tasks} array tasks` : "";
  const source = printable(cost.card.source.price ?? telling.settings.table.priceSource);
  return (
    `${counted(cost.cards, "card")} x ${Number(cost.hours.toFixed(2))} h${tasks} x ` +
    `$${cost.usdPerCardHour.toFixed(2)} per card-hour (${source})`
  );
}
