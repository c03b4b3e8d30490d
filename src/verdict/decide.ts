import type { Recipe } from "../facts/types.ts";
import type { CardTable, GpuRequest } from "../request/types.ts";
import { isJudged } from "../request/types.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";
import { judgeCandidate } from "./judge.ts";
import type {
  Decision,
  JobToJudge,
  Judged,
  JudgeSettings,
  RequestVerdict,
  Verdict,
  Within,
} from "./types.ts";

/** From harmless to final; of several the worst counts. What was not judged is not cleared either. */
const ORDER: readonly Decision[] = ["allow", "warn", "rewrite", "unjudged", "refuse"];

/**
 * Judges every candidate of a request and draws them together (see `combine`). A request without candidates is
 * allowed: it asks for no accelerator.
 */
export function judgeRequest(job: JobToJudge, request: GpuRequest, settings: JudgeSettings): RequestVerdict {
  const once = { ...job, ...remembered(job) };
  const verdicts = request.candidates.map(
    (candidate): Verdict =>
      isJudged(candidate)
        ? judgeCandidate(once, candidate, request, settings)
        : { kind: "unjudged", candidate, reason: candidate.reason, message: candidate.message },
  );
  return combine(verdicts, request, settings);
}

/** The verdict on a request whose model could not be sized: each candidate is unjudged for that reason. */
export function unsizedRequest(unsized: Unsized, request: GpuRequest): RequestVerdict {
  const verdicts = request.candidates.map(
    (candidate): Verdict =>
      isJudged(candidate)
        ? { kind: "unjudged", candidate, reason: unsized.reason, message: unsized.message }
        : { kind: "unjudged", candidate, reason: candidate.reason, message: candidate.message },
  );
  return { decision: "unjudged", verdicts, dropped: [] };
}

/**
 * Draws the verdicts of a request's candidates together; also used again after a policy file has changed some.
 *
 * Any refused candidate refuses the request. With `mutate` the refused ones are dropped as long as one that was
 * judged and holds remains. A memory form stands for any of its members: it is refused only when all of them fail.
 */
export function combine(
  verdicts: readonly Verdict[],
  request: GpuRequest,
  settings: Pick<JudgeSettings, "mutate" | "table">,
): RequestVerdict {
  if (isOpen(request)) return { decision: decideOpen(verdicts, settings.table), verdicts, dropped: [] };
  const forms = formsOf(verdicts, request, settings.table);
  const decisions = forms.map((form) => form.decision);
  const remains = decisions.some((decision) => decision !== "refuse" && decision !== "unjudged");
  if (decisions.includes("refuse") && settings.mutate && remains) {
    const kept = decisions.filter((decision) => decision !== "refuse");
    const dropped = forms.flatMap((form) => (form.decision === "refuse" ? form.indexes : []));
    return { decision: worst([...kept, "rewrite"]), verdicts, dropped };
  }
  return { decision: worst(decisions), verdicts, dropped: [] };
}

/** One candidate as it was written: a memory form is judged as several cards and counts as one. */
export interface WrittenForm {
  readonly decision: Decision;
  /** Places of its verdicts in the request's list. */
  readonly indexes: readonly number[];
  readonly verdicts: readonly Verdict[];
  readonly memoryForm: boolean;
}

/** The verdicts put together by the candidate of the task they belong to, in the task's order. */
export function formsOf(verdicts: readonly Verdict[], request: GpuRequest, table: CardTable): WrittenForm[] {
  const places = new Map<number, number[]>();
  request.candidates.forEach((candidate, index) => {
    const place = candidate.written ?? index;
    places.set(place, [...(places.get(place) ?? []), index]);
  });
  return [...places.values()].map((indexes) => {
    const own = indexes.map((index) => verdicts[index]!);
    const memoryForm = own.some(
      (verdict) => "memoryForm" in verdict.candidate && verdict.candidate.memoryForm,
    );
    const decision = memoryForm ? decideOpen(own, table) : worst(own.map(decisionOf));
    return { decision, indexes, verdicts: own, memoryForm };
  });
}

/** Whether a request names memory instead of a card, so that the scheduler picks the card. */
export function isOpen(request: GpuRequest): boolean {
  return (
    request.choice === "open" ||
    (request.candidates.length === 1 && request.candidates.every((one) => isJudged(one) && one.memoryForm))
  );
}

/** Whether applying the verdict changes the request. */
export function changesRequest(verdict: RequestVerdict): boolean {
  if (verdict.decision === "refuse") return false;
  return (
    verdict.dropped.length > 0 ||
    verdict.verdicts.some((one) => one.kind === "judged" && one.rewriteTo !== null)
  );
}

/** One candidate's decision. */
export function decisionOf(verdict: Verdict): Decision {
  if (verdict.kind === "unjudged") return verdict.budget === undefined ? "unjudged" : "refuse";
  return verdict.decision;
}

/**
 * `80GB+` names the smallest card it may give: a larger one on file may still hold a job that this one does not.
 */
export function mayGiveMore(verdict: Judged, table: CardTable): boolean {
  const { candidate, needGb, capacityGb, reason } = verdict;
  if (!candidate.memoryForm || reason !== "too-small" || !candidate.accelerator.includes("+")) return false;
  const share = capacityGb / candidate.card.gb;
  return table.cards.some((card) => !card.slice && card.gb * share >= needGb);
}

function decideOpen(verdicts: readonly Verdict[], table: CardTable): Decision {
  const judged = verdicts.filter((verdict) => verdict.kind === "judged");
  if (judged.length === 0) return verdicts.length === 0 ? "allow" : "unjudged";
  const holds = judged.filter((verdict) => verdict.decision !== "refuse");
  if (holds.length === 0) {
    if (judged.length < verdicts.length) return "unjudged";
    return judged.some((verdict) => mayGiveMore(verdict, table)) ? "warn" : "refuse";
  }
  // Which member is given is the scheduler's choice, so one that fails is worth a warning.
  if (holds.length < judged.length) return "warn";
  return holds.some((verdict) => verdict.decision === "allow") ? "allow" : "warn";
}

function worst(decisions: readonly Decision[]): Decision {
  return decisions.reduce<Decision>(
    (most, decision) => (ORDER.indexOf(decision) > ORDER.indexOf(most) ? decision : most),
    "allow",
  );
}

/** Each change of the recipe is sized once for all candidates, and once for each number of cards. */
function remembered(job: JobToJudge): Pick<JobToJudge, "resize" | "perCard"> {
  const known = new Map<string, Sizing>();
  const once = (key: string, size: () => Sizing | null) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const sizing = size();
    if (sizing !== null) known.set(key, sizing);
    return sizing;
  };
  return {
    resize: (change: Partial<Recipe>, within?: Within) =>
      once(JSON.stringify(change), () => job.resize(change, within)),
    ...(job.perCard && {
      perCard: (change: Partial<Recipe>, cards: number) =>
        once(`${cards} ${JSON.stringify(change)}`, () => job.perCard?.(change, cards) ?? null),
    }),
  };
}
