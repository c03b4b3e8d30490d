import { terminalColumns } from "../../../host/env.ts";
import { GateError } from "../../../lib/errors.ts";
import { misspelledRule, RULE_IDS } from "../../../policy/rules.ts";
import { explainRule, rulesDocument } from "../../../render/policy-rules.ts";
import type { RuleId } from "../../../verdict/types.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS } from "../../flags.ts";

export const command: Command = {
  name: "policy explain",
  description: "Say what a rule means, when it fires and how to waive it; without a rule, all of them",
  args: {
    rule: { type: "positional", required: false, description: "the id that a verdict shows" },
    ...OUTPUT_FLAGS,
  },
  completes: { rule: RULE_IDS },
  examples: [["neurarch-gate policy explain admission/request-does-not-fit", "one rule"]],
  run,
};

async function run({ values, switches, words }: ParsedWords): Promise<CommandOutput> {
  const asked = words[0];
  const ids = asked === undefined ? RULE_IDS : [ruleNamed(asked)];
  if (switches.json === true || values.output === "json")
    return { out: `${JSON.stringify(rulesDocument(ids))}\n`, exit: 0 };
  const width = terminalColumns() ?? undefined;
  return { out: ids.map((id) => explainRule(id, width)).join("\n"), exit: 0 };
}

function ruleNamed(asked: string): RuleId {
  const known = RULE_IDS.find((id) => id === asked);
  if (known !== undefined) return known;
  const near = misspelledRule(asked)?.near ?? null;
  throw new GateError(
    "usage",
    `there is no rule \`${asked}\``,
    near === null ? `The rules are ${RULE_IDS.join(", ")}.` : `Did you mean \`${near}\`?`,
  );
}
