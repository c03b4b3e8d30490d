import { cardIdentity } from "../../../src/gate/policy-task.ts";
import { applyPolicy } from "../../../src/policy/apply.ts";
import type { Policy } from "../../../src/policy/types.ts";
import { SITES } from "./settings.ts";

const identity = cardIdentity(SITES[0]!.table);
const FINDING = {
  checker: "admission",
  rule: "admission/request-does-not-fit",
  severity: "block",
  title: "It does not fit",
  model: "Qwen/Qwen3-8B",
  paths: ["jobs/a.sbatch"],
  ref: 0,
} as const;
const RUN = {
  model: "Qwen/Qwen3-8B",
  paths: [],
  cards: ["H100"],
  costUsd: 1000,
  upperBound: false,
  params: 8e9,
  ref: 0,
} as const;

/** Applies a policy to a refusal and to a run, under each way that a site may let it. */
export function applied(policy: Policy): void {
  for (const repoPolicy of ["honour", "tighten-only", "ignore"] as const)
    applyPolicy(
      policy,
      { findings: [FINDING], runs: [RUN] },
      { today: "2026-12-01", cluster: "lab", repoPolicy },
      identity,
    );
}
