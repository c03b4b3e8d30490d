import type { LocatedFinding } from "./findings.ts";
import { findingsIn, type Report } from "./reports.ts";
import { ruleText } from "./rule-text.ts";

/** What a rule of ours is about, for the table of rules that a SARIF viewer shows. */
export type RuleText = (id: string) => string;

/**
 * Findings as a SARIF 2.1.0 log of one run, which code hosts show beside the lines of a change. With `failure` the
 * run is told as one that could not be carried out.
 */
export function sarifLog(
  findings: readonly LocatedFinding[],
  told: { readonly version: string; readonly textOf: RuleText; readonly failure?: string },
): unknown {
  const ids = [...new Set(findings.map(({ rule }) => rule))].sort();
  const { version, textOf, failure } = told;
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "neurarch-gate",
            version,
            rules: ids.map((id) => ({ id, shortDescription: { text: textOf(id) } })),
          },
        },
        ...(failure === undefined
          ? {}
          : {
              invocations: [
                {
                  executionSuccessful: false,
                  toolExecutionNotifications: [{ level: "error", message: { text: failure } }],
                },
              ],
            }),
        columnKind: "utf16CodeUnits",
        results: findings.map(({ rule, level, message, file, place }) => ({
          ruleId: rule,
          ruleIndex: ids.indexOf(rule),
          level,
          message: { text: message },
          ...(file === null
            ? {}
            : {
                locations: [
                  {
                    physicalLocation: {
                      artifactLocation: { uri: uriOf(file) },
                      // A result without a line is not shown: the file's first one stands for all of it.
                      region: { startLine: place?.line ?? 1, startColumn: place?.column ?? 1 },
                    },
                  },
                ],
              }),
        })),
      },
    ],
  };
}

/** A judged file as SARIF, for `judge --output sarif`. */
export function sarifReport(report: Report): string {
  const { version, failure } = report;
  const told = { version, textOf: ruleText, ...(failure === null ? {} : { failure }) };
  return `${JSON.stringify(sarifLog(findingsIn(report), told))}\n`;
}

/** A path as a URI reference, its parts escaped; a whole path as a `file:` URI. */
function uriOf(path: string): string {
  const parts = path.toWellFormed().split("/").map(encodeURIComponent).join("/");
  return path.startsWith("/") ? `file://${parts}` : parts;
}
