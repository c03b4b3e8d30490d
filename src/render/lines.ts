import type { GpuRequest } from "../request/types.ts";
import { formsOf } from "../verdict/decide.ts";
import type { Decision, Judged, RequestVerdict } from "../verdict/types.ts";
import { representative } from "./messages.ts";
import { labelOf, reasonOf } from "./parts.ts";
import { submittedAnyway } from "./sentence.ts";
import { cut, oneDecimal, printable } from "./text.ts";
import type { Telling } from "./types.ts";

/** What the Lua filter does: let it through, let it through with a word, or stop it. */
export type FilterDecision = "allow" | "warn" | "reject";

/** Longest comment that is added to a job's own: Slurm's accounting keeps short ones. */
const COMMENT_LIMIT = 120;

/** Messages after this many are left out: sbatch prints them into a user's terminal. */
const MESSAGE_LIMIT = 20;

/**
 * A verdict as the filter acts on it. Only `mode = reject` stops a job, and only a refused one; a request that was
 * not judged is let through (a site that fails closed has it refused before).
 */
export function filterDecision(decision: Decision, mode: "warn" | "reject"): FilterDecision {
  switch (decision) {
    case "refuse":
      return mode === "reject" ? "reject" : "warn";
    case "warn":
    case "rewrite":
      return "warn";
    case "allow":
    case "unjudged":
      return "allow";
  }
}

/**
 * The lines that the Lua filter reads: `decision=`, then a `message=` each, then `comment=`. Values are one line
 * each, so the filter needs no quoting. In warn mode the message of a refusal ends in "Submitted anyway."
 */
export function filterLines(told: {
  readonly decision: Decision;
  readonly mode: "warn" | "reject";
  readonly messages: readonly string[];
  readonly comment: string | null;
}): string {
  const decision = filterDecision(told.decision, told.mode);
  const anyway = told.decision === "refuse" && decision === "warn";
  const messages = told.messages
    .slice(0, MESSAGE_LIMIT)
    .map((message, index) => (anyway && index === 0 ? submittedAnyway(message) : message));
  const lines = [`decision=${decision}`, ...messages.map((message) => `message=${printable(message)}`)];
  if (told.comment !== null) lines.push(`comment=${cut(told.comment, COMMENT_LIMIT)}`);
  return `${lines.join("\n")}\n`;
}

const WORDS: Readonly<Record<Judged["reason"], string>> = {
  fits: "fits",
  "too-small": "does-not-fit",
  "over-cost-cap": "over-cost-cap",
  "over-requested": "over-requested",
  borderline: "borderline",
};

/** `neurarch:does-not-fit need=297.9GB on a10g:1`, for the job's comment; null where nothing was judged. */
export function commentOf(result: RequestVerdict, request: GpuRequest, telling: Telling): string | null {
  const forms = formsOf(result.verdicts, request, telling.settings.table);
  const form = forms.find((one) => one.decision === result.decision) ?? forms[0];
  if (form === undefined) return null;
  const verdict = representative(form);
  const need = verdict.kind === "judged" ? ` need=${oneDecimal(verdict.needGb)}GB` : ` (${verdict.reason})`;
  const own = verdict.kind === "judged" ? WORDS[verdict.reason] : "not-judged";
  const word = verdict.budget === undefined ? own : reasonOf(verdict);
  return `neurarch:${word}${need} on ${cut(labelOf(verdict), 60)}`;
}
