import { specOf } from "../facts/keys.ts";
import { recipeOf } from "../facts/recipe.ts";
import type { JobFacts, Recipe } from "../facts/types.ts";
import { digest } from "../host/private-files.ts";
import { ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { GB } from "../lib/units.ts";
import { USUAL_TOKENS } from "../sizing/default-length.ts";
import { peakBytes } from "../sizing/peak.ts";
import { recipeDifference, SENT_VARIABLE, type Sent, sentText } from "../sizing/sent.ts";
import { readSent } from "../sizing/sent-read.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";
import type { Settings } from "./settings.ts";
import type { SizedJob } from "./size.ts";
import type { TaskOutcome } from "./task.ts";

/** A job's size, ours or the client's, and what has to be said of it. */
export interface SizedOrSent {
  readonly sized: Result<SizedJob, Unsized>;
  readonly notes: readonly string[];
}

/** What was worked out here and cannot be, because nobody here has the model. */
const MAY_BE_SENT: ReadonlySet<Unsized["reason"]> = new Set([
  "model-not-found",
  "model-unreachable",
  "sizing-failed",
]);
/** Two sizes of one model that differ by more are of two models. */
const SAME = 0.001;

/**
 * The size that a job is judged by where its client sent one along: ours wherever there is one, since a client's is
 * its word; else the client's, said to be that, where it is of this very job and the site takes it.
 */
export function orSent(
  own: Result<SizedJob, Unsized>,
  text: string,
  facts: JobFacts,
  { clientSizing = true }: Pick<Settings, "clientSizing">,
): SizedOrSent {
  if (!own.ok && !MAY_BE_SENT.has(own.error.reason)) return { sized: own, notes: [] };
  if (!clientSizing) {
    const note = `the size that the client sent is not used: this site sets client_sizing = false.`;
    return { sized: own, notes: own.ok ? [] : [note] };
  }
  const read = readSent(text, digest);
  const wrong = read.ok ? difference(read.value, facts) : read.error;
  if (!read.ok || wrong !== null)
    return { sized: own, notes: [`${SENT_VARIABLE}, the size that the client sent, is not used: ${wrong}.`] };
  const { sizing, onCards } = read.value;
  if (own.ok) return { sized: own, notes: apart(own.value.sizing, sizing, facts) };
  return {
    sized: ok({
      sizing,
      resize: () => null,
      perCard: (change, cards) => (Object.keys(change).length === 0 ? (onCards.get(cards) ?? null) : null),
    }),
    notes: [
      `judged by the size that the client sent: ${shown(sizing.model, 200)} (structure ${sizing.structureDigest}) ` +
        "cannot be read here.",
    ],
  };
}

/** Why a size is not that of the job, as the end of a sentence. */
function difference({ sizing, asked }: Sent, facts: JobFacts): string | null {
  const model = facts.model.value.trim();
  if (sizing.model !== model) return "it is of another model";
  const length = facts.seqLen.value;
  const lengthHolds = length === null ? sizing.seqLen <= USUAL_TOKENS : sizing.seqLen === length;
  if (!lengthHolds && sizing.asTraced !== true)
    return `it is of ${sizing.seqLen} tokens a sample, and the job is not`;
  const key = recipeDifference(asked, recipeOf(facts));
  if (key === null) return null;
  const { flag, env } = specOf(key);
  const said = (recipe: Recipe) => `${flag}=${recipe[key] ?? (key === "loraDropout" ? 0 : "none")}`;
  return `it is of ${said(asked)}, and ${said(recipeOf(facts))} is judged here; write ${env} into the task`;
}

/** A client's file may have the name of a model that is found here. */
function apart(own: Sizing, sent: Sizing, facts: JobFacts): string[] {
  // One that was read from its file is as good as the client's.
  if (own.local === true) return [];
  const batch = facts.batch.value;
  const [here, there] = [own, sent].map((sizing) => peakBytes(sizing, batch) / GB) as [number, number];
  if (Math.abs(here - there) <= SAME * here) return [];
  return [
    `sized as ${shown(own.model, 200)} is found here (peak ${here.toFixed(1)} GB a device at its batch), not by what ` +
      `the client sent (${there.toFixed(1)} GB): name its file by a path that begins with ./ or /.`,
  ];
}

/**
 * The text of a judged job's size for a machine that cannot read its model; null for a model that any machine finds by
 * its name, where nothing was sized, and where the site wants none sent.
 */
export function toSend(
  { telling, result }: Pick<TaskOutcome, "telling" | "result">,
  { clientSizing = true }: Settings,
): string | null {
  const sizing = telling?.sizing ?? null;
  if (!clientSizing || telling === null || sizing?.local !== true) return null;
  const onCards = new Map<number, Sizing>();
  for (const verdict of result?.verdicts ?? []) {
    if (verdict.kind !== "judged" || verdict.pooled || verdict.totalCards === 1) continue;
    const own = verdict.sizing;
    if (own !== undefined && own !== sizing && !verdict.candidate.card.slice)
      onCards.set(verdict.totalCards, own);
  }
  return sentText({ sizing, asked: recipeOf(telling.facts), onCards }, digest);
}
