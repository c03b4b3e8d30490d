import { CAPABILITIES } from "../../../bridge/capabilities.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS } from "../../flags.ts";

export const command: Command = {
  name: "bridge capabilities",
  description: "Say what a bridge can do and what it cannot",
  args: OUTPUT_FLAGS,
  examples: [["neurarch-gate bridge capabilities --json", "for a program that chooses by it"]],
  run,
};

async function run({ values, switches }: ParsedWords): Promise<CommandOutput> {
  if (switches.json === true || values.output === "json")
    return { out: `${JSON.stringify(CAPABILITIES)}\n`, exit: 0 };
  const { kinds, parallelCandidates, remoteProfiler, artifacts, protocolVersion } = CAPABILITIES;
  const lines = [
    `Evaluations: ${kinds.join(", ")}; protocol version ${protocolVersion}.`,
    `Artifacts: the benchmark's output, at most ${artifacts.maxBytes / 1024} KiB; files that a call declares, at most ${artifacts.declaredMaxFiles} and ${artifacts.declaredMaxBytes / 1024 ** 3} GiB together.`,
    `Parallel candidates: no. ${parallelCandidates.reason}`,
    `Remote profiler: no. ${remoteProfiler.reason}`,
  ];
  return { out: `${lines.join("\n")}\n`, exit: 0 };
}
