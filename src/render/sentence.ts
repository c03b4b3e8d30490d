import { capacityGb } from "../lib/units.ts";
import { BORDERLINE_SHARE, MEASURED_FACTOR, MEASURED_GB_PER_CARD, measuredGb } from "../verdict/fit.ts";
import type { Judged, NotJudged, Verdict } from "../verdict/types.ts";
import {
  assumedSentence,
  batchSentence,
  capacityOf,
  holds,
  labelOf,
  modelOf,
  PREFIX,
  rate,
  sizedBy,
  smallestSentence,
  spelled,
  subject,
} from "./parts.ts";
import { counted, cut, dollars, oneDecimal, printable, unstopped } from "./text.ts";
import type { Telling } from "./types.ts";

/**
 * One verdict as one line for people, whatever it is. `applied` = false words a rewrite as a possibility, for a
 * request that is refused on another candidate's account.
 *
 * Order: need, have, largest batch, smallest request, source, next step, the change that would make it fit.
 */
export function sentenceOf(verdict: Verdict, telling: Telling, applied = true): string {
  if (verdict.kind === "unjudged") {
    return verdict.budget === undefined ? notJudged(verdict, telling) : budget(verdict.budget);
  }
  if (verdict.budget !== undefined && verdict.decision !== "allow") {
    const priced = verdict.budget.rule === "budget/cost-per-run" && verdict.cost !== null;
    return budget(verdict.budget, priced ? `: ${rate(verdict, telling)}` : "");
  }
  const sentence = judged(verdict, telling, applied);
  const { setTo } = verdict;
  if (setTo !== undefined) {
    const then = verdict.decision === "refuse" ? "Refused" : "Allowed";
    return `${sentence} ${cut(`${then}: ${verdict.rule} is set to ${setTo.severity} in ${setTo.file}`, 600)}.`;
  }
  if (verdict.waiver === undefined) return sentence;
  const { file, owner, expires, reason } = verdict.waiver;
  const waived = `Allowed: waived in ${file} by ${owner} until ${expires}: ${unstopped(reason)}.`;
  return `${sentence} ${cut(waived, 600)}`;
}

function judged(verdict: Judged, telling: Telling, applied: boolean): string {
  switch (verdict.reason) {
    case "too-small":
      return tooSmall(verdict, telling);
    case "over-cost-cap":
      return overCostCap(verdict, telling);
    case "over-requested":
      return verdict.rewriteTo !== null && verdict.decision === "rewrite" && applied
        ? rewrote(verdict, telling)
        : overRequested(verdict, telling);
    case "borderline":
      return borderline(verdict, telling);
    case "fits":
      return line(
        `${subject(verdict, telling)}, and ${holds(verdict, telling)}.`,
        assumedSentence(telling),
        sized(telling),
      );
  }
}

/** The request cannot hold the training peak. `note` stands before the next step. */
export function tooSmall(verdict: Judged, telling: Telling, note: string | null = null): string {
  const { requestField, batchField } = telling.words;
  const fields = verdict.largestBatch === null ? requestField : `${requestField} or ${batchField}`;
  const other = verdict.alternatives[0];
  return line(
    `${subject(verdict, telling)}, and ${holds(verdict, telling)}.`,
    batchSentence(verdict, telling),
    verdict.failsAtFirstStep
      ? "The moment of the peak is the first optimizer step: forward and backward before it would fit."
      : null,
    smallestSentence(verdict),
    assumedSentence(telling),
    sized(telling),
    note,
    `Change ${fields} and resubmit.`,
    other === undefined
      ? null
      : `With ${other.change}${overAll(verdict, other.change)} it needs ${oneDecimal(other.needGb)} GB.`,
  );
}

/** A need that is told of one card, and of which sharding makes one of all of them. */
function overAll({ pooled, totalCards }: Judged, change: string): string {
  const changes = !pooled && totalCards > 1 && change === "parallel=sharded";
  return changes ? `, over all ${totalCards} cards together,` : "";
}

/** The run costs more than the cap. With spot the list price is an upper bound, so it stays a warning. */
export function overCostCap(verdict: Judged, telling: Telling): string {
  const cost = verdict.cost!;
  const soft = cost.upperBound;
  const rewritten = cost.card.id !== verdict.candidate.card.id || cost.cards !== verdict.totalCards;
  const paid = `${telling.settings.table.nameOf(cost.card)}:${cost.cards}`;
  const as = rewritten ? `, even rewritten to ${cut(paid)},` : "";
  return line(
    `${modelOf(telling)} on ${labelOf(verdict)}${as} ${soft ? "may cost up to" : "would cost"} ` +
      `${dollars(cost.usd)}: ${rate(verdict, telling)}, over the cap of ${dollars(cost.capUsd ?? 0)}.`,
    soft ? "A list price is only an upper bound for spot, so this is a warning." : null,
    soft ? null : `Change ${telling.words.requestField} or the hours and resubmit.`,
  );
}

