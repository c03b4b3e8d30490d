import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPORTS } from "../../src/render/reports.ts";
import { run } from "../acceptance/run.ts";
import { githubCommand, scratch } from "./support.ts";

const folder = scratch();
afterAll(() => folder.remove());

/** A refused script: where its finding stands, and how each output is read for that place. */
const SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n#NEURARCH model=Qwen/Qwen3-8B batch=8\n";

const LINES: Readonly<Record<string, (text: string) => number>> = {
  sarif: (text) => JSON.parse(text).runs[0].results[0].locations[0].physicalLocation.region.startLine,
  github: (text) => Number(githubCommand(text.split("\n")[0]!)!.properties.line),
  junit: (text) => Number(/<testcase [^>]* line="(\d+)"/.exec(text)![1]),
};

test.each(Object.keys(REPORTS))("%s: the line of the request, and the exit of a refusal", async (name) => {
  writeFileSync(join(folder.path, "a.sbatch"), SCRIPT);
  const args = ["judge", "--slurm", "a.sbatch", "--output", name];
  const { exit, out, err } = await run(args, { cwd: folder.path });
  expect([exit, err, LINES[name]!(out)]).toEqual([1, "", 2]);
});
