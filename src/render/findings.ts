import type { Place } from "../lib/place.ts";
import { formsOf, isOpen } from "../verdict/decide.ts";
import type { Decision, Judged, Verdict } from "../verdict/types.ts";
import type { Told } from "./json.ts";
import { messageOfForm, messagesOf, representative, sideMessages } from "./messages.ts";
import { labelOf, reasonOf } from "./parts.ts";
import { printable } from "./text.ts";
import type { Telling } from "./types.ts";

/** As grave as a reader of SARIF, GitHub or JUnit has it. */
export type Level = "error" | "warning" | "note";

/** One thing to say about a place in a file: what SARIF calls a result and GitHub an annotation. */
export interface LocatedFinding {
  readonly level: Level;
  /** What it goes by, the same for all of its kind: `admission/request-does-not-fit`. */
  readonly rule: string;
  /** One line. */
  readonly message: string;
  /** The file as its reader looks for it, a relative path where it can be; null where there is none. */
  readonly file: string | null;
  readonly place: Place | null;
}

/** A judged job and where it stands in its file. */
export interface Located {
  readonly told: Told;
  readonly file: string | null;
  /** Of each candidate as it was written. */
  readonly candidates: readonly (Place | null)[];
  /** Of the job's request. */
  readonly job: Place | null;
  /** Of the facts that could not be read, in the order of their messages. */
  readonly problems: readonly (Place | null)[];
}

/** Ids of findings that are no rule of a verdict. */
export const NOT_JUDGED = "judge/not-judged";
export const NOTE = "judge/note";
export const UNREADABLE_FACT = "judge/unreadable-fact";
export const UNREADABLE_INPUT = "judge/unreadable-input";

/** One candidate of a job as it was written, with what is to be said of it; null where it plainly fits. */
export interface CandidateFinding {
  /** As messages name it; null for a job that asks for nothing. */
  readonly label: string | null;
  readonly finding: LocatedFinding | null;
}

/** What judging a job came to, candidate by candidate, and what else is to be said of it. */
export function findingsOf(located: Located): {
  readonly candidates: readonly CandidateFinding[];
  readonly notes: readonly LocatedFinding[];
} {
  const { told, file, job } = located;
  const note = (message: string): LocatedFinding => ({
    level: "note",
    rule: NOTE,
    message: printable(message),
    file,
    place: job,
  });
  const { result, telling, request } = told;
  if (result === null || telling === null) return unread(located, note);
  const own = messagesOf(result, request, telling);
  const beside = sideMessages(result, request, telling);
  const notes = [...beside, ...told.messages.filter((message) => !own.includes(message))].map(note);
  // A site that fails closed refuses what it could not judge.
  const closed = told.decision === "refuse" && result.decision !== "refuse";
  if (isOpen(request)) {
    const [verdict] = result.verdicts;
    if (verdict === undefined) return { candidates: [], notes };
    const label = [...new Set(result.verdicts.map(labelOf))].slice(0, 3).join(", ");
    const message = own.find((one) => !beside.includes(one)) ?? null;
    const { decision } = result;
    const level = levelOf(decision, told.decision, closed);
    if (level === null || message === null) return { candidates: [{ label, finding: null }], notes };
    const place = placeOf(verdict, located, telling, 0);
    const rule = ruleOf(worstOf(result.verdicts), decision);
    return {
      candidates: [{ label, finding: { level, rule, message: printable(message), file, place } }],
      notes,
    };
  }
  const candidates = formsOf(result.verdicts, request, telling.settings.table).map((form) => {
    const verdict = representative(form);
    const level = levelOf(form.decision, told.decision, closed);
    const label = labelOf(verdict);
    if (level === null) return { label, finding: null };
    const written = request.candidates[form.indexes[0]!]?.written ?? form.indexes[0]!;
    const message = printable(messageOfForm(form, telling, result.decision === "rewrite"));
    const place = placeOf(verdict, located, telling, written);
    return { label, finding: { level, rule: ruleOf(verdict, form.decision), message, file, place } };
  });
  return { candidates, notes };
}

/** A job that was not judged at all: facts that could not be read, or nothing to judge. */
function unread({ told, file, job, problems }: Located, note: (message: string) => LocatedFinding) {
  const refused = told.decision === "refuse";
  const [first, ...rest] = told.messages;
  const main = (message: string, index: number): LocatedFinding => ({
    level: refused ? "error" : "note",
    rule: index < problems.length ? UNREADABLE_FACT : NOT_JUDGED,
    message: printable(message),
    file,
    place: problems[index] ?? job,
  });
  const label = told.request.candidates.map((one) => printable(one.label)).join(", ") || null;
  const finding = first === undefined ? null : main(first, 0);
  const others = rest.map((message, index) =>
    index + 1 < problems.length ? main(message, index + 1) : note(message),
  );
  return { candidates: [{ label, finding }], notes: others };
}

/** How grave a candidate's decision is in the job's; null for a plain fit. */
function levelOf(own: Decision, whole: Decision, closed: boolean): Level | null {
  switch (own) {
    case "refuse":
      // Refused and dropped: another candidate remains.
      return whole === "refuse" ? "error" : "warning";
    case "warn":
    case "rewrite":
      return "warning";
    case "unjudged":
      return closed ? "error" : "note";
    case "allow":
      return null;
  }
}

function ruleOf(verdict: Verdict, decision: Decision): string {
  if (verdict.kind === "unjudged") return verdict.budget?.rule ?? NOT_JUDGED;
  return verdict.rule ?? verdict.budget?.rule ?? (decision === "unjudged" ? NOT_JUDGED : NOTE);
}

function worstOf(verdicts: readonly Verdict[]): Verdict {
  const refused = (one: Verdict): one is Judged => one.kind === "judged" && one.decision === "refuse";
  return verdicts.find(refused) ?? verdicts[0]!;
}

/** Reasons that lie in the model: the line that names it is where to look. */
const OF_THE_MODEL: readonly string[] = [
  "model-not-found",
  "model-unreachable",
  "config-invalid",
  "family-not-sized",
  "sizing-failed",
];

function placeOf(verdict: Verdict, located: Located, telling: Telling, written: number): Place | null {
  if (verdict.kind === "unjudged" && OF_THE_MODEL.includes(reasonOf(verdict))) {
    const { line } = telling.facts.model.from;
    if (line !== undefined) return { line, column: 1 };
  }
  return located.candidates[written] ?? located.job;
}
