import { judgeAdminPolicy } from "../gate/admin-policy.ts";
import { loadSettings } from "../gate/load.ts";
import { environment } from "../host/env.ts";
import { readStdin } from "../host/stdin.ts";
import { GateError } from "../lib/errors.ts";
import type { CommandOutput, ParsedWords } from "./command.ts";

/** Largest user request that is read: a task with everything it carries. */
const MAX_REQUEST_BYTES = 16_000_000;

/** `judge --admin-policy`: one request on stdin, one answer on stdout, exit 0 whatever the decision. */
export async function runAdminPolicy(input: ParsedWords): Promise<CommandOutput> {
  const settings = await loadSettings(input);
  const body = readStdin(MAX_REQUEST_BYTES);
  if (!body.ok)
    throw new GateError("input-unreadable", body.error, "The Python policy sends the request on stdin.");
  const answer = await judgeAdminPolicy(new TextDecoder().decode(body.value), settings, environment());
  return { out: `${JSON.stringify(answer)}\n`, exit: 0 };
}
