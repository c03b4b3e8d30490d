import { loadSettings } from "../../../gate/load.ts";
import { readAsked } from "../../../gate/policy-apply.ts";
import { readPolicyFile, whyNotApplied } from "../../../gate/policy-file.ts";
import { findPolicyFile } from "../../../gate/policy-find.ts";
import { cardIdentity } from "../../../gate/policy-task.ts";
import { environment, workingDirectory } from "../../../host/env.ts";
import { basename } from "../../../host/paths.ts";
import { GateError } from "../../../lib/errors.ts";
import { applyPolicy } from "../../../policy/apply.ts";
import { jsonText } from "../../../render/json-line.ts";
import { applyDocument, humanApply } from "../../../render/policy.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { exitOfError } from "../../exit.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../../flags.ts";
import { dayOf, TODAY_FLAG } from "./day.ts";

export const command: Command = {
  name: "policy apply",
  description: "Apply a policy file to findings read on stdin, as the published neurarch packages ask for it",
  args: {
    policy: { type: "string", valueHint: "FILE", description: "the policy file (the nearest .neurarch.yml)" },
    config: SITE_FLAGS.config,
    cards: SITE_FLAGS.cards,
    "gpu-map": SITE_FLAGS["gpu-map"],
    cluster: SITE_FLAGS.cluster,
    "repo-policy": SITE_FLAGS["repo-policy"],
    ...TODAY_FLAG,
    ...OUTPUT_FLAGS,
  },
  examples: [
    ["neurarch-gate policy apply --json --policy .neurarch.yml < findings.json", "what the file decides"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const json = input.switches.json === true || input.values.output === "json";
  try {
    return await answer(input, json);
  } catch (error) {
    if (!json || !(error instanceof GateError) || error.code === "usage") throw error;
    // Who calls this reads `error`; the rest is what every command of ours prints.
    const { errorDocument } = await import("../../../render/json.ts");
    const why = error.message.replace(/^\S+ cannot be applied: /, "");
    const document = { error: why, ...errorDocument(error.code, error.message, error.hint) };
    return { out: `${JSON.stringify(document)}\n`, exit: exitOfError(error.code) };
  }
}

async function answer({ values }: ParsedWords, json: boolean): Promise<CommandOutput> {
  const path = values.policy ?? environment().NEURARCH_POLICY_FILE ?? findPolicyFile([workingDirectory()]);
  if (path === null || path === "") {
    throw new GateError("usage", "no policy file is named or found", "Name one with --policy FILE.");
  }
  const settings = await loadSettings({ values, switches: {} });
  const today = dayOf(values.today);
  const asked = readAsked();
  const reading = readPolicyFile(path);
  if (reading.policy === null) {
    const why = whyNotApplied(reading);
    throw new GateError("input-invalid", `${basename(path)} cannot be applied: ${why}`, "Correct the file.");
  }
  const { table, cluster, repoPolicy } = settings;
  const circumstances = { today, cluster, repoPolicy };
  const findings = applyPolicy(reading.policy, asked, circumstances, cardIdentity(table));
  const file = basename(path);
  return {
    out: json ? `${jsonText(applyDocument(file, findings))}\n` : humanApply(file, findings),
    exit: 0,
  };
}
