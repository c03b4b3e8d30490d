import type { JobFacts } from "../facts/types.ts";
import { shown } from "../lib/shown.ts";
import type { GpuRequest, RequestReason } from "../request/types.ts";
import { isJudged } from "../request/types.ts";
import { costOf } from "../verdict/cost.ts";
import { combine } from "../verdict/decide.ts";
import type { Judged, JudgeSettings, NotJudged, RequestVerdict, RuleId, Verdict } from "../verdict/types.ts";
import { ruleOn, ruleOnRun, ruleOnWaivers } from "./apply.ts";
import type { CardIdentity } from "./budget.ts";
import { mayGiveOthers } from "./memory-form.ts";
import type { Circumstances, Policy, Ruled, Waiver } from "./types.ts";
import { inScope } from "./waiver.ts";

/** A judged request and what the policy needs to know beside it. */
export interface JudgedRequest {
  readonly facts: JobFacts;
  readonly params: number | null;
  readonly request: GpuRequest;
  readonly result: RequestVerdict;
  readonly settings: JudgeSettings;
  /** The job's file, relative to the policy file's folder and absolute. */
  readonly paths: readonly string[];
}

/** A policy file in force. */
export interface PolicyInForce extends Circumstances {
  readonly policy: Policy;
  /** The file's name, for messages. */
  readonly file: string;
  readonly identity: CardIdentity;
}

export interface AppliedPolicy {
  readonly result: RequestVerdict;
  /** What else there is to say, sentences that begin with the file's name. */
  readonly notes: readonly string[];
}

/** Why a candidate was not judged although it says which card it means. */
const NAMED: ReadonlySet<string> = new Set<RequestReason>(["card-unknown", "not-a-gpu"]);

/** Waivers that do not apply are told up to here; `policy check` lists them all. */
const TOLD_WAIVERS = 3;

/**
 * Applies a policy file to the verdicts on a request: waived refusals become warnings, crossed budget lines refuse,
 * severities are the file's. The site's cost cap stands whatever the file says, also for a job that a waiver lets
 * through and that was not held against the cap because it was refused before.
 */
export function applyToVerdicts(judged: JudgedRequest, inForce: PolicyInForce): AppliedPolicy {
  const notes: string[] = [];
  const { policy, file, identity } = inForce;
  const counts = inForce.repoPolicy !== "ignore" && policy.rules.get("budget/card-not-allowed") !== "off";
  const allowed = counts ? policy.budget.cardsAllowed : null;
  const others = mayGiveOthers(judged.request, allowed, identity, judged.settings.table);
  if (others !== null) notes.push(`${file}: ${others}.`);
  const verdicts = judged.result.verdicts.map((verdict) => {
    const admission = verdict.kind === "judged" ? admit(verdict, judged, inForce, notes) : verdict;
    return spend(admission, judged, inForce, { notes, anyCard: others !== null });
  });
  const changed = verdicts.some((verdict, index) => verdict !== judged.result.verdicts[index]);
  const result = changed ? combine(verdicts, judged.request, judged.settings) : judged.result;
  notes.push(...uncheckedNotes(verdicts, judged, inForce), ...waiverNotes(judged, inForce));
  return { result, notes: [...new Set(notes)] };
}

/** The policy's word on what the verdict itself found. */
function admit(verdict: Judged, judged: JudgedRequest, inForce: PolicyInForce, notes: string[]): Judged {
  const { rule, decision } = verdict;
  if (rule === null || (decision !== "refuse" && decision !== "warn")) return verdict;
  const { policy, file } = inForce;
  const ruled = ruleOn(
    policy,
    {
      checker: "admission",
      rule,
      severity: decision === "refuse" ? "block" : "warn",
      title: rule,
      model: judged.facts.model.value,
      paths: judged.paths,
      ref: null,
    },
    inForce,
  );
  if (ruled.withheld !== null) {
    const { owner, expires } = ruled.withheld;
    notes.push(
      `${file}: the waiver by ${shown(owner)} until ${expires} does not apply: this site lets a policy file only tighten.`,
    );
  }
  if (ruled.waiver !== null) return letThrough({ ...verdict, ...waived(ruled.waiver, file) }, judged);
  if (ruled.gates === (decision === "refuse") && ruled.effective !== "off") return verdict;
  const set = { setTo: { file, severity: ruled.effective } };
  if (ruled.gates) return { ...verdict, ...set, decision: "refuse", rewriteTo: null, rewriteCard: null };
  if (decision === "refuse") return letThrough({ ...verdict, ...set, decision: "warn" }, judged);
  return { ...verdict, decision: "allow", rule: null };
}

function waived({ owner, expires, reason }: Waiver, file: string) {
  return { decision: "warn" as const, waiver: { file, owner, expires, reason } };
}

