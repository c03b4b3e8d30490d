import { examineBridge } from "../../daemon/doctor.ts";
import { doctorHost } from "../../gate/doctor.ts";
import { nowMs } from "../../host/clock.ts";
import { terminalColumns, userId } from "../../host/env.ts";
import { doctorDocument, humanDoctor } from "../../render/doctor.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import type { ExitCode } from "../exit.ts";
import { OUTPUT_FLAGS } from "../flags.ts";
import { version } from "../version.ts";
import { CAMPAIGN_FLAGS, CAMPAIGN_MANNERS, campaignOf } from "./bridge/flags.ts";

export const command: Command = {
  name: "doctor bridge",
  description: "Check what stands between a bridge and its cluster, and say what to fix",
  args: { ...CAMPAIGN_FLAGS, ...OUTPUT_FLAGS },
  ...CAMPAIGN_MANNERS,
  examples: [
    [
      "neurarch-gate doctor bridge --campaign campaign.toml",
      "SkyPilot's version, socket and state, ssh to the login node, certificates",
    ],
    ["neurarch-gate doctor bridge", "SkyPilot alone; exit 4 when something has to be fixed"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { values, switches } = input;
  const named = values.campaign !== undefined || values["run-id"] !== undefined;
  const campaign = named ? campaignOf(input).campaign : null;
  const host = { ...doctorHost(version()), uid: userId() };
  const findings = await examineBridge(host, campaign, values.sky ?? "sky", nowMs());
  const broken = findings.filter(({ status }) => status === "fail");
  const exit: ExitCode = broken.some(({ unreachable }) => unreachable !== true)
    ? 4
    : broken.length > 0
      ? 5
      : 0;
  const json = switches.json === true || values.output === "json";
  const out = json
    ? `${JSON.stringify(doctorDocument("bridge", findings))}\n`
    : humanDoctor(findings, terminalColumns() ?? undefined);
  return { out, exit };
}
