import type { LocatedFinding } from "./findings.ts";
import { escapedMarkup } from "./markup.ts";
import type { Report, ReportCase } from "./reports.ts";
import { printable } from "./text.ts";

/**
 * Jobs as a JUnit report, which CI systems count and list: a case a candidate. A refusal is a failure, what was not
 * judged is skipped, and a warning is the case's output (with `failOnWarn` a failure). No times: nothing is run.
 */
export function junitReport({ file, cases, failOnWarn }: Report): string {
  const kinds = cases.map((one) => kindOf(one, failOnWarn));
  const count = (kind: string) => kinds.filter((one) => one === kind).length;
  const suite = attributes({ name: file ?? "neurarch-gate" });
  const counts = `tests="${cases.length}" failures="${count("failure")}" errors="${count("error")}"`;
  const body = cases.map((one, index) => caseElement(one, kinds[index]!, file)).join("");
  return (
    `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="neurarch-gate" ${counts}>\n` +
    `  <testsuite ${suite} ${counts} skipped="${count("skipped")}" time="0">\n${body}  </testsuite>\n</testsuites>\n`
  );
}

type Kind = "passed" | "failure" | "skipped" | "error";

function kindOf({ finding, broken }: ReportCase, failOnWarn: boolean): Kind {
  if (broken === true) return "error";
  switch (finding?.level) {
    case "error":
      return "failure";
    case "warning":
      return failOnWarn ? "failure" : "passed";
    case "note":
      return "skipped";
    default:
      return "passed";
  }
}

function caseElement({ task, label, finding, notes }: ReportCase, kind: Kind, file: string | null): string {
  const name = [task, label].filter((part) => part !== null && part !== "").join(": ") || "job";
  const line = finding?.place?.line;
  const head = attributes({
    name,
    classname: file ?? "neurarch-gate",
    ...(file === null ? {} : { file }),
    ...(file === null || line === undefined ? {} : { line: String(line) }),
  });
  const said = notes.map(({ message }) => message);
  if (kind === "passed" && finding !== null) said.unshift(finding.message);
  const out = said.length === 0 ? "" : `      <system-out>${escaped(said.join("\n"))}</system-out>\n`;
  const main = finding === null || kind === "passed" ? "" : outcome(kind, finding);
  return main + out === ""
    ? `    <testcase ${head} time="0"/>\n`
    : `    <testcase ${head} time="0">\n${main}${out}    </testcase>\n`;
}

function outcome(kind: Exclude<Kind, "passed">, { rule, message, file, place }: LocatedFinding): string {
  if (kind === "skipped") return `      <skipped ${attributes({ message })}/>\n`;
  const at = file === null || place === null ? "" : `${file}:${place.line}:${place.column}: `;
  return `      <${kind} ${attributes({ type: rule, message })}>${escaped(at + message)}</${kind}>\n`;
}

function attributes(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escaped(printable(value)).replaceAll('"', "&quot;")}"`)
    .join(" ");
}

/** A text in XML 1.0: what it has no characters for is gone, whatever it is escaped as. */
function escaped(text: string): string {
  return escapedMarkup(text.split("\n").map(printable).join("\n"));
}
