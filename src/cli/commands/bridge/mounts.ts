import { MOUNT_FORMATS, type MountFormat, mountsText } from "../../../bridge/mounts.ts";
import { prepareSandbox } from "../../../daemon/sandbox-files.ts";
import { executablePath } from "../../../host/env.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { CAMPAIGN_FLAGS, CAMPAIGN_MANNERS, campaignOf } from "./flags.ts";

export const command: Command = {
  name: "bridge mounts",
  description: "Print what the editor's sandbox is to be started with, and make what it mounts",
  args: {
    ...CAMPAIGN_FLAGS,
    format: {
      type: "enum",
      options: [...MOUNT_FORMATS],
      description: "flags of docker, podman or apptainer, or the environment alone (docker)",
    },
  },
  ...CAMPAIGN_MANNERS,
  examples: [
    [
      'eval "docker run --rm -it $(neurarch-gate bridge mounts --campaign campaign.toml) IMAGE"',
      "an editor without accelerators and credentials",
    ],
    ['eval "$(neurarch-gate bridge mounts --campaign campaign.toml --format env)"', "without a container"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { campaign } = campaignOf(input);
  prepareSandbox(campaign);
  const format = (input.values.format ?? "docker") as MountFormat;
  return { out: mountsText(campaign, executablePath(), format), exit: 0 };
}
