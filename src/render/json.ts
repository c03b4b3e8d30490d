import type { GpuRequest } from "../request/types.ts";
import { lineAt, peakBytes } from "../sizing/peak.ts";
import type { Sizing } from "../sizing/types.ts";
import type { WrittenForm } from "../verdict/decide.ts";
import { formsOf } from "../verdict/decide.ts";
import type { Decision, RequestVerdict, Verdict } from "../verdict/types.ts";
import type { MomentTerms, RequestBody, SizingBody, VerdictBody, VerdictDocument } from "./document-types.ts";
import { messageOfForm, representative } from "./messages.ts";
import { reasonOf } from "./parts.ts";
import { perCardOf } from "./per-card.ts";
import type { Telling } from "./types.ts";

/*
 * The documents that `--json` prints. Scripts rely on every key: a value that is not there is null, amounts are not
 * rounded, GB are 1e9 bytes.
 */

/** One judged request, for the document and for people. */
export interface Told {
  /** The task's or job's name; null where it has none. */
  readonly task: string | null;
  readonly decision: Decision;
  readonly messages: readonly string[];
  readonly request: GpuRequest;
  /** Null where nothing was judged at all: `reason` then says why. */
  readonly result: RequestVerdict | null;
  readonly reason: string | null;
  /** Null where the facts could not be read. */
  readonly telling: Telling | null;
}

/** What `judge --json` prints for one task: one verdict a candidate, in the task's order. */
export function verdictDocument(told: Told, explain = false): VerdictDocument {
  const { task, decision, messages, telling } = told;
  return {
    schema: "neurarch-gate/verdict",
    version: 1,
    decision,
    messages,
    task,
    verdicts: verdictBodies(told),
    sizing: telling?.sizing ? sizingOfVerdict(told, telling, telling.sizing, explain) : null,
  };
}

/** The size behind a verdict: where each card is judged by itself, that of one card of so many. */
function sizingOfVerdict({ result }: Told, telling: Telling, sizing: Sizing, explain: boolean): SizingBody {
  const judged = result?.verdicts.find((verdict) => verdict.kind === "judged");
  const own = judged === undefined || judged.pooled ? sizing : (judged.sizing ?? sizing);
  const body = sizingBody(own, telling.facts.batch.value, explain);
  const perCard = explain && judged !== undefined ? perCardOf(judged, telling) : null;
  return perCard === null ? body : { ...body, perCard };
}

/** What `size --json` prints. `fixedBytes` and `perSampleBytes` are the line in force at `batch` samples. */
export function sizingDocument(
  sizing: Sizing,
  batch: number,
  explain = false,
): { readonly schema: "neurarch-gate/sizing"; readonly version: 1 } & SizingBody {
  return { schema: "neurarch-gate/sizing", version: 1, ...sizingBody(sizing, batch, explain) };
}

/** What any command prints under `--json` when it fails. */
export function errorDocument(
  code: string,
  message: string,
  hint: string | null,
): {
  readonly schema: "neurarch-gate/error";
  readonly version: 1;
  code: string;
  message: string;
  hint: string | null;
} {
  return { schema: "neurarch-gate/error", version: 1, code, message, hint };
}

/** The moments of a sizing with their terms, in bytes at `batch` samples. */
export function momentTerms(sizing: Sizing, batch: number): MomentTerms[] {
  const inForce = lineAt(sizing, batch);
  return sizing.moments.map((moment) => ({
    moment: moment.name,
    what: moment.what,
    fixedBytes: moment.fixedBytes,
    perSampleBytes: moment.perSampleBytes,
    bytes: moment.fixedBytes + moment.perSampleBytes * batch,
    inForce: moment === inForce,
    terms: moment.terms.map(({ name, formula, fixedBytes, perSampleBytes }) => ({
      name,
      formula,
      fixedBytes,
      perSampleBytes,
      bytes: fixedBytes + perSampleBytes * batch,
    })),
  }));
}

function sizingBody(sizing: Sizing, batch: number, explain: boolean): SizingBody {
  const line = lineAt(sizing, batch);
  return {
    model: sizing.model,
    family: sizing.family,
    assumed: sizing.assumed,
    params: sizing.params,
    trainableParams: sizing.trainableParams,
    activeParams: sizing.activeParams,
    recipe: sizing.recipe,
    seqLen: sizing.seqLen,
    batch,
    floorBytes: sizing.floorBytes,
    fixedBytes: line.fixedBytes,
    perSampleBytes: line.perSampleBytes,
    peakBytes: peakBytes(sizing, batch),
    source: sizing.source,
    revision: sizing.revision,
    terms: explain ? momentTerms(sizing, batch) : null,
  };
}

function verdictBodies(told: Told): VerdictBody[] {
  const { result, request, telling, decision } = told;
  if (result === null || telling === null) {
    return request.candidates.map((candidate) => ({
      ...NOTHING_KNOWN,
      decision,
      reason: told.reason,
      message: told.messages[0] ?? null,
      request: requestBody(candidate),
    }));
  }
  return formsOf(result.verdicts, request, telling.settings.table).map((form) =>
    verdictBody(form, telling, decision === "rewrite"),
  );
}

const NOTHING_KNOWN = {
  rule: null,
  needGb: null,
  peakGb: null,
  fit: null,
  largestBatch: null,
  smallestCard: null,
  smallestRequest: null,
  rightSized: null,
  stateGb: null,
  rewriteTo: null,
  alternatives: [],
  costUsd: null,
  waiver: null,
} as const;

function verdictBody(form: WrittenForm, telling: Telling, applied: boolean): VerdictBody {
  const verdict = representative(form);
  const told = {
    decision: form.decision,
    reason: reasonOf(verdict),
    message: messageOfForm(form, telling, applied),
    request: requestBody(verdict.candidate),
  };
  if (verdict.kind === "unjudged") {
    return { ...NOTHING_KNOWN, ...told, rule: verdict.budget?.rule ?? null };
  }
  return {
    ...told,
    rule: verdict.rule,
    needGb: verdict.needGb,
    peakGb: verdict.peakGb,
    fit: verdict.fit,
    largestBatch: verdict.largestBatch,
    smallestCard: verdict.smallestCard?.accelerator ?? null,
    smallestRequest: verdict.smallestRequest,
    rightSized: verdict.rightSized,
    stateGb: verdict.stateGb,
    rewriteTo: verdict.rewriteTo,
    alternatives: verdict.alternatives,
    costUsd: verdict.cost?.usd ?? null,
    waiver: verdict.waiver ?? null,
  };
}

function requestBody(candidate: Verdict["candidate"]): RequestBody {
  const { accelerator, count, nodes, label } = candidate;
  const gb = "card" in candidate ? candidate.card.gb * candidate.count * candidate.nodes : null;
  return { accelerator, count, nodes, label, gb };
}
