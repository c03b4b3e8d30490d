import type { FactProblem } from "../facts/types.ts";
import { capacityGb } from "../lib/units.ts";
import type { GpuRequest } from "../request/types.ts";
import type { WrittenForm } from "../verdict/decide.ts";
import { formsOf, isOpen, mayGiveMore } from "../verdict/decide.ts";
import type { Decision, Judged, RequestVerdict, Verdict } from "../verdict/types.ts";
import { labelOf, modelOf, subject } from "./parts.ts";
import { line, overCostCap, sentenceOf, tooSmall } from "./sentence.ts";
import { cut, dollars, oneDecimal, unstopped } from "./text.ts";
import type { Telling } from "./types.ts";

/** More refused candidates than this are named, not told in full. */
const TOLD_IN_FULL = 3;

/**
 * All that a request's verdict has to say, the gravest first, one line each; empty for a plain fit. A refusal stands
 * alone but for what could not be judged: warnings about a request that has to change anyway are noise.
 */
export function messagesOf(result: RequestVerdict, request: GpuRequest, telling: Telling): string[] {
  const forms = formsOf(result.verdicts, request, telling.settings.table);
  const messages: string[] = [];
  if (isOpen(request)) messages.push(...formMessages(result.decision, result.verdicts, telling));
  else if (result.decision === "refuse") messages.push(...refusals(forms, telling));
  else messages.push(...forms.flatMap((form) => admitted(form, result, telling)));
  if (result.decision !== "refuse") messages.push(...sideNotes(forms, result, telling));
  for (const verdict of result.verdicts) {
    if (verdict.kind === "unjudged") messages.push(sentenceOf(verdict, telling));
  }
  return [...new Set(messages)];
}

/**
 * The one line on a candidate as it was written, also when it plainly fits; `applied` = the request goes through, so
 * a rewrite took place.
 */
export function messageOfForm(form: WrittenForm, telling: Telling, applied: boolean): string {
  if (form.memoryForm) {
    const [first] = formMessages(form.decision, form.verdicts, telling);
    if (first !== undefined) return first;
  }
  return sentenceOf(representative(form), telling, applied);
}

/** The verdict that stands for a written candidate: of a memory form the first that decides it. */
export function representative(form: WrittenForm): Verdict {
  const failing = form.verdicts.find((verdict) => isRefused(verdict));
  if (form.decision === "allow" || form.decision === "unjudged") {
    return form.verdicts.find((verdict) => !isRefused(verdict)) ?? form.verdicts[0]!;
  }
  return failing ?? form.verdicts[0]!;
}

/** Facts that could not be read, a line each; `then` says what becomes of the job. */
export function unreadableMessages(problems: readonly FactProblem[], then: string): string[] {
  return problems.map((problem) => line(`${unstopped(cut(problem.message, 800))}.`, then));
}

/** A note of another stage as a message of its own. */
export function noteLine(note: string): string {
  const text = cut(note.replace(/^Neurarch: /, ""), 1200);
  return line(/[.?!)]$/.test(text) ? text : `${text}.`);
}

function refusals(forms: readonly WrittenForm[], telling: Telling): string[] {
  const refused = forms.filter((form) => form.decision === "refuse");
  const labels = refused.map((form) => labelOf(representative(form))).join(", ");
  const note =
    forms.length > 1 ? `${refused.length} of ${forms.length} candidates refused: ${cut(labels)}.` : null;
  return refused.slice(0, TOLD_IN_FULL).map((form, index) => {
    const verdict = representative(form);
    if (index === 0 && verdict.kind === "judged" && isPlainlyTooSmall(verdict)) {
      return tooSmall(verdict, telling, note);
    }
    return messageOfForm(form, telling, false);
  });
}

/** What was rewritten, dropped or is worth a warning. */
function admitted(form: WrittenForm, result: RequestVerdict, telling: Telling): string[] {
  const verdict = representative(form);
  if (verdict.kind === "unjudged") return [];
  if (result.dropped.includes(form.indexes[0]!)) return [dropped(verdict, telling)];
  if (form.memoryForm) return formMessages(form.decision, form.verdicts, telling);
  // Beside a candidate that could not be judged nothing is rewritten.
  return verdict.decision === "allow" ? [] : [sentenceOf(verdict, telling, result.decision === "rewrite")];
}

