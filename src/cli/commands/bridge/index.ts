import { absolutePath } from "../../../bridge/campaign/paths.ts";
import { bridgeUnit } from "../../../bridge/unit.ts";
import { Refused, serveCampaign } from "../../../daemon/command.ts";
import { environment, executablePath, workingDirectory } from "../../../host/env.ts";
import { openLog } from "../../../host/log.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { version } from "../../version.ts";
import { CAMPAIGN_FLAGS, CAMPAIGN_MANNERS, campaignOf } from "./flags.ts";

export const command: Command = {
  name: "bridge",
  description: "Run trusted evaluations of a local candidate on remote accelerators, for sandboxed clients",
  args: {
    ...CAMPAIGN_FLAGS,
    "print-unit": { type: "boolean", description: "print a systemd user unit for these flags, and end" },
  },
  ...CAMPAIGN_MANNERS,
  strayHint: "The sub-commands are listed by `neurarch-gate --help`.",
  examples: [
    ["neurarch-gate bridge --campaign campaign.toml", "serve until told to end"],
    [
      "neurarch-gate bridge --campaign campaign.toml --print-unit >~/.config/systemd/user/bridge.service",
      "as a service of your own",
    ],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const loaded = campaignOf(input);
  if (input.switches["print-unit"] === true) {
    const { runId, environment: given } = loaded.campaign;
    const place = { runId, path: environment().PATH, allow: given.allow };
    return { out: bridgeUnit(executablePath(), unitWords(input), place), exit: 0 };
  }
  const log = openLog();
  try {
    await serveCampaign({
      campaign: loaded.campaign,
      record: loaded.record,
      version: version(),
      env: environment(),
      cwd: workingDirectory(),
      log: (line) => log(`neurarch-gate bridge: ${line}`),
    });
    return { exit: 0, ends: true };
  } catch (error) {
    if (error instanceof Refused) return { err: `${error.message}\n`, exit: 1, ends: true };
    throw error;
  }
}

const PATHS = ["campaign", "socket", "workspace", "request", "clusters", "state"];

/** The flags again, for the unit, which starts in another folder: every path whole. */
function unitWords({ values, lists, switches }: ParsedWords): string[] {
  const whole = (name: string, value: string) =>
    PATHS.includes(name) || (name === "sky" && value.includes("/"))
      ? absolutePath(value, workingDirectory(), environment().HOME)
      : value;
  const given = Object.entries(values)
    .filter(([name]) => lists[name] === undefined)
    .map(([name, value]) => `--${name}=${whole(name, value)}`);
  const repeated = Object.entries(lists).flatMap(([name, all]) => all.map((value) => `--${name}=${value}`));
  const turned = Object.entries(switches)
    .filter(([name]) => name !== "print-unit")
    .map(([name, on]) => (on ? `--${name}` : `--no-${name}`));
  return [...given, ...repeated, ...turned];
}
