import { sandboxVariables } from "../../../bridge/mounts.ts";
import { Refused, runUnder } from "../../../daemon/command.ts";
import { prepareSandbox } from "../../../daemon/sandbox-files.ts";
import { environment, executablePath, ownWords, workingDirectory } from "../../../host/env.ts";
import { openLog } from "../../../host/log.ts";
import { GateError } from "../../../lib/errors.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { foreignCode } from "../../exit.ts";
import { parseStrict } from "../../strict.ts";
import { version } from "../../version.ts";
import { CAMPAIGN_FLAGS, CAMPAIGN_MANNERS, campaignOf } from "./flags.ts";

export const command: Command = {
  name: "bridge run",
  description: "Serve a campaign while a command runs (an editor, an agent), and end with its exit code",
  args: {
    ...CAMPAIGN_FLAGS,
    command: { type: "positional", required: false, description: "after `--`: the command and its words" },
  },
  ...CAMPAIGN_MANNERS,
  raw: true,
  examples: [
    ["neurarch-gate bridge run --campaign campaign.toml -- sh edit.sh", "the allocation is gone afterwards"],
    [
      "neurarch-gate bridge run --campaign campaign.toml --keep -- bash",
      "a shell whose `neurarch-gate evaluate accuracy` works; the allocation stays",
    ],
  ],
  run,
};

async function run({ words }: ParsedWords): Promise<CommandOutput> {
  const at = words.indexOf("--");
  const argv = at === -1 ? [] : words.slice(at + 1);
  const { command: _, ...flags } = command.args;
  const input = parseStrict(at === -1 ? words : words.slice(0, at), flags, command);
  if (argv.length === 0)
    throw new GateError("usage", "no command is given", "Write it after the flags: `-- COMMAND ...`.");
  const { campaign, record } = campaignOf(input);
  prepareSandbox(campaign);
  const log = openLog();
  try {
    const code = await runUnder(
      {
        campaign,
        record,
        version: version(),
        env: environment(),
        cwd: workingDirectory(),
        log: (line) => log(`neurarch-gate bridge: ${line}`),
      },
      argv,
      sandboxVariables(campaign, executablePath()),
      [...ownWords(), "bridge", "release", "--state", campaign.stateDir],
    );
    return { exit: foreignCode(code), ends: true };
  } catch (error) {
    if (error instanceof Refused) return { err: `${error.message}\n`, exit: 1, ends: true };
    throw error;
  }
}
