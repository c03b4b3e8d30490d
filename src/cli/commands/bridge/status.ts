import { leftStatus } from "../../../daemon/left.ts";
import type { DaemonStatus } from "../../../daemon/operator.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS } from "../../flags.ts";
import { answerOf, noDaemon, OPERATED_FLAGS, operatedBy } from "./operated.ts";

export const command: Command = {
  name: "bridge status",
  description: "Say what a bridge's daemon does, and how its evaluations ended",
  args: { ...OPERATED_FLAGS, ...OUTPUT_FLAGS },
  examples: [
    ["neurarch-gate bridge status --campaign campaign.toml", "for people"],
    ["neurarch-gate bridge status --state DIR --json", "for scripts; exit 5 when no daemon runs"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const operated = await operatedBy(input);
  const reply = await answerOf(operated, { version: 1, op: "status" });
  const status = reply?.status ?? leftStatus(operated.stateDir);
  if (status === null) throw noDaemon(operated);
  const json = input.switches.json === true || input.values.output === "json";
  const exit = reply === null ? 5 : 0;
  return { out: json ? document(status) : lines(status), exit };
}

function document(status: DaemonStatus): string {
  return `${JSON.stringify({ schema: "neurarch-gate/bridge-status", version: 1, ...status })}\n`;
}

function lines(status: DaemonStatus): string {
  const head =
    status.state === "gone"
      ? `No daemon runs for run ${status.runId}; the last one was process ${status.pid}.`
      : `Run ${status.runId}, profile ${status.profile}: ${status.state}, process ${status.pid}.`;
  const rows = status.evaluations.map((one) => {
    const job = one.jobId === null ? "" : `, job ${one.jobId} on ${one.clusterName}`;
    const ended = one.class === null ? "" : ` ${one.class}`;
    const code = one.exitCode === null ? "" : `, exit code ${one.exitCode}`;
    return `  ${one.invocationId.slice(0, 8)} ${one.kind}: ${one.phase}${ended}${code}, attempt ${one.attempt}${job}`;
  });
  return `${[
    head,
    `Socket ${status.socket}; cluster ${status.clusterName}.`,
    ...(rows.length === 0 ? ["No evaluations yet."] : rows),
  ].join("\n")}\n`;
}
