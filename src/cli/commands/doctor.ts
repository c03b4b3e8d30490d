import { terminalColumns } from "../../host/env.ts";
import { GateError } from "../../lib/errors.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import type { ExitCode } from "../exit.ts";
import { OUTPUT_FLAGS } from "../flags.ts";

export const command: Command = {
  name: "doctor",
  description: "Check an installation and say what to fix",
  args: {
    subject: { type: "positional", required: false, description: "slurm, what is checked (slurm)" },
    "slurm-conf": {
      type: "string",
      valueHint: "FILE",
      description: "slurm.conf to start from (as Slurm finds it)",
    },
    ...OUTPUT_FLAGS,
  },
  examples: [
    ["neurarch-gate doctor slurm", "slurm.conf, filter, Lua, binary, settings and a dry submit on this host"],
    ["neurarch-gate doctor slurm --json", "the same for scripts; exit 4 when something has to be fixed"],
  ],
  run,
};

async function run({ words, values, switches }: ParsedWords): Promise<CommandOutput> {
  const [subject = "slurm"] = words;
  if (subject !== "slurm")
    throw new GateError("usage", `there is no doctor for ${subject}`, "Write `neurarch-gate doctor slurm`.");
  const { doctorHost } = await import("../../gate/doctor.ts");
  const { examineSlurm } = await import("../../slurm/doctor.ts");
  const { doctorDocument, humanDoctor } = await import("../../render/doctor.ts");
  const { version } = await import("../version.ts");
  const checks = await examineSlurm(doctorHost(version()), values["slurm-conf"] ?? null);
  const broken = checks.filter(({ status }) => status === "fail");
  const away = checks.some(({ unreachable }) => unreachable === true);
  const exit: ExitCode = broken.some(({ unreachable }) => unreachable !== true) ? 4 : away ? 5 : 0;
  const json = switches.json === true || values.output === "json";
  const out = json
    ? `${JSON.stringify(doctorDocument(subject, checks))}\n`
    : humanDoctor(checks, terminalColumns() ?? undefined);
  return { out, exit };
}
