import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../acceptance/run.ts";
import { githubCommand, sarifErrors, scratch } from "./support.ts";

const folder = scratch();
afterAll(() => folder.remove());

const WAIVER =
  "waivers:\n  - rule: admission/request-does-not-fit\n    owner: ops\n    reason: a test\n    created: 2026-11-01\n";

/** A policy file, its exit code and where its findings stand: `level line:column rule`. */
const ROWS: readonly (readonly [name: string, text: string, exit: number, expected: readonly string[]])[] = [
  ["in order", `version: 1\n${WAIVER}`, 0, []],
  [
    "an expired waiver",
    `version: 1\n${WAIVER}    expires: 2026-11-02\n`,
    0,
    ["warning 3:5 policy/waiver-expired"],
  ],
  [
    "DOS line ends, an owner that is none",
    `version: 1\n${WAIVER.replace("owner: ops", "owner:")}`.replaceAll("\n", "\r\n"),
    4,
    ["error 3:5 policy/waiver-invalid"],
  ],
  [
    "a flow mapping",
    "version: 1\nwaivers: [{rule: x/y, owner: ops}, 7]\n",
    4,
    ["error 2:11 policy/waiver-invalid", "error 2:36 policy/waiver-invalid"],
  ],
  [
    "an unknown key behind others",
    `version: 1\n# \u00fc\nbudget: {max_params: 7B, max_parms: 8B}\n`,
    4,
    ["error 3:26 policy/file"],
  ],
  ["no YAML", "version: 1\nwaivers: [\n", 4, ["error 3:1 policy/file"]],
];

describe("policy check for code hosts: valid, at the place, and the same in both", () => {
  for (const [name, text, exit, expected] of ROWS) {
    test(name, async () => {
      writeFileSync(join(folder.path, "p.yml"), text);
      const of = (output: string) =>
        run(["policy", "check", "p.yml", "--today", "2026-11-25", "--output", output], { cwd: folder.path });
      const [sarif, github] = await Promise.all([of("sarif"), of("github")]);
      const log = JSON.parse(sarif.out);
      expect([sarif.exit, github.exit, sarifErrors(log)]).toEqual([exit, exit, []]);
      const spots = log.runs[0].results.map((one: never) => {
        const { level, ruleId, locations } = one as {
          level: string;
          ruleId: string;
          locations: { physicalLocation: { region: { startLine: number; startColumn: number } } }[];
        };
        const { startLine, startColumn } = locations[0]!.physicalLocation.region;
        return `${level} ${startLine}:${startColumn} ${ruleId}`;
      });
      expect(spots).toEqual([...expected]);
      const lines = github.out.split("\n").filter((line) => line !== "");
      expect(lines.map((line) => Number(githubCommand(line)!.properties.line))).toEqual(
        expected.map((spot) => Number(/ (\d+):/.exec(spot)![1])),
      );
    });
  }
});
