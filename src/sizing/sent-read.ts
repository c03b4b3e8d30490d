import {
  ATTENTIONS,
  CHECKPOINTINGS,
  LORA_TARGETS,
  LOSSES,
  OFFLOADS,
  OPTIMIZERS,
  PARALLELS,
  PRECISIONS,
  QUANTS,
  type Recipe,
} from "../facts/types.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { leastBytes } from "./least.ts";
import { peakBytes } from "./peak.ts";
import {
  type Digest,
  type Document,
  MAX_ASSUMED,
  MAX_CARD_COUNTS,
  MAX_MOMENTS,
  MAX_NAME_CHARS,
  MAX_SENT_CHARS,
  MAX_SENTENCE_CHARS,
  RECIPE_KEYS,
  SENT_VERSION,
  type Sent,
  sumOf,
} from "./sent.ts";
import type { Moment, Sizing } from "./types.ts";

/** A thousand petabytes, and more parameters than anyone has. */
const MOST_BYTES = 1e18;
const MOST_PARAMS = 1e15;
const MOST_TOKENS = 1e9;
/** Sizes are lines and the bound is rounded, so a size may lie this much below its bound. */
const LEEWAY = 0.98;

/** Why a text is no sizing, as the end of a sentence; without anything of the text. */
class Bad extends Error {}

/** Reads what `sentText` wrote; the error says what is wrong with it, as the end of a sentence. */
export function readSent(text: string, digest: Digest): Result<Sent, string> {
  try {
    return ok(read(text, digest));
  } catch (error) {
    if (error instanceof Bad) return fail(error.message);
    throw error;
  }
}

const KEYS = [
  "v",
  "model",
  "structure",
  "family",
  "params",
  "seqLen",
  "asTraced",
  "recipe",
  "sized",
  "assumed",
  "state",
  "floor",
  "moments",
  "cards",
] as const satisfies readonly (keyof Document)[];

function read(text: string, digest: Digest): Sent {
  if (text.length > MAX_SENT_CHARS) throw new Bad(`it has more than ${MAX_SENT_CHARS} characters`);
  const raw = recordOf(parsed(text), "it is not the JSON of a sizing");
  if (raw.v !== SENT_VERSION) throw new Bad("it is of another version than this program's");
  const { sum, ...rest } = raw;
  refuseOthers(rest, KEYS, "");
  const document = Object.fromEntries(KEYS.map((key) => [key, rest[key]])) as unknown as Document;
  if (sum !== sumOf(document, digest)) throw new Bad("its parts do not belong together");

  const model = textOf(rest.model, "model", MAX_NAME_CHARS);
  const structure = textOf(rest.structure, "structure", 64);
  if (!/^[0-9a-f]{8,64}$/.test(structure)) throw new Bad("its `structure` is no digest");
  const asked = recipeOf(rest.recipe, "recipe");
  const params = listOf(rest.params, "params", 3);
  if (params.length !== 3) throw new Bad("its `params` are not three numbers");
  const all = wholeOf(params[0], "params", 1, MOST_PARAMS);
  const [trained, active] = params
    .slice(1)
    .map((one) => (one === null ? null : numberOf(one, "params", MOST_PARAMS)));
  const whole = {
    model,
    family: rest.family === null ? null : textOf(rest.family, "family", 100),
    source: "client" as const,
    revision: null,
    structureDigest: structure,
    structureFrom: null,
    params: all,
    trainableParams: trained ?? null,
    activeParams: active ?? null,
    recipe: recipeOf(rest.sized, "sized"),
    seqLen: wholeOf(rest.seqLen, "seqLen", 1, MOST_TOKENS),
    ...(boolOf(rest.asTraced, "asTraced") ? { asTraced: true } : {}),
    assumed: listOf(rest.assumed, "assumed", MAX_ASSUMED).map((one) =>
      shown(textOf(one, "assumed", MAX_SENTENCE_CHARS), MAX_SENTENCE_CHARS),
    ),
    notes: [],
  };
  const sizing: Sizing = { ...whole, ...sizeOf(rest) };
  refuseImpossible(sizing);
  const onCards = new Map(
    listOf(rest.cards, "cards", MAX_CARD_COUNTS).map((one) => {
      const [cards, body] = listOf(one, "cards", 2);
      const share = { ...whole, ...sizeOf(recordOf(body, "its `cards` hold no sizes")) };
      const count = wholeOf(cards, "cards", 2, 1e6);
      refuseImpossible(share, count);
      return [count, share];
    }),
  );
  return { sizing, asked, onCards };
}

