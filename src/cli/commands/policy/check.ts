import { readInput } from "../../../gate/input.ts";
import { loadSettings } from "../../../gate/load.ts";
import { reportedPath } from "../../../gate/located.ts";
import { MAX_POLICY_BYTES, policyTextOf, readPolicyText } from "../../../gate/policy-file.ts";
import { findPolicyFile } from "../../../gate/policy-find.ts";
import { cardIdentity } from "../../../gate/policy-task.ts";
import { environment, workingDirectory } from "../../../host/env.ts";
import { GateError } from "../../../lib/errors.ts";
import { lintPolicy } from "../../../policy/lint.ts";
import { jsonText } from "../../../render/json-line.ts";
import { checkDocument, checkFindings, humanCheck } from "../../../render/policy.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { SITE_FLAGS } from "../../flags.ts";
import { version } from "../../version.ts";
import { dayOf, TODAY_FLAG } from "./day.ts";

export const command: Command = {
  name: "policy check",
  description: "Check a policy file: keys, waivers and their dates, budget, rules",
  args: {
    file: {
      type: "positional",
      required: false,
      description: "the policy file (the nearest .neurarch.yml); - reads stdin",
    },
    config: SITE_FLAGS.config,
    cards: SITE_FLAGS.cards,
    "gpu-map": SITE_FLAGS["gpu-map"],
    ...TODAY_FLAG,
    json: { type: "boolean", description: "one JSON document on stdout" },
    output: {
      type: "enum",
      options: ["human", "json", "sarif", "github"],
      description: "the same by name; sarif and github are shown beside a change's lines (human)",
    },
  },
  examples: [
    ["neurarch-gate policy check .neurarch.yml", "end with 4 when something in it does not do what it says"],
    ["neurarch-gate policy check --today 2026-12-24", "what will have expired by then"],
  ],
  run,
};

/** Throws `GateError("input-unreadable")`. */
function textOf(file: string): string {
  if (file === "-") return new TextDecoder().decode(readInput(file, MAX_POLICY_BYTES));
  const text = policyTextOf(file);
  if (!text.ok) throw new GateError("input-unreadable", text.error, "Name a readable file of UTF-8 text.");
  return text.value;
}

/** Named from the working directory where it lies within: a workflow shows lines of such files only. */
function nearestFile(): string | null {
  const folder = workingDirectory();
  const found = findPolicyFile([folder]);
  return found?.startsWith(`${folder}/`) ? found.slice(folder.length + 1) : found;
}

async function run({ values, switches, words }: ParsedWords): Promise<CommandOutput> {
  const file = words[0] ?? nearestFile();
  if (file === null)
    throw new GateError("usage", "no policy file is named or found", "Name one: policy check FILE.");
  const { table } = await loadSettings({ values, switches: {} });
  const today = dayOf(values.today);
  const reading = readPolicyText(textOf(file));
  const problems = lintPolicy(reading, {
    today,
    identity: cardIdentity(table),
    nearestCard: (name) => table.nearest(name),
  });
  const checked = { file: file === "-" ? "stdin" : file, today, policy: reading.policy, problems };
  const exit = problems.some(({ severity }) => severity === "error") ? 4 : 0;
  if (switches.json === true || values.output === "json")
    return { out: `${jsonText(checkDocument(checked))}\n`, exit };
  const reported = reportedPath(file, { cwd: workingDirectory(), env: environment() });
  if (values.output === "sarif") {
    const { sarifLog } = await import("../../../render/sarif.ts");
    const { ruleText } = await import("../../../render/rule-text.ts");
    const log = sarifLog(checkFindings(checked, reported), { version: version(), textOf: ruleText });
    return { out: `${JSON.stringify(log)}\n`, exit };
  }
  if (values.output === "github") {
    const { githubAnnotations } = await import("../../../render/github.ts");
    return { out: githubAnnotations(checkFindings(checked, reported)), exit };
  }
  return { out: humanCheck(checked), exit };
}
