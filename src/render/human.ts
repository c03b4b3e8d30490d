import type { Recipe } from "../facts/types.ts";
import { GB, grouped } from "../lib/units.ts";
import { lineAt, peakBytes } from "../sizing/peak.ts";
import type { Sizing } from "../sizing/types.ts";
import type { WrittenForm } from "../verdict/decide.ts";
import { formsOf } from "../verdict/decide.ts";
import type { Decision, Judged } from "../verdict/types.ts";
import { painted, type Tone } from "./colour.ts";
import type { Told } from "./json.ts";
import { representative } from "./messages.ts";
import { holds, labelOf, modelOf, rate, spelled } from "./parts.ts";
import { cut, dollars, oneDecimal, printable, wrap } from "./text.ts";
import type { Telling } from "./types.ts";

/** Columns that are filled when the caller does not know the terminal's. */
export const USUAL_WIDTH = 100;

const NARROWEST = 30;

const TITLES: Readonly<Record<Decision, string>> = {
  allow: "Fits",
  warn: "Warning",
  refuse: "Refused",
  rewrite: "Rewritten",
  unjudged: "Not judged",
};

const TONES: Readonly<Record<Decision, Tone>> = {
  allow: "good",
  warn: "doubtful",
  refuse: "bad",
  rewrite: "doubtful",
  unjudged: "faint",
};

/** A title with its first words in the colour of the decision they tell. */
function paintedTitle(line: string): string {
  const decision = (Object.keys(TITLES) as Decision[]).find((one) => line.startsWith(TITLES[one]));
  if (decision === undefined) return line;
  const title = TITLES[decision];
  return `${painted(title, TONES[decision])}${line.slice(title.length)}`;
}

/** What `judge` prints for people: the outcome first, then the figures, then what to do. */
export function humanVerdict(told: Told, width = USUAL_WIDTH, colour = false): string {
  const { result, request, telling } = told;
  const lines: string[] = [];
  const name = told.task === null ? "" : ` (${cut(told.task)})`;
  if (result === null || telling === null) lines.push(`${TITLES[told.decision]}${name}`);
  else {
    for (const form of formsOf(result.verdicts, request, telling.settings.table)) {
      lines.push(...figures(form, name, telling));
    }
  }
  const messages = told.messages.flatMap((message) => ["", ...wrap(message, Math.max(width, NARROWEST))]);
  const figured = lines.flatMap((text) => hang(text, width));
  return `${[...(colour ? figured.map(paintedTitle) : figured), ...messages].join("\n")}\n`;
}

function figures(form: WrittenForm, name: string, telling: Telling): string[] {
  const verdict = representative(form);
  const title = `${TITLES[form.decision]}: ${modelOf(telling)} on ${labelOf(verdict)}${name}`;
  if (verdict.kind === "unjudged") return [title];
  const rows: [string, string][] = [
    ["needs", needs(verdict, telling)],
    ["has", holds(verdict, telling)],
  ];
  if (verdict.dependsOnBatch) {
    const largest = verdict.largestBatch;
    rows.push([
      "batch",
      `${telling.facts.batch.value} per device${telling.facts.batch.from.kind === "default" ? " (the default)" : ""}; ${largest === null ? "no batch fits" : `up to ${largest} fits`}`,
    ]);
  }
  const smallest = verdict.smallestCard ?? verdict.smallestRequest;
  if (verdict.fit === "under" && smallest !== null) {
    rows.push(["smallest", `${spelled(smallest)}${verdict.smallestCard === null ? ", sharded" : ""}`]);
  }
  if (verdict.rightSized !== null) rows.push(["enough", spelled(verdict.rightSized)]);
  for (const { change, needGb } of verdict.alternatives) {
    const together = change === "parallel=sharded" && isOfEach(verdict) ? " together" : "";
    rows.push(["or", `${change}: ${oneDecimal(needGb)} GB${together}`]);
  }
  if (verdict.cost !== null) rows.push(["cost", `${dollars(verdict.cost.usd)}: ${rate(verdict, telling)}`]);
  return [title, ...rows.map(([key, value]) => `  ${key.padEnd(10)}${value}`)];
}

function needs(verdict: Judged, telling: Telling): string {
  const { needGb, peakGb } = verdict;
  const each = isOfEach(verdict) ? ` on each ${verdict.candidate.card.slice ? "slice" : "card"}` : "";
  return `${oneDecimal(needGb)} GB${each} (peak ${oneDecimal(peakGb)} GB x ${telling.settings.headroom})`;
}

/** Whether the figures are those of one card of several. */
function isOfEach({ pooled, totalCards }: Judged): boolean {
  return !pooled && totalCards > 1;
}

/** What is in a figure and what only in the headroom: told with every size. */
export const INCLUDED =
  "Included: weights, gradients, optimizer state, activations, logits and the loss, and the step's temporaries. " +
  "In the headroom: the CUDA context, libraries' work space and fragmentation.";

