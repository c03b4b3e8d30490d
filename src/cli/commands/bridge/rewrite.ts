import { rewriteCommand } from "../../../bridge/rewrite.ts";
import { quoteWords, shellWords } from "../../../bridge/shell-words.ts";
import { GateError } from "../../../lib/errors.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS } from "../../flags.ts";

export const command: Command = {
  name: "bridge rewrite",
  description: "Print what a trusted command, as the agent sees it, is on the remote side",
  args: {
    command: { type: "positional", description: "the command line, as one word" },
    "evaluator-package": {
      type: "string",
      valueHint: "DIR",
      description: "folder of the evaluator package on this host",
    },
    tools: { type: "string", valueHint: "DIR", description: "folder of the evaluator's tools on this host" },
    ...OUTPUT_FLAGS,
  },
  examples: [
    ["neurarch-gate bridge rewrite 'python check.py --root /workspace'", "prints `python check.py --root .`"],
    [
      "neurarch-gate bridge rewrite --json 'sh /opt/vibesys-evaluator-package/check.sh'",
      "the words as a JSON list",
    ],
  ],
  run,
};

async function run({ values, switches, words }: ParsedWords): Promise<CommandOutput> {
  const split = shellWords(words[0]!);
  if (!split.ok) throw new GateError("input-invalid", `the command ${split.error.message}`, split.error.hint);
  const rewritten = rewriteCommand(split.value, {
    ...(values["evaluator-package"] === undefined ? {} : { evaluatorPackage: values["evaluator-package"] }),
    ...(values.tools === undefined ? {} : { tools: values.tools }),
  });
  if (!rewritten.ok)
    throw new GateError("input-invalid", `the command ${rewritten.error.message}`, rewritten.error.hint);
  const json = switches.json === true || values.output === "json";
  return { out: `${json ? JSON.stringify(rewritten.value) : quoteWords(rewritten.value)}\n`, exit: 0 };
}
