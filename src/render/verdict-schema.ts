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
import { RULE_IDS } from "../policy/rules.ts";
import { DECISIONS, FITS, type WaiverUse } from "../verdict/types.ts";
import type { MomentTerms, RequestBody, SizingBody, VerdictBody } from "./document-types.ts";
import type { PerCard } from "./per-card.ts";
import {
  COUNT,
  documentOf,
  FLAG,
  type JsonSchema,
  listOf,
  NUMBER,
  objectOf,
  oneOf,
  orNull,
  TEXT,
} from "./schema-parts.ts";

/*
 * The schemas of what `judge --json` and `size --json` print. Each table of keys is typed by the document's own type, so
 * that a key which comes or goes there is an error here.
 */

const DECISION = oneOf(DECISIONS);
const FIT = oneOf(FITS);
const CARD_COUNT = objectOf({ accelerator: TEXT, count: COUNT });
const LINE = { fixedBytes: NUMBER, perSampleBytes: NUMBER };

const RECIPE: Readonly<Record<keyof Recipe, JsonSchema>> = {
  precision: oneOf(PRECISIONS),
  optimizer: oneOf(OPTIMIZERS),
  attention: oneOf(ATTENTIONS),
  checkpointing: oneOf(CHECKPOINTINGS),
  quant: oneOf(QUANTS),
  loraRank: orNull(COUNT),
  loraTargets: oneOf(LORA_TARGETS),
  parallel: oneOf(PARALLELS),
  offload: oneOf(OFFLOADS),
  gradAccum: COUNT,
  loss: oneOf(LOSSES),
  paddingMask: FLAG,
  loraDropout: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
};

const TERM = objectOf({ name: TEXT, formula: TEXT, ...LINE, bytes: NUMBER });
const MOMENT: Readonly<Record<keyof MomentTerms, JsonSchema>> = {
  moment: TEXT,
  what: TEXT,
  ...LINE,
  bytes: NUMBER,
  inForce: FLAG,
  terms: listOf(TERM),
};

const PER_CARD: Readonly<Record<keyof PerCard, JsonSchema>> = {
  cards: COUNT,
  parallel: oneOf(PARALLELS),
  batch: NUMBER,
  capacityBytes: NUMBER,
  weightsBytes: NUMBER,
  gradientsBytes: NUMBER,
  bucketsBytes: NUMBER,
  optimizerBytes: NUMBER,
  activationsBytes: NUMBER,
  peakBytes: NUMBER,
  needBytes: NUMBER,
  shared: listOf(TEXT),
};

const SIZING: Readonly<Record<keyof SizingBody, JsonSchema>> = {
  model: TEXT,
  family: orNull(TEXT),
  assumed: listOf(TEXT),
  params: orNull(NUMBER),
  trainableParams: orNull(NUMBER),
  activeParams: orNull(NUMBER),
  recipe: objectOf(RECIPE, ["loraDropout"]),
  seqLen: COUNT,
  batch: NUMBER,
  floorBytes: NUMBER,
  ...LINE,
  peakBytes: NUMBER,
  source: oneOf(["builtin", "cli", "hosted", "client"]),
  revision: orNull(TEXT),
  terms: orNull(listOf(objectOf(MOMENT))),
  perCard: objectOf(PER_CARD),
};

const REQUEST: Readonly<Record<keyof RequestBody, JsonSchema>> = {
  accelerator: TEXT,
  count: orNull(NUMBER),
  nodes: orNull(NUMBER),
  label: TEXT,
  gb: orNull(NUMBER),
};

const WAIVER: Readonly<Record<keyof WaiverUse, JsonSchema>> = {
  file: TEXT,
  owner: TEXT,
  expires: TEXT,
  reason: TEXT,
};

const VERDICT: Readonly<Record<keyof VerdictBody, JsonSchema>> = {
  decision: DECISION,
  rule: orNull(oneOf(RULE_IDS)),
  reason: orNull(TEXT),
  message: orNull(TEXT),
  request: objectOf(REQUEST),
  needGb: orNull(NUMBER),
  peakGb: orNull(NUMBER),
  fit: orNull(FIT),
  largestBatch: orNull(COUNT),
  smallestCard: orNull(TEXT),
  smallestRequest: orNull(CARD_COUNT),
  rightSized: orNull(CARD_COUNT),
  stateGb: orNull(NUMBER),
  rewriteTo: orNull(CARD_COUNT),
  alternatives: listOf(objectOf({ change: TEXT, needGb: NUMBER })),
  costUsd: orNull(NUMBER),
  waiver: orNull(objectOf(WAIVER)),
};

const ONE_TASK = {
  decision: DECISION,
  messages: listOf(TEXT),
  task: orNull(TEXT),
  verdicts: listOf(objectOf(VERDICT)),
  sizing: orNull(objectOf(SIZING, ["perCard"])),
};

const { $schema: _, title: __, ...taskDocument } = documentOf("verdict", "", ONE_TASK);

/** `judge --json` and the answer of `POST /v1/judge`: of several tasks every verdict in order, and each one's document. */
export const VERDICT_SCHEMA = documentOf(
  "verdict",
  "What judging a request came to (judge --json)",
  {
    ...ONE_TASK,
    // Of several tasks each verdict names its own.
    verdicts: listOf(objectOf({ task: orNull(TEXT), ...VERDICT }, ["task"])),
    tasks: listOf(taskDocument),
  },
  ["tasks"],
);

export const SIZING_SCHEMA = documentOf("sizing", "A model's training peak (size --json)", SIZING, [
  "perCard",
]);
