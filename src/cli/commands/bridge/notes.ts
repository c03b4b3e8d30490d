import { runtimeNotes } from "../../../bridge/notes.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { CAMPAIGN_FLAGS, CAMPAIGN_MANNERS, campaignOf } from "./flags.ts";

export const command: Command = {
  name: "bridge notes",
  description: "Print the runtime notes for the agent in the sandbox, Markdown",
  args: CAMPAIGN_FLAGS,
  ...CAMPAIGN_MANNERS,
  examples: [["neurarch-gate bridge notes --campaign campaign.toml", "what the agent is to read"]],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  return { out: runtimeNotes(campaignOf(input).campaign), exit: 0 };
}
