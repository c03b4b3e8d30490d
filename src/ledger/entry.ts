import { shown } from "../lib/shown.ts";
import { isJudged } from "../request/types.ts";
import type { Sizing } from "../sizing/types.ts";
import type { Decision, Verdict } from "../verdict/types.ts";
import { type Adapter, ENTRY_VERSION, type Entry } from "./types.ts";

/** Longest model name that is recorded, in characters. */
const MODEL_LIMIT = 200;
/** Longest of the other names. */
const NAME_LIMIT = 80;

/** Where and when a verdict was given. */
export interface Occasion {
  readonly time: string;
  readonly adapter: Adapter;
  readonly user: string | null;
  readonly host: string;
  readonly cluster: string | null;
  readonly version: string;
  /** Tells the verdict from every other. */
  readonly id: string;
}

/** What is recorded of a request. */
export interface Recorded {
  readonly model: string | null;
  readonly sizing: Sizing | null;
  /** The verdict that the decision rests on; null where the facts could not be read. */
  readonly verdict: Verdict | null;
  readonly candidates: number;
  readonly decision: Decision;
  readonly stopped: boolean;
  /** Why nothing was judged at all. */
  readonly reason: string | null;
  /** Hours of the run, as the cost cap counts them; null = not said. */
  readonly hours: number | null;
  readonly tasks: number;
}

/** The entry of one verdict; every text in it is cut and without control characters. */
export function entryOf(record: Recorded, occasion: Occasion): Entry {
  const { verdict, sizing, hours, tasks } = record;
  const judged = verdict?.kind === "judged" ? verdict : null;
  const candidate = verdict?.candidate ?? null;
  const card = candidate !== null && isJudged(candidate) ? candidate.card : null;
  const cards = candidate === null ? null : cardsOf(candidate.count, candidate.nodes);
  const gpuHours = cards === null || hours === null ? null : cards * hours * tasks;
  const usd = gpuHours === null || card?.usdPerHour == null ? null : gpuHours * card.usdPerHour;
  return {
    v: ENTRY_VERSION,
    time: occasion.time,
    adapter: occasion.adapter,
    user: name(occasion.user),
    host: shown(occasion.host, NAME_LIMIT),
    cluster: name(occasion.cluster),
    model: record.model === null ? null : shown(withoutKeys(record.model.trim()), MODEL_LIMIT),
    structure: sizing?.structureDigest ?? null,
    request: name(candidate?.label ?? null),
    card: name(card?.id ?? null),
    count: candidate?.count ?? null,
    nodes: candidate?.nodes ?? null,
    tasks,
    candidates: record.candidates,
    requestGb: judged?.requestGb ?? null,
    needGb: judged?.needGb ?? null,
    decision: record.decision,
    stopped: record.stopped,
    rule: judged?.rule ?? verdict?.budget?.rule ?? null,
    reason: verdict?.reason ?? record.reason,
    fit: judged?.fit ?? null,
    waiver: name(judged?.waiver?.owner ?? null),
    usd,
    overUsd: usd === null || judged === null ? null : overUsdOf(judged, usd, hours, tasks),
    gpuHours,
    source: sizing?.source ?? null,
    version: shown(occasion.version, NAME_LIMIT),
    id: occasion.id,
  };
}

function cardsOf(count: number | null, nodes: number | null): number | null {
  return count === null ? null : count * (nodes ?? 1);
}

function overUsdOf(
  { fit, rightSized, rightSizedCard, candidate, pooled }: Extract<Verdict, { kind: "judged" }>,
  usd: number,
  hours: number | null,
  tasks: number,
): number | null {
  const price = rightSizedCard?.usdPerHour ?? null;
  if (fit !== "over" || rightSized === null || price === null || hours === null) return null;
  // A pool is suggested as a whole, cards that are not pooled for each node.
  const cards = rightSized.count * (pooled ? 1 : candidate.nodes);
  return Math.max(0, usd - price * cards * hours * tasks);
}

function name(text: string | null): string | null {
  return text === null ? null : shown(text, NAME_LIMIT);
}

/** A model given as an address, without what can be a key in it. */
function withoutKeys(model: string): string {
  return model.includes("://") ? model.replace(/\/\/[^/@]*@/, "//").replace(/[?#].*$/s, "") : model;
}

/** The line of an entry, with its line end: at most 4 KB, so that it is written in one piece. */
export function lineOf(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`;
}
