import type { FileProblem } from "../policy/types.ts";
import type { RuleId } from "../verdict/types.ts";
import type { Checked } from "./policy.ts";
import { RULE_TEXTS } from "./policy-rules.ts";
import { printable } from "./text.ts";

/** What is about the file as a whole, or about a key that is not known, goes by this id. */
const FILE_RULE = "policy/file";

/** `policy check` as SARIF 2.1.0, which code hosts show beside the lines of a change. */
export function sarifCheck({ file, problems }: Checked, version: string) {
  const ids = [...new Set(problems.map(ruleOf))].sort();
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "neurarch-gate",
            version,
            rules: ids.map((id) => ({ id, shortDescription: { text: describe(id) } })),
          },
        },
        results: problems.map((problem) => ({
          ruleId: ruleOf(problem),
          ruleIndex: ids.indexOf(ruleOf(problem)),
          level: problem.severity,
          message: { text: textOf(problem) },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: uriOf(file) },
                // A result without a line is not shown: the file's first one stands for all of it.
                region: { startLine: problem.place?.line ?? 1, startColumn: problem.place?.column ?? 1 },
              },
            },
          ],
        })),
      },
    ],
  };
}

function ruleOf({ rule }: FileProblem): string {
  return rule ?? FILE_RULE;
}

function describe(id: string): string {
  return id === FILE_RULE
    ? "A part of the policy file does not do what it was written for."
    : RULE_TEXTS[id as RuleId].means;
}

function textOf({ message, fix }: FileProblem): string {
  const text = `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`;
  return printable(fix === null ? text : `${text} ${fix}`);
}

/** A path as a URI reference, its parts escaped. */
function uriOf(path: string): string {
  const parts = path.split("/").map(encodeURIComponent).join("/");
  return path.startsWith("/") ? `file://${parts}` : parts;
}
