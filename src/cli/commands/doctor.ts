import { terminalColumns } from "../../host/env.ts";
import { GateError } from "../../lib/errors.ts";
import type { Check } from "../../slurm/doctor-types.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import type { ExitCode } from "../exit.ts";
import { OUTPUT_FLAGS } from "../flags.ts";

export const command: Command = {
  name: "doctor",
  description: "Check an installation and say what to fix",
  args: {
    subject: { type: "positional", required: false, description: "slurm or sky, what is checked (slurm)" },
    "slurm-conf": {
      type: "string",
      valueHint: "FILE",
      description: "slurm.conf to start from (as Slurm finds it)",
    },
    python: {
      type: "string",
      valueHint: "PROGRAM",
      description: "with sky: the Python that runs SkyPilot (that of `sky`)",
    },
    ...OUTPUT_FLAGS,
  },
  examples: [
    ["neurarch-gate doctor slurm", "slurm.conf, filter, Lua, binary, settings and a dry submit on this host"],
    ["neurarch-gate doctor slurm --json", "the same for scripts; exit 4 when something has to be fixed"],
    ["neurarch-gate doctor sky", "SkyPilot's config, and the class policy or REST policy that it names"],
  ],
  run,
};

async function run({ words, values, switches }: ParsedWords): Promise<CommandOutput> {
  const [subject = "slurm"] = words;
  if (subject !== "slurm" && subject !== "sky")
    throw new GateError(
      "usage",
      `there is no doctor for ${subject}`,
      "Write `neurarch-gate doctor slurm` or `neurarch-gate doctor sky`.",
    );
  const [flag, other] = subject === "sky" ? ["slurm-conf", "slurm"] : ["python", "sky"];
  if (values[flag] !== undefined)
    throw new GateError("usage", `--${flag} goes with \`doctor ${other}\` only`, "Leave it out.");
  const { doctorDocument, humanDoctor } = await import("../../render/doctor.ts");
  const checks = await (subject === "sky" ? skyChecks(values.python) : slurmChecks(values["slurm-conf"]));
  const broken = checks.filter(({ status }) => status === "fail");
  const away = checks.some(({ unreachable }) => unreachable === true);
  const exit: ExitCode = broken.some(({ unreachable }) => unreachable !== true) ? 4 : away ? 5 : 0;
  const json = switches.json === true || values.output === "json";
  const out = json
    ? `${JSON.stringify(doctorDocument(subject, checks))}\n`
    : humanDoctor(checks, terminalColumns() ?? undefined);
  return { out, exit };
}

async function slurmChecks(conf: string | undefined): Promise<readonly Check[]> {
  const { doctorHost } = await import("../../gate/doctor.ts");
  const { examineSlurm } = await import("../../slurm/doctor.ts");
  const { version } = await import("../version.ts");
  return examineSlurm(doctorHost(version()), conf ?? null);
}

async function skyChecks(python: string | undefined): Promise<readonly Check[]> {
  const { doctorHost } = await import("../../gate/doctor.ts");
  const { examineSky } = await import("../../gate/doctor-sky.ts");
  const { default: shim } = await import("../../../python-shim/neurarch_gate/__init__.py", {
    with: { type: "text" },
  });
  const { version } = await import("../version.ts");
  return examineSky(doctorHost(version()), shim, python ?? null);
}