/** What `size` prints for people. */
export function humanSizing(sizing: Sizing, batch: number, headroom: number, width = USUAL_WIDTH): string {
  const force = lineAt(sizing, batch);
  const peak = peakBytes(sizing, batch);
  const inWords = (bytes: number) =>
    bytes < 1e8 ? `${oneDecimal(bytes / 1e6)} MB` : `${oneDecimal(bytes / GB)} GB`;
  const amount = (bytes: number) => inWords(bytes).padStart(12);
  const lines = [
    `${cut(sizing.model)}: ${inWords(peak)} at batch ${batch}, ${samplesOf(sizing)}`,
    `  ${describe(sizing)}`,
    `  recipe: ${recipeText(sizing.recipe)}`,
    "",
    `  peak          ${amount(peak)}  at ${printable(force.what)}`,
    `  with headroom ${amount(peak * headroom)}  x ${headroom}`,
    `  state         ${amount(sizing.stateBytes)}  ${stateWords(sizing)}`,
    `  floor         ${amount(sizing.floorBytes)}  whatever the batch`,
    `  a sample      ${amount(force.perSampleBytes)}  more for each further one`,
  ];
  const notes = [
    ...sizing.assumed.map((text) => `Assumed: ${text}`),
    ...(sizing.cautions ?? []),
    INCLUDED,
  ].map(printable);
  return `${[...lines.flatMap((text) => hang(text, width)), ...notes.flatMap((text) => ["", ...wrap(text, Math.max(width, NARROWEST))])].join("\n")}\n`;
}

/** How large a sample is: `2048 tokens`, or what a graph without text was traced with. */
export function samplesOf({ asTraced, seqLen }: Sizing): string {
  return asTraced === true ? "samples as traced" : `${seqLen} tokens`;
}

function stateWords(sizing: Sizing): string {
  if (sizing.recipe.offload === "all") return "weights, gradients and optimizer state are in host memory";
  return sizing.source === "builtin" || sizing.source === "client"
    ? "weights, gradients and optimizer state"
    : "the part that no batch changes, as the external source has it";
}

/** `qwen3, 8,190,735,360 parameters; from the catalogue (revision abc)`: who says so. */
export function describe(sizing: Sizing): string {
  const words: string[] = [];
  if (sizing.family !== null) words.push(sizing.family);
  if (sizing.params !== null) words.push(`${grouped(sizing.params)} parameters`);
  if (sizing.trainableParams !== null && sizing.trainableParams !== sizing.params) {
    words.push(`${grouped(sizing.trainableParams)} trained`);
  }
  if (sizing.activeParams !== null && sizing.activeParams !== sizing.params) {
    words.push(`${grouped(sizing.activeParams)} active a token`);
  }
  const from =
    sizing.source === "builtin"
      ? `from ${sizing.structureFrom ?? "the model's structure"}`
      : sizing.source === "cli"
        ? "sized by the neurarch CLI"
        : sizing.source === "client"
          ? `as the client sent it (structure ${sizing.structureDigest})`
          : "sized by the hosted plan";
  const revision = sizing.revision === null ? "" : ` (revision ${sizing.revision})`;
  return printable(`${words.join(", ")}${words.length > 0 ? "; " : ""}${from}${revision}`);
}

/** The recipe as `key=value` words, the usual ones first; what plays no part is left out. */
export function recipeText(recipe: Recipe): string {
  const words = [
    recipe.loraRank === null ? "full fine-tune" : `LoRA rank ${recipe.loraRank} on ${recipe.loraTargets}`,
    `precision=${recipe.precision}`,
    `optimizer=${recipe.optimizer}`,
    `attention=${recipe.attention}`,
    `checkpointing=${recipe.checkpointing}`,
  ];
  if (recipe.quant !== "none") words.push(`quant=${recipe.quant}`);
  if (recipe.parallel !== "sharded") words.push(`parallel=${recipe.parallel}`);
  if (recipe.offload !== "none") words.push(`offload=${recipe.offload}`);
  if (recipe.gradAccum !== 1) words.push(`grad-accum=${recipe.gradAccum}`);
  if (recipe.loss !== "full") words.push(`loss=${recipe.loss}`);
  if (recipe.paddingMask) words.push("padding-mask=on");
  if (recipe.loraRank !== null && recipe.loraDropout !== undefined)
    words.push(`lora-dropout=${recipe.loraDropout}`);
  return words.join(", ");
}

/** Wraps a line and sets the rest of it in under its own beginning. */
export function hang(text: string, width: number): string[] {
  const indent = /^ */.exec(text)![0].length;
  const room = Math.max(width - indent, NARROWEST);
  if (text.length <= indent + room) return [text];
  const [first = "", ...rest] = wrap(text.slice(indent), room - 2);
  const margin = " ".repeat(indent);
  return [`${margin}${first}`, ...rest.map((line) => `${margin}  ${line}`)];
}
