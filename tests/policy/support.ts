import { readPolicyText } from "../../src/gate/policy-file.ts";
import { cardIdentity } from "../../src/gate/policy-task.ts";
import type { Circumstances, Finding, Policy, RunFacts } from "../../src/policy/types.ts";
import { buildCardTable } from "../../src/request/cards.ts";

export const TODAY = "2026-11-30";
export const identity = cardIdentity(buildCardTable());

/** The policy of a text; throws where none of it can be applied. */
export function policyOf(text: string): Policy {
  const { policy, problems } = readPolicyText(text);
  if (policy === null) throw new Error(problems.map(({ message }) => message).join("; "));
  return policy;
}

export function on(over: Partial<Circumstances> = {}): Circumstances {
  return { today: TODAY, cluster: null, repoPolicy: "honour", ...over };
}

export function findingOf(over: Partial<Finding> = {}): Finding {
  return {
    checker: "admission",
    rule: "admission/request-does-not-fit",
    severity: "block",
    title: "Too small",
    model: "Qwen/Qwen3-8B",
    paths: ["jobs/train.sbatch", "/repo/jobs/train.sbatch"],
    ref: 0,
    ...over,
  };
}

export function runOf(over: Partial<RunFacts> = {}): RunFacts {
  return {
    model: "Qwen/Qwen3-8B",
    paths: [],
    cards: ["H100"],
    costUsd: null,
    upperBound: false,
    params: 8_190_735_360,
    ref: 0,
    ...over,
  };
}

/** A file of one waiver: the usual fields with these laid over; null takes one out. */
export function waiverFile(over: Record<string, string | null> = {}, more = ""): string {
  return `version: 1\nwaivers:\n${waiverItem(over)}${more}`;
}

export function waiverItem(over: Record<string, string | null> = {}): string {
  const fields: Record<string, string | null> = {
    rule: "admission/request-does-not-fit",
    owner: '"@ops"',
    reason: "OOM test on purpose",
    created: "2026-11-01",
    expires: "2026-12-31",
    ...over,
  };
  const lines = Object.entries(fields).flatMap(([key, value]) =>
    value === null ? [] : [`${key}: ${value}`],
  );
  return `  - ${lines.join("\n    ")}\n`;
}
