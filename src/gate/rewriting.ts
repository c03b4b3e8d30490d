import { GateError } from "../lib/errors.ts";
import { rewriteTask } from "../skypilot/rewrite.ts";
import { type RewriteMark, withFileMark } from "../skypilot/rewrite-mark.ts";
import { judgeRequest } from "../verdict/decide.ts";
import type { TaskOutcome } from "./task.ts";

/** What becomes of a task's candidates, by their place in the task: the rewrites and the dropped ones. */
export function changeOf(outcome: TaskOutcome) {
  const verdicts = outcome.result?.verdicts ?? [];
  const written = (index: number) => verdicts[index]?.candidate.written ?? index;
  return {
    drop: (outcome.result?.dropped ?? []).map(written),
    replace: verdicts.flatMap((verdict, index) =>
      verdict.kind === "judged" && verdict.decision === "rewrite" && verdict.rewriteTo !== null
        ? [{ candidate: written(index), ...verdict.rewriteTo }]
        : [],
    ),
  };
}

/**
 * The mark that a rewrite has to leave so that judging its result rewrites nothing more: the rewritten request has
 * fewer cards, so at the same batch per device its global batch is smaller and something smaller still would hold
 * that. Null where the result stays as it is on its own, and for several candidates, of which each has its own.
 */
export function markOf(outcome: TaskOutcome): RewriteMark | null {
  const { result, telling } = outcome;
  const [verdict, second] = result?.verdicts ?? [];
  if (verdict?.kind !== "judged" || second !== undefined || verdict.decision !== "rewrite") return null;
  const { rewriteTo, rewriteCard, candidate, globalBatch } = verdict;
  if (rewriteTo === null || rewriteCard === null || telling === null || telling.sizing === null) return null;
  const { facts, sizing } = telling;
  const to = `${rewriteTo.accelerator}:${rewriteTo.count}`;
  const rewritten = { ...candidate, ...rewriteTo, card: rewriteCard, nodes: 1, label: to };
  const request = { candidates: [rewritten], choice: "one", notes: [] } as const;
  const again = judgeRequest({ facts, sizing, resize: () => null }, request, {
    ...PLAIN,
    ...telling.settings,
  });
  return again.decision === "rewrite"
    ? { from: candidate.label, to, batch: facts.batch.value, globalBatch }
    : null;
}

/** Settings that play no part in whether a request is rewritten at all. */
const PLAIN = { tasks: 1, useSpot: false, fallbackHours: null, rewriteCards: null } as const;

/** The text with every rewritten task changed in place; throws `GateError("input-invalid")` where it cannot be. */
export function rewrittenText(text: string, outcomes: readonly TaskOutcome[]): string {
  return outcomes.reduce((current, outcome, index) => {
    if (outcome.decision !== "rewrite") return current;
    const result = rewriteTask(current, index, changeOf(outcome));
    if (!result.ok)
      throw new GateError("input-invalid", result.error.message, "Change `accelerators:` by hand.");
    const mark = markOf(outcome);
    return mark === null ? result.value : withFileMark(result.value, index, mark);
  }, text);
}
