import { showsColour, terminalColumns } from "../../host/env.ts";
import { GateError } from "../../lib/errors.ts";
import type { Check } from "../../slurm/doctor-types.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import type { ExitCode } from "../exit.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../flags.ts";

const SUBJECTS: readonly string[] = ["slurm", "sky", "ledger"];

export const command: Command = {
  name: "doctor",
  description: "Check an installation and say what to fix",
  args: {
    subject: {
      type: "positional",
      required: false,
      description: "slurm, sky or ledger: what is checked (slurm)",
    },
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
    ledger: SITE_FLAGS.ledger,
    config: SITE_FLAGS.config,
    ...OUTPUT_FLAGS,
  },
  completes: { subject: SUBJECTS },
  examples: [
    ["neurarch-gate doctor slurm", "slurm.conf, filter, Lua, binary, settings and a dry submit on this host"],
    ["neurarch-gate doctor slurm --json", "the same for scripts; exit 4 when something has to be fixed"],
    ["neurarch-gate doctor sky", "SkyPilot's config, and the class policy or REST policy that it names"],
    ["neurarch-gate doctor ledger", "where verdicts are recorded or sent, and what waits"],
  ],
  run,
};

/** Which doctor a flag goes with. */
const FLAGS_OF = [
  ["slurm-conf", "slurm"],
  ["python", "sky"],
  ["ledger", "ledger"],
  ["config", "ledger"],
] as const;

async function run({ words, values, switches }: ParsedWords): Promise<CommandOutput> {
  const [subject = "slurm"] = words;
  const foreign = FLAGS_OF.find(([flag, owner]) => values[flag] !== undefined && owner !== subject);
  if (!SUBJECTS.includes(subject))
    throw new GateError(
      "usage",
      `there is no doctor for ${subject}`,
      "Write `neurarch-gate doctor slurm`, `neurarch-gate doctor sky` or `neurarch-gate doctor ledger`.",
    );
  if (foreign !== undefined)
    throw new GateError("usage", `--${foreign[0]} goes with \`doctor ${foreign[1]}\` only`, "Leave it out.");
  const { doctorDocument, humanDoctor } = await import("../../render/doctor.ts");
  const checks = await (subject === "sky"
    ? skyChecks(values.python)
    : subject === "ledger"
      ? examineLedger(values)
      : slurmChecks(values["slurm-conf"]));
  const broken = checks.filter(({ status }) => status === "fail");
  const away = checks.some(({ unreachable }) => unreachable === true);
  const exit: ExitCode = broken.some(({ unreachable }) => unreachable !== true) ? 4 : away ? 5 : 0;
  const json = switches.json === true || values.output === "json";
  const out = json
    ? `${JSON.stringify(doctorDocument(subject, checks))}\n`
    : humanDoctor(checks, terminalColumns() ?? undefined, showsColour());
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

async function examineLedger(values: Readonly<Record<string, string>>): Promise<readonly Check[]> {
  const { siteLedger } = await import("../../gate/doctor.ts");
  const { loadSettings } = await import("../../gate/load.ts");
  const { environment } = await import("../../host/env.ts");
  const { version } = await import("../version.ts");
  // A site file that cannot be read is said as every command says it.
  await loadSettings({ values, switches: {} });
  const states = await siteLedger(values, environment(), version());
  if (states === null)
    return [{ check: "ledger", status: "skipped", message: "the site keeps no ledger", fix: null }];
  return states.map(({ problem, message, fix }) => ({
    check: "ledger",
    status: problem ? "fail" : "ok",
    message,
    fix,
  }));
}
