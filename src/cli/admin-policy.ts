import { judgeAdminPolicy } from "../gate/admin-policy.ts";
import { Keeper } from "../gate/keeper.ts";
import { loadSettings } from "../gate/load.ts";
import { makeRecorder } from "../gate/recorder.ts";
import { environment, workingDirectory } from "../host/env.ts";
import { readStdin } from "../host/stdin.ts";
import { GateError } from "../lib/errors.ts";
import { noteLine } from "../render/messages.ts";
import type { PolicyAnswer } from "../skypilot/user-request.ts";
import type { CommandOutput, ParsedWords } from "./command.ts";
import { version } from "./version.ts";

/** Largest user request that is read: a task with everything it carries. */
const MAX_REQUEST_BYTES = 16_000_000;

/** `judge --admin-policy`: one request on stdin, one answer on stdout, exit 0 whatever the decision. */
export async function runAdminPolicy(input: ParsedWords): Promise<CommandOutput> {
  const { answer, after } = await answerOrWhyNot(input);
  return { out: `${JSON.stringify(answer)}\n`, exit: 0, after };
}

/** An error of ours is an answer too: not judged, or refused where the site fails closed. */
async function answerOrWhyNot(
  input: ParsedWords,
): Promise<{ readonly answer: PolicyAnswer; readonly after: () => void }> {
  try {
    const settings = await loadSettings(input);
    const body = readStdin(MAX_REQUEST_BYTES);
    if (!body.ok) throw new GateError("input-unreadable", body.error);
    const text = new TextDecoder().decode(body.value);
    const env = environment();
    const recorder = makeRecorder(settings, "skypilot", { cwd: workingDirectory(), env, version: version() });
    const start = input.values["policy-start"] ?? null;
    // A launch asks two to four times for the same job.
    const keeper = new Keeper({ cwd: start ?? "/", env });
    const answer = await judgeAdminPolicy(text, settings, env, start, recorder, keeper);
    const after = () => {
      recorder?.flush();
      keeper.flush();
    };
    return { answer, after };
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
    const closed = input.switches["fail-closed"] === true;
    const then = closed ? "refused, as this site fails closed" : "allowed unchecked (fail open)";
    const answer: PolicyAnswer = {
      decision: closed ? "refuse" : "unjudged",
      messages: [noteLine(`not judged: ${why}; ${then}.`)],
      reply: null,
    };
    return { answer, after: () => {} };
  }
}
