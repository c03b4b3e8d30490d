import type { TaskOutcome } from "../gate/task.ts";
import { explain } from "../render/explain.ts";
import { perCardLines } from "../render/per-card.ts";
import { printable } from "../render/text.ts";

/**
 * The account of a judged task's size, at the samples its first judged candidate takes, and which policy file was
 * found; empty without either.
 */
export function explainOutcome(outcome: TaskOutcome, width?: number): string[] {
  const sizing = outcome.telling?.sizing ?? null;
  const policy = outcome.policyFile === undefined ? [] : [`Policy file: ${printable(outcome.policyFile)}\n`];
  if (sizing === null || outcome.telling === null) return policy;
  const judged = outcome.result?.verdicts.find((verdict) => verdict.kind === "judged");
  const { facts, settings } = outcome.telling;
  return [
    explain(
      {
        sizing: judged?.sizing ?? sizing,
        batch: judged?.pooled ? judged.globalBatch : facts.batch.value,
        headroom: settings.headroom,
        facts,
        capacityGb: judged?.capacityGb ?? null,
        perCard: judged === undefined ? [] : perCardLines(judged, outcome.telling),
      },
      width,
    ),
    ...policy,
  ];
}
