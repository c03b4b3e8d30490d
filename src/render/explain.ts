import type { FactKey, JobFacts, Origin } from "../facts/types.ts";
import { GB, grouped } from "../lib/units.ts";
import { peakBytes } from "../sizing/peak.ts";
import type { Sizing } from "../sizing/types.ts";
import { describe, hang, INCLUDED, recipeText, USUAL_WIDTH } from "./human.ts";
import { momentTerms } from "./json.ts";
import { cut, oneDecimal, printable, wrap } from "./text.ts";

/** What an explanation is about. `facts` and the request's memory are left out where only a model was sized. */
export interface Explained {
  readonly sizing: Sizing;
  /** Samples at the peak, over all cards that share the job. */
  readonly batch: number;
  readonly headroom: number;
  readonly facts?: JobFacts | null;
  readonly capacityGb?: number | null;
  /** What one of several cards holds, as lines. */
  readonly perCard?: readonly string[];
}

/** Every term of every moment in bytes, which moment is in force, and where each input came from. */
export function explain(explained: Explained, width = USUAL_WIDTH): string {
  const { sizing, batch, headroom } = explained;
  const peak = peakBytes(sizing, batch);
  const lines = [
    `${cut(sizing.model)} at ${batch} ${batch === 1 ? "sample" : "samples"} ${sizing.asTraced === true ? "as traced" : `of ${sizing.seqLen} tokens`}`,
    `  ${describe(sizing)}`,
    `  recipe: ${recipeText(sizing.recipe)}`,
    "",
    `The peak is the largest of the moments below: ${oneDecimal(peak / GB)} GB; ` +
      `x ${headroom} headroom it needs ${oneDecimal((peak * headroom) / GB)} GB.`,
    ...momentTerms(sizing, batch).flatMap(momentLines),
    ...(explained.perCard ?? []),
    ...origins(explained.facts ?? null, sizing),
    "",
    INCLUDED,
    ...[...sizing.assumed.map((text) => `Assumed: ${text}`), ...sizing.notes.map((text) => `Note: ${text}`)],
    ...resumeNote(explained, peak),
  ];
  return `${lines
    .map(printable)
    .flatMap((text) => (text.startsWith(" ") ? hang(text, width) : wrap(text, Math.max(width, 30))))
    .join("\n")}\n`;
}

function momentLines(moment: ReturnType<typeof momentTerms>[number]): string[] {
  const mark = moment.inForce ? " <- in force" : "";
  const terms = moment.terms.map((term) => ({ ...term, size: grouped(term.bytes) }));
  const column = Math.max(0, ...terms.map(({ size }) => size.length));
  const names = Math.max(0, ...terms.map(({ name }) => name.length));
  return [
    "",
    `${moment.moment}: ${oneDecimal(moment.bytes / GB)} GB${mark}`,
    `  ${moment.what}`,
    `  ${grouped(moment.fixedBytes)} bytes + ${grouped(moment.perSampleBytes)} a sample`,
    ...terms.map(
      ({ size, name, formula }) => `    ${size.padStart(column)}  ${name.padEnd(names)}  ${formula}`,
    ),
  ];
}

const KEYS: readonly (readonly [FactKey, string])[] = [
  ["model", "model"],
  ["batch", "batch"],
  ["seqLen", "seq-len"],
  ["loraRank", "lora-rank"],
  ["loraTargets", "lora-targets"],
  ["loraDropout", "lora-dropout"],
  ["attention", "attention"],
  ["hours", "hours"],
  ["precision", "precision"],
  ["optimizer", "optimizer"],
  ["checkpointing", "checkpointing"],
  ["quant", "quant"],
  ["parallel", "parallel"],
  ["offload", "offload"],
  ["gradAccum", "grad-accum"],
  ["loss", "loss"],
  ["paddingMask", "padding-mask"],
];

function origins(facts: JobFacts | null, sizing: Sizing): string[] {
  if (facts === null) return [];
  const rows = KEYS.map(([key, name]) => {
    const { from } = facts[key];
    const value = facts[key].value ?? (key === "seqLen" && sizing.asTraced !== true ? sizing.seqLen : null);
    const told =
      value === null ? "-" : typeof value === "boolean" ? (value ? "on" : "off") : cut(String(value));
    return `  ${name.padEnd(14)}${told}  (${originOf(from)})`;
  });
  return ["", "The job's facts and where they were read:", ...rows];
}

/** `NEURARCH_BATCH in the environment`, `#NEURARCH batch, line 3`: where a value stands. */
export function originOf(from: Origin): string {
  const line = from.line === undefined ? "" : `, line ${from.line}`;
  switch (from.kind) {
    case "flag":
      return `flag ${from.name}`;
    case "env":
      return from.line === undefined
        ? `${from.name} in the environment`
        : `${from.name} among the task's envs${line}`;
    case "label":
      return `resource label ${from.name}${line}`;
    case "directive":
      return `#NEURARCH ${from.name}${line}`;
    case "site":
      return "the site's default";
    case "default":
      return "default";
  }
}

/**
 * A run that resumes loads optimizer state beside what is there already, so one that fits by less than that margin
 * may pass from the start and fail on resuming.
 */
function resumeNote({ sizing, batch, headroom, capacityGb }: Explained, peak: number): string[] {
  if (capacityGb === undefined || capacityGb === null) return [];
  const spare = capacityGb - (peak * headroom) / GB;
  const activations = (peak - sizing.floorBytes) / GB;
  if (spare < 0 || activations <= 0 || spare >= activations) return [];
  return [
    `Note: at ${batch === 1 ? "1 sample" : `${batch} samples`} ${oneDecimal(spare)} GB stay free beyond the headroom, less than the ` +
      `${oneDecimal(activations)} GB that the activations add; a resumed run holds states and activations together ` +
      "from its first step, so a first step that passed is no proof.",
  ];
}
