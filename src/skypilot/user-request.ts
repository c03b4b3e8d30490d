import { fail, ok, type Result } from "../lib/result.ts";
import type { Decision } from "../verdict/types.ts";
import type { Problem } from "./problem.ts";
import type { Task } from "./task.ts";

/** What SkyPilot hands an admin policy (`sky.UserRequest.encode()`); YAML fields stay text, as they came. */
export interface UserRequest {
  /** The whole task document, secrets in it: never logged, sent back byte for byte when nothing changes. */
  readonly task: string;
  readonly skypilotConfig: string;
  /** `launch`, `validate`, `jobs.launch_controller` ...; empty when an older SkyPilot sends none. */
  readonly requestName: string;
  readonly clusterName: string | null;
  readonly dryrun: boolean;
  readonly atClientSide: boolean;
  /** A YAML text of the user, empty at the client's side. */
  readonly user: string;
  /** The body was a JSON string that holds the JSON, as SkyPilot's REST client sends it. */
  readonly doubleEncoded: boolean;
}

/** What the policy came to. `task` is the text that goes on, rewritten or with a size sent along; null = as it came. */
export interface PolicyOutcome {
  readonly decision: Decision;
  readonly messages: readonly string[];
  readonly task: string | null;
}

/** What `judge --admin-policy` prints for the Python policy. */
export interface PolicyAnswer {
  readonly decision: Decision;
  readonly messages: readonly string[];
  /** The body that `sky.MutatedUserRequest.decode` reads; null = the request goes on unchanged. */
  readonly reply: MutatedRequest | null;
}

export interface MutatedRequest {
  readonly task: string;
  readonly skypilot_config: string;
}

/**
 * Reads the body of an admin-policy request, plain (the Python policy) or encoded twice (the REST client). Fields
 * that a newer SkyPilot adds are passed over.
 */
export function decodeUserRequest(body: string): Result<UserRequest, Problem> {
  const first = parsed(body);
  const doubleEncoded = typeof first === "string";
  const request = doubleEncoded ? parsed(first) : first;
  if (!isRecord(request)) return problem("The body is not the JSON of a SkyPilot user request.");
  const { task, skypilot_config: skypilotConfig, request_options: options } = request;
  if (typeof task !== "string") return problem("The user request has no `task` text.");
  if (typeof skypilotConfig !== "string") return problem("The user request has no `skypilot_config` text.");
  const { cluster_name: clusterName, dryrun } = isRecord(options) ? options : {};
  return ok({
    task,
    skypilotConfig,
    requestName: textOf(request.request_name),
    clusterName: typeof clusterName === "string" ? clusterName : null,
    dryrun: dryrun === true,
    atClientSide: request.at_client_side === true,
    user: textOf(request.user),
    doubleEncoded,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function problem(message: string): Result<never, Problem> {
  return fail({ code: "input-invalid", message, line: null, column: null });
}

const SERVING: ReadonlySet<string> = new Set([
  "serve.up",
  "serve.update",
  "serve.launch_replica",
  "jobs.pool_apply",
]);

/** Whether SkyPilot asks for a machine of its own: the controller of jobs or of services. */
export function isController(requestName: string): boolean {
  return /(?:^|[._])launch_controller$/.test(requestName);
}

/**
 * Why a task is not judged at all, as a sentence; null for training. SkyPilot's own controllers never are;
 * services and pools are when their `NEURARCH_TASK` is `train`.
 *
 * @param requestName null for a task file
 */
export function notTraining(task: Task | null, requestName: string | null): string | null {
  if (requestName !== null && isController(requestName)) {
    return "This is SkyPilot's own controller, not a training job.";
  }
  if (task?.envs.NEURARCH_TASK?.trim().toLowerCase() === "train") return null;
  const serving = task?.service === true || (requestName !== null && SERVING.has(requestName));
  return serving
    ? "A service or a pool is not training; set NEURARCH_TASK to train to have it judged."
    : null;
}

/** The answer for the Python policy. A rewrite without a text, one that could not be written, is a warning. */
export function answerOf(request: UserRequest, outcome: PolicyOutcome): PolicyAnswer {
  const { decision, messages, task } = outcome;
  if (decision === "refuse") return { decision, messages, reply: null };
  if (task === null) return { decision: decision === "rewrite" ? "warn" : decision, messages, reply: null };
  return { decision, messages, reply: { task, skypilot_config: request.skypilotConfig } };
}

/**
 * The answer of a RESTful policy: 400 with the sentences refuses, and is the only answer that SkyPilot shows as it
 * is; anything else sends the whole request back, because a reply without its `skypilot_config` would wipe it.
 */
export function httpAnswerOf(
  request: UserRequest,
  outcome: PolicyOutcome,
): { status: 200 | 400; body: string } {
  if (outcome.decision === "refuse") return { status: 400, body: outcome.messages.join("\n") };
  const reply = { task: outcome.task ?? request.task, skypilot_config: request.skypilotConfig };
  return { status: 200, body: encodeAnswer(reply, request.doubleEncoded) };
}

/** The reply's text, encoded as the request was: SkyPilot reads a JSON string that holds the JSON. */
export function encodeAnswer(reply: MutatedRequest, doubleEncoded: boolean): string {
  const once = JSON.stringify(reply);
  return doubleEncoded ? JSON.stringify(once) : once;
}
