import { GateError } from "../lib/errors.ts";
import { noteLine } from "../render/messages.ts";
import { SENT_VARIABLE } from "../sizing/sent.ts";
import { offerRequestTask, rewriteRequestTask } from "../skypilot/rewrite.ts";
import { withEnvMark } from "../skypilot/rewrite-mark.ts";
import { readRequestTask } from "../skypilot/task.ts";
import { withTaskEnv } from "../skypilot/task-env.ts";
import {
  answerOf,
  decodeUserRequest,
  isController,
  notTraining,
  type PolicyAnswer,
  type PolicyOutcome,
  type UserRequest,
} from "../skypilot/user-request.ts";
import type { Keeper } from "./keeper.ts";
import { makePolicy, type PolicyOf } from "./policy.ts";
import type { Recorder } from "./recorder.ts";
import { changeOf, markOf } from "./rewriting.ts";
import type { Settings } from "./settings.ts";
import { makeSizer, type SizeJob, SKYPILOT_DEADLINE_MS } from "./size.ts";
import { skypilotJob } from "./skypilot-job.ts";
import { judgeTask, type TaskOutcome } from "./task.ts";

/**
 * Answers one SkyPilot admin-policy request. `start` is the user's folder where the policy runs at the client's side:
 * only there a repository's own policy file is looked for. Elsewhere paths start at `/`: the policy runs in the API
 * server's folder, never in the user's, so a relative path means nothing there.
 * Throws `GateError("input-invalid")` for a body that is none.
 */
export async function judgeAdminPolicy(
  body: string,
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  start: string | null = null,
  recorder: Recorder | null = null,
  keeper?: Keeper,
): Promise<PolicyAnswer> {
  const request = decodeUserRequest(body);
  if (!request.ok) throw new GateError("input-invalid", request.error.message);
  const kept = keeper === undefined ? {} : { keeper };
  const size = makeSizer(settings, { cwd: start ?? "/", env, deadlineMs: SKYPILOT_DEADLINE_MS, ...kept });
  const siteOnly = start === null || !request.value.atClientSide;
  const policyOf = makePolicy(settings, { cwd: start ?? "/", env, file: null, siteOnly });
  return answerOf(request.value, await judgeUserRequest(request.value, settings, size, policyOf, recorder));
}

/** What a policy says to a request, whoever asks for it. Throws `GateError("input-invalid")` for a task that is none. */
export async function judgeUserRequest(
  request: UserRequest,
  settings: Settings,
  size: SizeJob,
  policyOf: PolicyOf,
  recorder: Recorder | null = null,
): Promise<PolicyOutcome> {
  const silent = { decision: "allow", messages: [], task: null } as const;
  if (isController(request.requestName)) return silent;
  const task = readRequestTask(request.task);
  if (!task.ok) {
    // What cannot be read cannot say that it trains either.
    if (notTraining(null, request.requestName) !== null) return silent;
    throw new GateError("input-invalid", task.error.message);
  }
  const job = skypilotJob(task.value, request.requestName, {}, [], settings);
  const rewriting = await judgeTask(job, settings, size, policyOf);
  const running = runsOnCluster(request, rewriting);
  const outcome = running
    ? await judgeTask({ ...job, rewritable: false }, settings, size, policyOf)
    : rewriting;
  const stopped = outcome.decision === "refuse";
  if (recorder !== null && (stopped || !BEFOREHAND.includes(request.requestName)))
    recorder.note({ job, outcome, stopped, ...askerOf(request) });
  if (outcome.silent) return silent;
  const { decision, messages } = outcome;
  const send = request.atClientSide && decision !== "refuse" ? await sendingOf(outcome, settings) : null;
  const sending = (text: string) => send?.(text) ?? null;
  if (running && decision === "warn")
    return { decision: "rewrite", messages, task: offered(request.task, rewriting) };
  if (decision !== "rewrite") return { decision, messages, task: sending(request.task) };
  const rewritten = rewriteRequestTask(request.task, changeOf(outcome));
  if (rewritten.ok) {
    const mark = markOf(outcome);
    const task = (mark === null ? null : withEnvMark(rewritten.value, mark)) ?? rewritten.value;
    return { decision, messages, task: sending(task) ?? task };
  }
  const told = [...messages, noteLine(`the task was left as it is: ${rewritten.error.message}`)];
  return { decision: "warn", messages: told, task: sending(request.task) };
}

/**
 * Puts the size of a model that only this side can read into a task, for the judgement at the server's side; null where
 * there is none to send, or where the task has it already.
 */
async function sendingOf(
  outcome: TaskOutcome,
  settings: Settings,
): Promise<((text: string) => string | null) | null> {
  if (outcome.telling?.sizing?.local !== true) return null;
  const { toSend } = await import("./client-sizing.ts");
  const sent = toSend(outcome, settings);
  if (sent === null) return null;
  return (text) => {
    const sending = withTaskEnv(text, SENT_VARIABLE, sent);
    return sending === text ? null : sending;
  };
}

/**
 * `sky exec` runs on a cluster that is there: were its card exchanged, SkyPilot would refuse the task for not matching
 * the cluster, and were it kept, a cluster that the same task was launched on after a rewrite would not match either.
 */
function runsOnCluster({ requestName }: UserRequest, { decision, result, request }: TaskOutcome): boolean {
  const alone = request.candidates.length === 1 && result?.dropped.length === 0;
  return requestName === "exec" && decision === "rewrite" && alone;
}

/** The task with the rewrite's card beside its own, of which SkyPilot takes what the cluster has. */
function offered(task: string, rewriting: TaskOutcome): string {
  const [to] = changeOf(rewriting).replace;
  const result = to === undefined ? null : offerRequestTask(task, to.accelerator, to.count);
  return result?.ok ? result.value : task;
}

/** Requests that come before every launch: only a refusal ends there, anything else is judged again at the launch. */
const BEFOREHAND = ["validate", "optimize"];

/** Who asked: at the client's side whoever runs us, in a server the user it tells of. */
function askerOf({ atClientSide, user }: UserRequest): { readonly user?: string | null } {
  if (atClientSide) return {};
  const name = /^name:[ ]*["']?([^"'\n]+?)["']?[ ]*$/m.exec(user)?.[1] ?? null;
  return { user: name === "null" ? null : name };
}