/** A verdict that was refused for its memory, with the cost that it was not held against. */
function letThrough(verdict: Judged, { facts, settings }: JudgedRequest): Judged {
  if (verdict.reason !== "too-small") return verdict;
  const hours = facts.hours.value ?? settings.fallbackHours;
  const cost = costOf(verdict.candidate.card, verdict.totalCards, hours, settings);
  const unchecked =
    settings.maxCostUsd === null || cost !== null ? null : hours === null ? "no-hours" : "no-price";
  if (cost?.overCap !== true || cost.upperBound) return { ...verdict, cost, costUnchecked: unchecked };
  const { waiver: _, setTo: __, ...plain } = verdict;
  return { ...plain, cost, decision: "refuse", rule: "admission/cost-cap", reason: "over-cost-cap" };
}

/** The policy's word on the cards, the cost and the model's size. */
function spend(
  verdict: Verdict,
  judged: JudgedRequest,
  inForce: PolicyInForce,
  { notes, anyCard }: { readonly notes: string[]; readonly anyCard: boolean },
): Verdict {
  const { facts, params, paths } = judged;
  const { candidate } = verdict;
  const cost = verdict.kind === "judged" ? verdict.cost : null;
  const names = isJudged(candidate) || NAMED.has(candidate.reason);
  const identity: CardIdentity = (name) =>
    isJudged(candidate) && name === candidate.accelerator ? candidate.card.id : inForce.identity(name);
  const findings = ruleOnRun(
    inForce.policy,
    {
      model: facts.model.value,
      paths,
      cards: !anyCard && names ? [candidate.accelerator] : [],
      costUsd: cost?.usd ?? null,
      upperBound: cost?.upperBound === true,
      params,
      ref: null,
    },
    inForce,
    identity,
  );
  return findings.reduce<Verdict>((so, ruled) => withLine(so, ruled, inForce.file, notes), verdict);
}

function withLine(verdict: Verdict, ruled: Ruled, file: string, notes: string[]): Verdict {
  if (ruled.effective === "off") return verdict;
  const { waiver } = ruled;
  const by = waiver === null ? "" : ` (waived by ${waiver.owner} until ${waiver.expires}: ${waiver.reason})`;
  const title = `${ruled.title}${by}`;
  const rule = ruled.rule as RuleId;
  if (ruled.gates && !isRefused(verdict)) {
    const budget = { rule, file, title, fix: ruled.fix };
    if (verdict.kind === "unjudged") return { ...verdict, budget };
    const { waiver: _, setTo: __, ...plain } = verdict;
    return { ...plain, decision: "refuse", rule, budget, rewriteTo: null, rewriteCard: null };
  }
  if (!ruled.gates && verdict.kind === "judged" && verdict.decision === "allow") {
    const told = waiver === null ? {} : waived(waiver, file);
    const fix = waiver === null ? ruled.fix : null;
    return { ...verdict, ...told, decision: "warn", rule, budget: { rule, file, title, fix } };
  }
  notes.push(`${file}: ${title}.`);
  return verdict;
}

function isRefused(verdict: Judged | NotJudged): boolean {
  return verdict.kind === "judged" ? verdict.decision === "refuse" : verdict.budget !== undefined;
}

/** Lines of the budget that nothing could be held against, so that nobody takes them for kept. */
function uncheckedNotes(
  verdicts: readonly Verdict[],
  judged: JudgedRequest,
  inForce: PolicyInForce,
): string[] {
  const { file, policy, repoPolicy } = inForce;
  const admitted = verdicts.filter(
    (one): one is Judged => one.kind === "judged" && one.decision !== "refuse",
  );
  if (repoPolicy === "ignore" || admitted.length === 0) return [];
  const notes: string[] = [];
  const { maxCostPerRunUsd, maxParams } = policy.budget;
  if (maxCostPerRunUsd !== null && policy.rules.get("budget/cost-per-run") !== "off") {
    const unpriced = admitted.find((one) => one.cost === null);
    const hours = judged.facts.hours.value ?? judged.settings.fallbackHours;
    if (unpriced !== undefined) {
      const why =
        hours === null
          ? "the job does not say how many hours it runs"
          : `no price is on file for ${shown(unpriced.candidate.accelerator)}`;
      notes.push(`${file}: max_cost_per_run_usd was not checked: ${why}.`);
    }
  }
  if (maxParams !== null && judged.params === null && policy.rules.get("budget/params") !== "off")
    notes.push(`${file}: max_params was not checked: how many parameters the model has is not known.`);
  return notes;
}

/** The waivers that would concern this job and are not in force. */
function waiverNotes({ facts, paths }: JudgedRequest, inForce: PolicyInForce): string[] {
  const { file, cluster } = inForce;
  const subject = { model: facts.model.value, paths, cluster };
  const told = ruleOnWaivers(inForce.policy, inForce).filter(
    ({ effective, about }) => effective !== "off" && inScope(about.scope, subject),
  );
  const notes = told.slice(0, TOLD_WAIVERS).map(({ title }) => `${file}: ${title}.`);
  const more = told.length - notes.length;
  if (more > 0)
    notes.push(
      `${file}: ${more} more of its waivers do not apply; \`neurarch-gate policy check\` lists them.`,
    );
  return notes;
}
