import type { Recipe } from "../facts/types.ts";
import { shown } from "../lib/shown.ts";
import type { Sizing } from "./types.ts";

/*
 * A sizing as text, for a machine that cannot read the model: what a client sends with a task. It holds figures and
 * names of ours, no path and no note, and it is read as what it is: someone else's word.
 */

/** The variable of a task's `envs` in which a client sends the size of a model that only it can read. */
export const SENT_VARIABLE = "NEURARCH_SIZING_FACTS";
/** The form. A reader takes no other. */
export const SENT_VERSION = 1;
/** Longest text, in characters: it is a variable of the job. */
export const MAX_SENT_CHARS = 8192;

export const MAX_MOMENTS = 40;
export const MAX_CARD_COUNTS = 16;
export const MAX_ASSUMED = 4;
export const MAX_NAME_CHARS = 1000;
/** Of a sentence that was assumed. */
export const MAX_SENTENCE_CHARS = 160;

/** A size, and what it is the size of. */
export interface Sent {
  readonly sizing: Sizing;
  /** The recipe as the job asked for it; `sizing.recipe` may differ where the model does not take it. */
  readonly asked: Recipe;
  /** What one of so many cards holds, for a mode that shares the state. */
  readonly onCards: ReadonlyMap<number, Sizing>;
}

export type Digest = (text: string) => string;
/** Name, fixed bytes, bytes a sample, and of the fixed ones the optimizer state. */
type SentMoment = readonly [string, number, number, number];

export interface Body {
  readonly state: number;
  readonly floor: number;
  readonly moments: readonly SentMoment[];
}

export interface Document extends Body {
  readonly v: typeof SENT_VERSION;
  readonly model: string;
  readonly structure: string;
  readonly family: string | null;
  /** In all, trained, active a token. */
  readonly params: readonly (number | null)[];
  readonly seqLen: number;
  readonly asTraced: boolean;
  readonly recipe: Recipe;
  /** The recipe as it was sized, where a model does not take what was asked. */
  readonly sized: Recipe;
  readonly assumed: readonly string[];
  readonly cards: readonly (readonly [number, Body])[];
}

/** The text of a built-in sizing; null where it has no structure, or is longer than anyone takes. */
export function sentText({ sizing, asked, onCards }: Sent, digest: Digest): string | null {
  const { model, structureDigest: structure } = sizing;
  if (structure === undefined || sizing.source !== "builtin" || model.trim().length > MAX_NAME_CHARS)
    return null;
  const document: Document = {
    v: SENT_VERSION,
    model: model.trim(),
    structure,
    family: sizing.family,
    params: [sizing.params, sizing.trainableParams, sizing.activeParams],
    seqLen: sizing.seqLen,
    asTraced: sizing.asTraced === true,
    recipe: inOrder(asked),
    sized: inOrder(sizing.recipe),
    assumed: sizing.assumed.slice(0, MAX_ASSUMED).map((text) => shown(text, MAX_SENTENCE_CHARS - 3)),
    ...bodyOf(sizing),
    cards: [...onCards].slice(0, MAX_CARD_COUNTS).map(([cards, one]) => [cards, bodyOf(one)]),
  };
  const text = ascii(JSON.stringify({ ...document, sum: sumOf(document, digest) }));
  return text.length > MAX_SENT_CHARS ? null : text;
}

function bodyOf({ stateBytes, floorBytes, moments }: Sizing): Body {
  return {
    state: stateBytes,
    floor: floorBytes,
    moments: moments.map(({ name, fixedBytes, perSampleBytes, terms }) => [
      name,
      fixedBytes,
      perSampleBytes,
      terms.find((term) => term.name === "optimizer")?.fixedBytes ?? 0,
    ]),
  };
}

/** Ties the parts to each other, so that none can be changed or taken from another one by accident. */
export function sumOf(document: Omit<Document, "sum">, digest: Digest): string {
  return digest(JSON.stringify(document)).slice(0, 16);
}

/** JSON may write any character as an escape: a text without a space is never folded, whoever writes it as YAML. */
function ascii(json: string): string {
  return json.replace(
    /[ \u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** The keys of a recipe in the one order in which they are written; the last one is left out where there is none. */
export const RECIPE_KEYS = [
  "precision",
  "optimizer",
  "attention",
  "checkpointing",
  "quant",
  "loraRank",
  "loraTargets",
  "parallel",
  "offload",
  "gradAccum",
  "loss",
  "paddingMask",
  "loraDropout",
] as const satisfies readonly (keyof Recipe)[];

function inOrder(recipe: Recipe): Recipe {
  const keys = RECIPE_KEYS.filter((key) => recipe[key] !== undefined);
  return Object.fromEntries(keys.map((key) => [key, recipe[key]])) as unknown as Recipe;
}

/** The first key in which two recipes differ; null for equal ones. */
export function recipeDifference(one: Recipe, other: Recipe): keyof Recipe | null {
  return RECIPE_KEYS.find((key) => one[key] !== other[key]) ?? null;
}
