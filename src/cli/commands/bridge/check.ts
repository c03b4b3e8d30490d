import { checkDocument, checkLines, checkNotes } from "../../../bridge/campaign/check.ts";
import { environment } from "../../../host/env.ts";
import { digest } from "../../../host/private-files.ts";
import { findProgram } from "../../../host/which.ts";
import { GateError } from "../../../lib/errors.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS } from "../../flags.ts";
import { CAMPAIGN_FLAGS, CAMPAIGN_MANNERS, campaignOf } from "./flags.ts";

export const command: Command = {
  name: "bridge check",
  description: "Check a campaign: its file or flags, the clusters file, the request, the run's record",
  args: { ...CAMPAIGN_FLAGS, ...OUTPUT_FLAGS },
  ...CAMPAIGN_MANNERS,
  examples: [["neurarch-gate bridge check --campaign campaign.toml", "end with 4 when something is wrong"]],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const loaded = campaignOf(input);
  const sky = findProgram(loaded.campaign.skyPath, environment());
  if (sky === null && loaded.campaign.skyPath.includes("/"))
    throw new GateError(
      "input-invalid",
      `\`sky\` is ${loaded.campaign.skyPath}, and there is no such program`,
      "Name the sky executable with --sky, or leave it out for the one in PATH.",
    );
  const checked = {
    ...loaded,
    notes: checkNotes(loaded.campaign, { skyFound: sky !== null, environment: environment() }),
  };
  const json = input.switches.json === true || input.values.output === "json";
  return json
    ? { out: `${JSON.stringify(checkDocument(checked, digest))}\n`, exit: 0 }
    : { out: checkLines(checked, digest), exit: 0 };
}
