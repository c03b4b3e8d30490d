import { isJudged } from "../request/types.ts";
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
 * The mark that a rewrite has to leave so that judging its result changes nothing more. A rewritten request has fewer
 * cards, so at the same batch per device its global batch is smaller and something smaller still would hold that; and
 * a list with candidates dropped no longer says what it was. Null where the result stays as it is on its own.
 */
export function markOf(outcome: TaskOutcome): RewriteMark | null {
  const { result, telling, request } = outcome;
  const sizing = telling?.sizing ?? null;
  if (outcome.decision !== "rewrite" || result === null || telling === null || sizing === null) return null;
  const { facts, settings } = telling;
  const kept = result.verdicts.flatMap((verdict, index) => {
    if (verdict.kind !== "judged" || result.dropped.includes(index)) return [];
    const { candidate, rewriteTo, rewriteCard, globalBatch } = verdict;
    const from = candidate.label;
    if (verdict.decision !== "rewrite" || rewriteTo === null || rewriteCard === null) {
      return [{ from, candidate, globalBatch }];
    }
    const label = `${rewriteTo.accelerator}:${rewriteTo.count}`;
    return [
      { from, candidate: { ...candidate, ...rewriteTo, card: rewriteCard, nodes: 1, label }, globalBatch },
    ];
  });
  const candidates = kept.map(({ candidate }) => candidate);
  const choice = candidates.length > 1 ? request.choice : "one";
  // Where each card is judged by itself a rewrite keeps their number, and with it what one of them holds.
  const each = new Map(
    result.verdicts.flatMap((verdict) =>
      verdict.kind === "judged" && !verdict.pooled ? [[verdict.totalCards, verdict.sizing] as const] : [],
    ),
  );
  const again = judgeRequest(
    {
      facts,
      sizing,
      resize: () => null,
      perCard: (change, cards) => (Object.keys(change).length === 0 ? (each.get(cards) ?? null) : null),
    },
    { candidates, choice, notes: [] },
    {
      ...PLAIN,
      ...settings,
      rewriteCards: candidates.length > 1 ? candidates.map((one) => one.accelerator) : null,
    },
  );
  if (again.decision !== "rewrite") return null;
  const asked = request.candidates.filter(isJudged).map((candidate) => candidate.accelerator);
  return {
    batch: facts.batch.value,
    requests: kept.map(({ from, candidate, globalBatch }) => ({ from, to: candidate.label, globalBatch })),
    among: asked.length > 1 ? [...new Set(asked)] : null,
  };
}

/** Settings that play no part in whether a request is rewritten at all. */
const PLAIN = { tasks: 1, useSpot: false, fallbackHours: null } as const;

/** A file's text after its rewrites, and why a task was left as it is. */
export interface Rewritten {
  readonly text: string;
  readonly notes: readonly string[];
}

/** The text with every rewritten task changed in place; one that cannot be changed there stays, with a note. */
export function rewrittenText(text: string, outcomes: readonly TaskOutcome[]): Rewritten {
  const notes: string[] = [];
  let current = text;
  outcomes.forEach((outcome, index) => {
    if (outcome.decision !== "rewrite") return;
    const result = rewriteTask(current, index, changeOf(outcome));
    if (!result.ok) {
      notes.push(`${result.error.message} Change \`accelerators:\` by hand.`);
      return;
    }
    const mark = markOf(outcome);
    current = mark === null ? result.value : withFileMark(result.value, index, mark);
  });
  return { text: current, notes };
}
