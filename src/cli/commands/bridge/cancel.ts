import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { answerOf, noDaemon, OPERATED_FLAGS, operatedBy } from "./operated.ts";

export const command: Command = {
  name: "bridge cancel",
  description: "Cancel an evaluation of a bridge; its allocation stays",
  args: {
    id: {
      type: "positional",
      required: false,
      description: "how the evaluation's id begins (the running one)",
    },
    ...OPERATED_FLAGS,
  },
  examples: [["neurarch-gate bridge cancel --campaign campaign.toml", "cancel what is running"]],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const operated = await operatedBy(input);
  const reply = await answerOf(operated, { version: 1, op: "cancel", id: input.words[0] ?? null });
  if (reply === null) throw noDaemon(operated);
  return { err: `${reply.text}\n`, exit: 0 };
}