function dropped(verdict: Judged, telling: Telling): string {
  const label = labelOf(verdict);
  if (isPlainlyTooSmall(verdict)) {
    const had = capacityGb(verdict.capacityGb);
    return line(`dropped ${label}: ${subject(verdict, telling)}, more than the ${had} it has.`);
  }
  const why = sentenceOf(verdict, telling)
    .replace(/^Neurarch: /, "")
    .replace(/ Change .* and resubmit\.$/, "");
  return line(`dropped ${label}: ${why}`);
}

/**
 * A memory form stands for many cards, so it is told once: by its stated size where it is written as one (`80GB+`),
 * else for the largest of its members that fails.
 */
function formMessages(decision: Decision, verdicts: readonly Verdict[], telling: Telling): string[] {
  const judged = verdicts.filter((verdict) => verdict.kind === "judged");
  const failing = judged.filter((verdict) => verdict.decision === "refuse");
  const holding = judged.filter((verdict) => verdict.decision !== "refuse");
  const labels = [...new Set(failing.map((verdict) => labelOf(verdict)))];
  const told = labels.length === 1 ? failing[0] : [...failing].sort((a, b) => b.capacityGb - a.capacityGb)[0];
  if (told === undefined) {
    if (holding.some((verdict) => verdict.decision === "allow")) return [];
    return holding.slice(0, 1).map((verdict) => sentenceOf(verdict, telling));
  }
  if (decision === "refuse") {
    if (!isPlainlyTooSmall(told)) return [sentenceOf(told, telling)];
    const all = judged.length > 1 ? "No card on file that it may give holds the job." : null;
    return [tooSmall(told, telling, all)];
  }
  const larger =
    holding.length > 0 || failing.some((verdict) => mayGiveMore(verdict, telling.settings.table));
  const have = `${cut(labels.join(", "))} ${labels.length > 1 ? "hold" : "may give"}`;
  const rest = larger
    ? "only a larger card that the request also admits holds the job."
    : "the others that the request admits are not on file.";
  return [line(`${subject(told, telling)}, more than ${have}; ${rest}`)];
}

/** The side notes alone: they are about the job as a whole, not about one of its candidates. */
export function sideMessages(result: RequestVerdict, request: GpuRequest, telling: Telling): string[] {
  if (result.decision === "refuse") return [];
  const forms = formsOf(result.verdicts, request, telling.settings.table);
  return [...new Set(sideNotes(forms, result, telling))];
}

/** What an admitted request should also know: the cap that was not checked, spot, plain DDP. */
function sideNotes(forms: readonly WrittenForm[], result: RequestVerdict, telling: Telling): string[] {
  const notes: string[] = [];
  for (const form of forms) {
    if (result.dropped.includes(form.indexes[0]!)) continue;
    const verdict = form.verdicts.find((one) => one.kind === "judged" && one.decision !== "refuse");
    if (verdict?.kind !== "judged") continue;
    if (verdict.cost?.overCap === true && verdict.reason !== "over-cost-cap") {
      notes.push(overCostCap(verdict, telling));
    }
    if (verdict.costUnchecked !== null) notes.push(costUnchecked(verdict, telling));
    if (verdict.onlySharded) notes.push(onlySharded(verdict, telling));
  }
  return notes;
}

function costUnchecked(verdict: Judged, telling: Telling): string {
  const card = verdict.rewriteTo?.accelerator ?? verdict.candidate.accelerator;
  const why =
    verdict.costUnchecked === "no-hours"
      ? "the job does not say how many hours it runs"
      : `no price is on file for ${cut(card)}`;
  return line(`the cost cap of ${dollars(telling.settings.maxCostUsd ?? 0)} was not checked: ${why}.`);
}

function onlySharded(verdict: Judged, telling: Telling): string {
  const { oneCardNeedGb, candidate } = verdict;
  return line(
    `${modelOf(telling)} holds on ${labelOf(verdict)} only if sharded (FSDP or ZeRO-3): a whole copy needs ` +
      `${oneDecimal(oneCardNeedGb)} GB and one card has ${capacityGb(candidate.card.gb)}, so plain DDP, ` +
      "what torchrun does by default, would not fit.",
  );
}

function isRefused(verdict: Verdict): verdict is Judged {
  return verdict.kind === "judged" && verdict.decision === "refuse";
}

function isPlainlyTooSmall(verdict: Judged): boolean {
  const { reason, budget, waiver, setTo } = verdict;
  return reason === "too-small" && budget === undefined && waiver === undefined && setTo === undefined;
}
