import { verdictDocument } from "../render/json.ts";
import type { Decision } from "../verdict/types.ts";
import type { TaskOutcome } from "./task.ts";

/** Of several tasks the worst counts; a request that was not judged is not cleared either. */
const ORDER: readonly Decision[] = ["allow", "rewrite", "warn", "unjudged", "refuse"];

/** The decision on a whole file; a file without tasks is unjudged. */
export function worstDecision(outcomes: readonly { readonly decision: Decision }[]): Decision {
  if (outcomes.length === 0) return "unjudged";
  return outcomes
    .map(({ decision }) => decision)
    .reduce((a, b) => (ORDER.indexOf(a) >= ORDER.indexOf(b) ? a : b));
}

/**
 * The document for a file: one task's own, or for a pipeline, a job group or a heterogeneous job the same with
 * every verdict in order and each task's document under `tasks`.
 */
export function fileDocument(outcomes: readonly TaskOutcome[], explain = false): unknown {
  const documents = outcomes.map((outcome) => verdictDocument(outcome, explain));
  const [only, second] = documents;
  if (only !== undefined && second === undefined) return only;
  return {
    schema: "neurarch-gate/verdict",
    version: 1,
    decision: worstDecision(outcomes),
    messages: documents.flatMap((document) => document.messages),
    task: null,
    verdicts: documents.flatMap((document) =>
      document.verdicts.map((verdict) => ({ task: document.task, ...verdict })),
    ),
    sizing: null,
    tasks: documents,
  };
}
