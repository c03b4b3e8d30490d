import { judgeUserRequest } from "../gate/admin-policy.ts";
import type { PolicyOf } from "../gate/policy.ts";
import type { Recorder } from "../gate/recorder.ts";
import type { Settings } from "../gate/settings.ts";
import type { SizeJob } from "../gate/size.ts";
import type { HttpReply } from "../host/server.ts";
import { noteLine } from "../render/messages.ts";
import {
  decodeUserRequest,
  httpAnswerOf,
  type PolicyOutcome,
  type UserRequest,
} from "../skypilot/user-request.ts";
import type { Decision } from "../verdict/types.ts";
import { JSON_TYPE, TEXT_TYPE, textReply } from "./reply.ts";

/** What verdicts are made with. */
export interface Judge {
  readonly settings: Settings;
  readonly size: SizeJob;
  readonly policyOf: PolicyOf;
  /** Takes every verdict for the site's ledger; absent without one. */
  readonly recorder?: Recorder | null;
}

/** A reply, and what the log and the metrics are told of it. */
export interface Judged {
  readonly reply: HttpReply;
  readonly decision: Decision | "error" | null;
  readonly messages: readonly string[];
  /** SkyPilot's name of the request (`launch`, `validate`); null for other callers. */
  readonly request: string | null;
}

/**
 * SkyPilot's RESTful admin policy, as 0.13 speaks it: 200 with the request (echoed byte for byte, or rewritten), 400
 * with the sentences of a refusal, which is the only status whose text a user sees. Errors of ours admit, unless the
 * site fails closed. A body that is no user request has nothing to echo: it is answered with 400.
 */
export async function answerPolicy(body: string, judge: Judge): Promise<Judged> {
  const request = decodeUserRequest(body);
  if (!request.ok) {
    const message = noteLine(`${request.error.message} This address serves SkyPilot's admin policy.`);
    return { reply: textReply(400, message), decision: null, messages: [message], request: null };
  }
  const { outcome, failed } = await outcomeOf(request.value, judge);
  const { status, body: text } = httpAnswerOf(request.value, outcome);
  return {
    reply: { status, contentType: status === 200 ? JSON_TYPE : TEXT_TYPE, body: text },
    decision: failed ? "error" : outcome.decision,
    messages: outcome.messages,
    request: request.value.requestName,
  };
}

async function outcomeOf(
  request: UserRequest,
  { settings, size, policyOf, recorder = null }: Judge,
): Promise<{ readonly outcome: PolicyOutcome; readonly failed: boolean }> {
  try {
    return { outcome: await judgeUserRequest(request, settings, size, policyOf, recorder), failed: false };
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
    const closed = settings.failClosed;
    const then = closed ? "refused, as this site fails closed" : "allowed unchecked (fail open)";
    const outcome: PolicyOutcome = {
      decision: closed ? "refuse" : "unjudged",
      messages: [noteLine(`not judged: ${why}; ${then}.`)],
      task: null,
    };
    return { outcome, failed: true };
  }
}