function sizeOf(
  raw: Readonly<Record<string, unknown>>,
): Pick<Sizing, "stateBytes" | "floorBytes" | "moments"> {
  const stateBytes = numberOf(raw.state, "state", MOST_BYTES);
  const floorBytes = numberOf(raw.floor, "floor", MOST_BYTES);
  const moments = listOf(raw.moments, "moments", MAX_MOMENTS).map(momentOf);
  if (moments.length === 0) throw new Bad("its `moments` are empty");
  return { stateBytes, floorBytes, moments };
}

function momentOf(raw: unknown): Moment {
  const parts = listOf(raw, "moments", 4);
  if (parts.length !== 4) throw new Bad("its `moments` are not of four parts");
  const name = textOf(parts[0], "moments", 60);
  if (!/^[a-z][a-z0-9-]*$/.test(name)) throw new Bad("its `moments` have no names");
  const [fixedBytes, perSampleBytes, optimizer] = parts
    .slice(1)
    .map((one) => numberOf(one, "moments", MOST_BYTES)) as [number, number, number];
  const state = { name: "optimizer", formula: "", fixedBytes: optimizer, perSampleBytes: 0 };
  return { name, what: name.replaceAll("-", " "), fixedBytes, perSampleBytes, terms: [state] };
}

/** No size lies below what its own parameters take under its own recipe, of which `cards` may each hold a part. */
function refuseImpossible(sizing: Sizing, cards = 1): void {
  const { params, recipe, seqLen } = sizing;
  const least =
    leastBytes({ params: params ?? 0, vocab: 0, handedOn: 0, recipe, samples: 1, seqLen }) / cards;
  if (Math.max(peakBytes(sizing, 1), sizing.floorBytes) < least * LEEWAY)
    throw new Bad("its sizes are smaller than its parameters allow");
}

const RECIPE_FORMS: Readonly<Record<keyof Recipe, (value: unknown, name: string) => unknown>> = {
  precision: (value, name) => oneOf(value, name, PRECISIONS),
  optimizer: (value, name) => oneOf(value, name, OPTIMIZERS),
  attention: (value, name) => oneOf(value, name, ATTENTIONS),
  checkpointing: (value, name) => oneOf(value, name, CHECKPOINTINGS),
  quant: (value, name) => oneOf(value, name, QUANTS),
  loraRank: (value, name) => (value === null ? null : wholeOf(value, name, 1, 1e6)),
  loraTargets: (value, name) => oneOf(value, name, LORA_TARGETS),
  parallel: (value, name) => oneOf(value, name, PARALLELS),
  offload: (value, name) => oneOf(value, name, OFFLOADS),
  gradAccum: (value, name) => wholeOf(value, name, 1, 1e9),
  loss: (value, name) => oneOf(value, name, LOSSES),
  paddingMask: boolOf,
  loraDropout: (value, name) => {
    const share = numberOf(value, name, 1);
    if (share === 0 || share === 1) throw new Bad(`its \`${name}\` is out of bounds`);
    return share;
  },
};

function recipeOf(raw: unknown, name: string): Recipe {
  const record = recordOf(raw, `its \`${name}\` is none`);
  const keys = RECIPE_KEYS.filter((key) => key !== "loraDropout" || key in record);
  refuseOthers(record, keys, name);
  return Object.fromEntries(
    keys.map((key) => [key, RECIPE_FORMS[key](record[key], key)]),
  ) as unknown as Recipe;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function recordOf(value: unknown, why: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Bad(why);
  return value as Record<string, unknown>;
}

function refuseOthers(record: object, known: readonly string[], where: string): void {
  const wrong =
    Object.keys(record).some((key) => !known.includes(key)) || known.some((key) => !(key in record));
  if (wrong) throw new Bad(`${where === "" ? "it" : `its \`${where}\``} has other keys than a sizing has`);
}

function textOf(value: unknown, name: string, most: number): string {
  if (typeof value !== "string" || value === "" || value.length > most)
    throw new Bad(`its \`${name}\` is no text, or too long`);
  return value;
}

function numberOf(value: unknown, name: string, most: number): number {
  if (typeof value !== "number" || !(value >= 0) || value > most)
    throw new Bad(`its \`${name}\` is out of bounds`);
  return value;
}

function wholeOf(value: unknown, name: string, least: number, most: number): number {
  const number = numberOf(value, name, most);
  if (!Number.isInteger(number) || number < least) throw new Bad(`its \`${name}\` is out of bounds`);
  return number;
}

function boolOf(value: unknown, name: string): boolean {
  if (typeof value !== "boolean") throw new Bad(`its \`${name}\` is neither true nor false`);
  return value;
}

function oneOf<T extends string>(value: unknown, name: string, known: readonly T[]): T {
  if (!(known as readonly unknown[]).includes(value)) throw new Bad(`its \`${name}\` is not known`);
  return value as T;
}

function listOf(value: unknown, name: string, most: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length > most) throw new Bad(`its \`${name}\` are no list, or too many`);
  return value;
}
