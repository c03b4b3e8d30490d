import { releaseLeft } from "../../../daemon/left.ts";
import { environment } from "../../../host/env.ts";
import { GateError } from "../../../lib/errors.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { answerOf, noDaemon, OPERATED_FLAGS, operatedBy } from "./operated.ts";

export const command: Command = {
  name: "bridge release",
  description: "Give a bridge's allocation back, also one that a killed daemon left",
  args: OPERATED_FLAGS,
  examples: [["neurarch-gate bridge release --state DIR", "the next evaluation makes a new one"]],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const operated = await operatedBy(input);
  const reply = await answerOf(operated, { version: 1, op: "release" });
  if (reply !== null) return { err: `${reply.text}\n`, exit: 0 };
  const released = await releaseLeft(operated.stateDir, environment());
  if (released === null) throw noDaemon(operated);
  if (!released.ok) throw new GateError("unreachable", released.error);
  return { err: `${released.value}\n`, exit: 0 };
}
