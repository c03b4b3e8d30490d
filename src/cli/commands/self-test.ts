import filter from "../../../lua/cli_filter.lua" with { type: "text" };
import policy from "../../../python-shim/neurarch_gate/__init__.py" with { type: "text" };
import { loadSettings } from "../../gate/load.ts";
import { selfTest } from "../../gate/self-test.ts";
import { environment, showsColour, terminalColumns, workingDirectory } from "../../host/env.ts";
import { catalogueText } from "../../model/catalogue.ts";
import { humanDoctor, selfTestDocument } from "../../render/doctor.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import type { ExitCode } from "../exit.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../flags.ts";
import { buildDay, builtDigest, versionLine } from "../version.ts";

export const command: Command = {
  name: "self-test",
  description:
    "Check this executable and its host in a second: what it carries, known verdicts, settings, clock",
  args: {
    config: SITE_FLAGS.config,
    ledger: SITE_FLAGS.ledger,
    "policy-file": SITE_FLAGS["policy-file"],
    ...OUTPUT_FLAGS,
  },
  examples: [
    [
      "neurarch-gate self-test",
      "ends with 4 when the host or its settings are wrong, 70 when the executable is",
    ],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const found = await selfTest({
    cwd: workingDirectory(),
    env: environment(),
    builtOn: buildDay(),
    embedded: [
      { name: "catalogue", text: catalogueText(), sha256: builtDigest("catalogue") },
      { name: "lua filter", text: filter, sha256: builtDigest("lua") },
      { name: "python policy", text: policy, sha256: builtDigest("python") },
    ],
    settings: () => loadSettings(input),
  });
  const failed = found.filter(({ status }) => status === "fail");
  const exit: ExitCode = failed.length === 0 ? 0 : failed.some(({ ours }) => ours) ? 70 : 4;
  const json = input.switches.json === true || input.values.output === "json";
  const out = json
    ? `${JSON.stringify(selfTestDocument(versionLine(), found))}\n`
    : `${versionLine()}\n${humanDoctor(found, terminalColumns() ?? undefined, showsColour())}`;
  return { out, exit };
}
