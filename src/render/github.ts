import type { LocatedFinding } from "./findings.ts";
import { printable } from "./text.ts";

const COMMANDS = { error: "error", warning: "warning", note: "notice" } as const;

/**
 * Findings as commands of a GitHub workflow: they show beside the lines of a pull request. What stands in a value is
 * escaped as the runner reads it back: `%`, CR and LF, in a property also `:` and `,`.
 */
export function githubAnnotations(findings: readonly LocatedFinding[]): string {
  return findings
    .map(({ level, rule, message, file, place }) => {
      const properties = [
        ...(file === null ? [] : [`file=${property(printable(file))}`]),
        ...(file === null || place === null ? [] : [`line=${place.line}`, `col=${place.column}`]),
        ...(rule === "" ? [] : [`title=${property(printable(rule))}`]),
      ].join(",");
      return `::${COMMANDS[level]}${properties === "" ? "" : ` ${properties}`}::${data(printable(message))}\n`;
    })
    .join("");
}

function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
