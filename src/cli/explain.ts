import type { TaskOutcome } from "../gate/task.ts";
import { explain } from "../render/explain.ts";

/** The account of a judged task's size, at the samples its first judged candidate takes; empty without a size. */
export function explainOutcome(outcome: TaskOutcome, width?: number): string[] {
  const sizing = outcome.telling?.sizing ?? null;
  if (sizing === null || outcome.telling === null) return [];
  const judged = outcome.result?.verdicts.find((verdict) => verdict.kind === "judged");
  const { facts, settings } = outcome.telling;
  return [
    explain(
      {
        sizing,
        batch: judged?.globalBatch ?? facts.batch.value,
        headroom: settings.headroom,
        facts,
        capacityGb: judged?.capacityGb ?? null,
      },
      width,
    ),
  ];
}
