import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv4 from "ajv-draft-04";
import addFormats from "ajv-formats";
import { ROOT } from "../acceptance/run.ts";

const SCHEMAS = join(ROOT, "tests/fixtures/schemas");

const ajv = new Ajv4({ allErrors: true });
addFormats(ajv as never);
const validSarif = ajv.compile(JSON.parse(readFileSync(join(SCHEMAS, "sarif-2.1.0.json"), "utf8")));

/** What the published schema of SARIF 2.1.0 finds wrong with a document. */
export function sarifErrors(document: unknown): string[] {
  validSarif(document);
  return (validSarif.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** What xmllint finds wrong with a report: not well formed, or not as CI systems read JUnit. */
export function junitErrors(text: string): string {
  const { exitCode, stderr } = Bun.spawnSync(
    ["xmllint", "--noout", "--nonet", "--schema", join(SCHEMAS, "junit.xsd"), "-"],
    { stdin: new TextEncoder().encode(text), stdout: "pipe", stderr: "pipe" },
  );
  return exitCode === 0 ? "" : `${exitCode} ${stderr}`;
}

/** What a GitHub runner makes of a line of a log: its command, as the runner's own parser reads it back. */
export function githubCommand(line: string): {
  readonly command: string;
  readonly properties: Readonly<Record<string, string>>;
  readonly data: string;
} | null {
  // The runner trims blanks in front, takes `::` as the beginning and the next `::` as the end of the head.
  const text = line.trimStart();
  if (!text.startsWith("::")) return null;
  const end = text.indexOf("::", 2);
  if (end < 0) return null;
  const head = text.slice(2, end);
  const space = head.indexOf(" ");
  const command = space < 0 ? head : head.slice(0, space);
  const unescaped = (value: string, more: readonly (readonly [string, string])[] = []) =>
    [["%0D", "\r"] as const, ["%0A", "\n"] as const, ...more, ["%25", "%"] as const].reduce(
      (one, [from, to]) => one.replaceAll(from, to),
      value,
    );
  const properties = Object.fromEntries(
    (space < 0 ? "" : head.slice(space + 1))
      .split(",")
      .filter((pair) => pair.includes("="))
      .map((pair) => {
        const at = pair.indexOf("=");
        const value = unescaped(pair.slice(at + 1), [
          ["%3A", ":"],
          ["%2C", ","],
        ]);
        return [pair.slice(0, at).trim(), value];
      }),
  );
  return { command, properties, data: unescaped(text.slice(end + 2)) };
}

/** A folder for one test, and what takes it away. */
export function scratch(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "neurarch-outputs-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
