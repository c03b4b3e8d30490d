import { judgeAdminPolicy } from "../gate/admin-policy.ts";
import { loadSettings } from "../gate/load.ts";
import { environment } from "../host/env.ts";
import { readStdin } from "../host/stdin.ts";
import { GateError } from "../lib/errors.ts";
import { noteLine } from "../render/messages.ts";
import type { PolicyAnswer } from "../skypilot/user-request.ts";
import type { CommandOutput, ParsedWords } from "./command.ts";

/** Largest user request that is read: a task with everything it carries. */
const MAX_REQUEST_BYTES = 16_000_000;

/** `judge --admin-policy`: one request on stdin, one answer on stdout, exit 0 whatever the decision. */
export async function runAdminPolicy(input: ParsedWords): Promise<CommandOutput> {
  return { out: `${JSON.stringify(await answerOrWhyNot(input))}\n`, exit: 0 };
}

/** An error of ours is an answer too: not judged, or refused where the site fails closed. */
async function answerOrWhyNot(input: ParsedWords): Promise<PolicyAnswer> {
  try {
    const settings = await loadSettings(input);
    const body = readStdin(MAX_REQUEST_BYTES);
    if (!body.ok) throw new GateError("input-unreadable", body.error);
    const text = new TextDecoder().decode(body.value);
    return await judgeAdminPolicy(text, settings, environment(), input.values["policy-start"] ?? null);
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
    const closed = input.switches["fail-closed"] === true;
    const then = closed ? "refused, as this site fails closed" : "allowed unchecked (fail open)";
    return {
      decision: closed ? "refuse" : "unjudged",
      messages: [noteLine(`not judged: ${why}; ${then}.`)],
      reply: null,
    };
  }
}
