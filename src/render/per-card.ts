import { capacityGb, GB, grouped } from "../lib/units.ts";
import { bytesAt, lineAt } from "../sizing/peak.ts";
import type { Sizing } from "../sizing/types.ts";
import type { Judged } from "../verdict/types.ts";
import { labelOf } from "./parts.ts";
import { counted, oneDecimal } from "./text.ts";
import type { Telling } from "./types.ts";

/** What one of several cards holds, in bytes, and which of it the cards share. */
export interface PerCard {
  readonly cards: number;
  readonly parallel: Sizing["recipe"]["parallel"];
  /** Samples on this card. */
  readonly batch: number;
  /** One card's memory. */
  readonly capacityBytes: number;
  readonly weightsBytes: number;
  /** At the optimizer's step, when all of them are there. */
  readonly gradientsBytes: number;
  readonly bucketsBytes: number;
  readonly optimizerBytes: number;
  /** Beside these at the peak: activations, logits, casts and temporaries. */
  readonly activationsBytes: number;
  /** The largest of all moments; the parts above do not all meet in it. */
  readonly peakBytes: number;
  readonly needBytes: number;
  /** Of `weights`, `gradients`, `optimizer` and `activations` those of which a card holds its part only. */
  readonly shared: readonly string[];
}

const STATE = ["weights", "gradients", "buckets", "optimizer"];

/**
 * One card of a request that was judged on several; null where there is one card, or a sizing of one line. A sharded
 * job is judged over the sum of its cards, so a card's part is an even one, as of the published packages' rule.
 */
export function perCardOf(verdict: Judged, telling: Telling): PerCard | null {
  const { sizing, totalCards, pooled, candidate } = verdict;
  const step = sizing?.moments.find(({ name }) => name === "optimizer-step");
  if (totalCards === 1 || sizing === undefined || step === undefined) return null;
  const { parallel } = sizing.recipe;
  const samples = pooled ? verdict.globalBatch : telling.facts.batch.value;
  const parts = pooled ? totalCards : 1;
  const force = lineAt(sizing, samples);
  const of = (name: string) =>
    step.terms.filter((term) => term.name === name).reduce((sum, term) => sum + term.fixedBytes, 0) / parts;
  const activations = force.terms
    .filter(({ name }) => !STATE.includes(name))
    .reduce((sum, term) => sum + bytesAt(term, samples), 0);
  const peak = bytesAt(force, samples) / parts;
  return {
    cards: totalCards,
    parallel,
    batch: samples / parts,
    capacityBytes: candidate.card.gb * GB,
    weightsBytes: of("weights"),
    gradientsBytes: of("gradients"),
    bucketsBytes: of("buckets"),
    optimizerBytes: of("optimizer"),
    activationsBytes: activations / parts,
    peakBytes: peak,
    needBytes: peak * telling.settings.headroom,
    shared: sharedBy(pooled, parallel, candidate.card.slice),
  };
}

function sharedBy(pooled: boolean, parallel: PerCard["parallel"], slice: boolean): string[] {
  if (pooled) return ["weights", "gradients", "optimizer", "activations"];
  if (slice) return [];
  return parallel === "zero2" ? ["gradients", "optimizer"] : parallel === "zero1" ? ["optimizer"] : [];
}

/** The account of one card for people, lines of an explanation; empty where there is none to give. */
export function perCardLines(verdict: Judged, telling: Telling): string[] {
  const card = perCardOf(verdict, telling);
  if (card === null) return [];
  const { cards, shared, parallel } = card;
  const part = `1/${cards}`;
  const offloaded = verdict.sizing?.recipe.offload === "all";
  const held = (name: string, whole: string) =>
    shared.includes(name) ? `${part} of it; the other cards hold the rest` : whole;
  const rows: [string, number, string][] = [
    [
      "weights",
      card.weightsBytes,
      offloaded ? "in host memory; layers are gathered as they run" : held("weights", "whole"),
    ],
    ["gradients", card.gradientsBytes, held("gradients", "whole")],
    ["buckets", card.bucketsBytes, "whole: the gradients once more, for the all-reduce"],
    ["optimizer", card.optimizerBytes, held("optimizer", "whole")],
    [
      "activations",
      card.activationsBytes,
      `of ${counted(card.batch, "sample")}: its own batch, with logits, casts and temporaries at the peak`,
    ],
    [
      "peak",
      card.peakBytes,
      "the largest moment; gradients come as activations go, so the parts do not add up",
    ],
  ];
  const told = rows.filter(([name, bytes]) => bytes > 0 || (name !== "buckets" && name !== "gradients"));
  const column = Math.max(...told.map(([, bytes]) => grouped(Math.round(bytes)).length));
  const basis = verdict.pooled
    ? `judged over the memory of all ${cards} together at the global batch of ${verdict.globalBatch}`
    : `judged by itself at its own batch of ${card.batch}`;
  return [
    "",
    `One card of ${labelOf(verdict)} under parallel=${parallel}, ${basis}:`,
    ...told.map(
      ([name, bytes, words]) =>
        `    ${grouped(Math.round(bytes)).padStart(column)}  ${name.padEnd(11)}  ${words}`,
    ),
    `  It needs ${oneDecimal(card.needBytes / GB)} GB with headroom and has ${capacityGb(verdict.candidate.card.gb)}.`,
  ];
}
