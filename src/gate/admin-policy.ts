import { GateError } from "../lib/errors.ts";
import { noteLine } from "../render/messages.ts";
import { rewriteRequestTask } from "../skypilot/rewrite.ts";
import { withEnvMark } from "../skypilot/rewrite-mark.ts";
import { readRequestTask } from "../skypilot/task.ts";
import { answerOf, decodeUserRequest, notTraining, type PolicyAnswer } from "../skypilot/user-request.ts";
import { changeOf, markOf } from "./rewriting.ts";
import type { Settings } from "./settings.ts";
import { makeSizer, SKYPILOT_DEADLINE_MS } from "./size.ts";
import { skypilotJob } from "./skypilot-job.ts";
import { judgeTask } from "./task.ts";

/**
 * Answers one SkyPilot admin-policy request. Paths start at `/`: the policy runs in the API server's folder, never in
 * the user's, so a relative path means nothing there. Throws `GateError("input-invalid")` for a body that is none.
 */
export async function judgeAdminPolicy(
  body: string,
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
): Promise<PolicyAnswer> {
  const request = decodeUserRequest(body);
  if (!request.ok) throw new GateError("input-invalid", request.error.message);
  const silent = { decision: "allow", messages: [], task: null } as const;
  if (notTraining(null, request.value.requestName) !== null) return answerOf(request.value, silent);
  const task = readRequestTask(request.value.task);
  if (!task.ok) throw new GateError("input-invalid", task.error.message);
  const job = skypilotJob(task.value, request.value.requestName, {}, [], settings);
  const size = makeSizer(settings, { cwd: "/", env, deadlineMs: SKYPILOT_DEADLINE_MS });
  const outcome = await judgeTask(job, settings, size);
  if (outcome.silent) return answerOf(request.value, silent);
  const { decision, messages } = outcome;
  if (decision !== "rewrite") return answerOf(request.value, { decision, messages, task: null });
  const rewritten = rewriteRequestTask(request.value.task, changeOf(outcome));
  if (rewritten.ok) {
    const mark = markOf(outcome);
    const task = (mark === null ? null : withEnvMark(rewritten.value, mark)) ?? rewritten.value;
    return answerOf(request.value, { decision, messages, task });
  }
  const told = [...messages, noteLine(`the task was left as it is: ${rewritten.error.message}`)];
  return answerOf(request.value, { decision: "warn", messages: told, task: null });
}