function overRequested(verdict: Judged, telling: Telling): string {
  const asked = `${labelOf(verdict)} (${capacityOf(verdict, telling)}${verdict.pooled || verdict.totalCards === 1 ? "" : " each"})`;
  const right = verdict.rightSized;
  const blocked = verdict.rewriteBlocked;
  if (right === null || blocked === "cheapest-already") {
    const smaller = verdict.smallestCard;
    const named = smaller === null ? "smaller requests hold it" : `${spelled(smaller)} would hold it`;
    return line(
      `${asked} is over-requested in memory: ${subject(verdict, telling)}, and ${named}; ` +
        "at the prices in force it is still the cheapest.",
    );
  }
  const why =
    blocked === "multi-node" && telling.settings.mutate
      ? "A request over several nodes is never rewritten."
      : blocked === "no-card-allowed" && telling.settings.mutate
        ? "It was not rewritten: no card that this task may use holds it in less."
        : null;
  return line(
    `${asked} is over-requested: ${subject(verdict, telling)}, and ${spelled(right)} ` +
      `(${amountOf(verdict, verdict.rightSizedCard!.gb, right.count)}) holds it.`,
    steps(verdict, telling, right.count),
    assumedSentence(telling),
    why,
  );
}

function rewrote(verdict: Judged, telling: Telling): string {
  const target = verdict.rewriteTo!;
  const { gb } = verdict.rewriteCard!;
  const amount = amountOf(verdict, gb, target.count);
  const share = verdict.needGb / (verdict.pooled ? gb * target.count : gb);
  return line(
    `rewrote ${labelOf(verdict)} to ${spelled(target)}: ${subject(verdict, telling)}, and ${spelled(target)} ` +
      `(${amount}) is the cheapest request allowed that holds it.`,
    steps(verdict, telling, target.count),
    share > BORDERLINE_SHARE
      ? `That is ${Math.round(share * 100)}% of its memory, inside the estimate's error.`
      : null,
    verdict.pooled && target.count > 1 && verdict.oneCardNeedGb > gb
      ? "It holds only if sharded (FSDP or ZeRO-3); plain DDP, what torchrun does by default, would not fit."
      : null,
    verdict.candidate.card.usdPerHour === null
      ? `No price is on file for ${cut(verdict.candidate.accelerator)}, so it may not be cheaper.`
      : null,
    assumedSentence(telling),
  );
}

/** What a smaller number of cards means for the batch: the need was taken at the global batch. */
function steps(verdict: Judged, telling: Telling, count: number): string | null {
  const { globalBatch, totalCards, pooled, dependsOnBatch } = verdict;
  if (!pooled || !dependsOnBatch || count >= totalCards) return null;
  const batch = telling.facts.batch.value;
  const each = globalBatch % count === 0 ? `${globalBatch / count} per device` : `${globalBatch} in all`;
  return (
    `It holds the same global batch of ${globalBatch}, ${each} on ${counted(count, "card")}; ` +
    `left at ${batch} per device the run takes more steps.`
  );
}

/** The memory of `count` cards of `gb` each: in all where they share the job, else of each. */
function amountOf(verdict: Judged, gb: number, count: number): string {
  return verdict.pooled || count === 1 ? capacityGb(gb * count) : `${capacityGb(gb)} each`;
}

function borderline(verdict: Judged, telling: Telling): string {
  const { needGb, peakGb, pooled, totalCards } = verdict;
  const each = pooled || totalCards === 1 ? "" : "each card of ";
  const share = `${Math.round((needGb / verdict.capacityGb) * 100)}% of the ${capacityOf(verdict, telling)} on ${each}${labelOf(verdict)}`;
  const cards = pooled ? totalCards : 1;
  const inside = needGb > BORDERLINE_SHARE * verdict.capacityGb;
  const why = inside
    ? `${share}, inside the estimate's error.`
    : `${share}; measured runs took up to ${MEASURED_FACTOR} x the peak and ${MEASURED_GB_PER_CARD} GB a card, ` +
      `here ${oneDecimal(measuredGb(peakGb, cards))} GB.`;
  return line(
    `borderline fit: ${subject(verdict, telling)}, ${why}`,
    verdict.largestBatch === null
      ? null
      : `The largest batch with headroom is ${verdict.largestBatch} per device.`,
    assumedSentence(telling),
  );
}

/** A candidate that could not be judged: what, why, and what becomes of it. */
function notJudged(verdict: NotJudged, telling: Telling): string {
  const about = "card" in verdict.candidate ? modelOf(telling) : labelOf(verdict);
  const why = cut(verdict.message, 800)
    .replace(/^Neurarch: /, "")
    .replace(/;? not judged\./, ".")
    .trim();
  return line(
    `${about} not judged: ${/[.?!]$/.test(why) ? why : `${why}.`}`,
    telling.admitsUnjudged === false
      ? "Refused, as this site fails closed."
      : "Allowed unchecked (fail open).",
  );
}

function budget(finding: NonNullable<Judged["budget"]>, amount = ""): string {
  const { file, title, fix } = finding;
  return line(
    cut(`${file}: ${unstopped(title)}${amount}.`, 600),
    fix === null ? null : `${cut(unstopped(fix), 600)}.`,
  );
}

function sized(telling: Telling): string {
  return sizedBy(telling.sizing?.source ?? null);
}

/** One message: the prefix and the sentences that are there. */
export function line(...sentences: (string | null)[]): string {
  return PREFIX + printable(sentences.filter((sentence) => sentence !== null && sentence !== "").join(" "));
}

/** The line that Slurm's warn mode prints in place of a refusal. */
export function submittedAnyway(message: string): string {
  return `${message} Submitted anyway.`;
}
