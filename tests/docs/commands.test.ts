import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { luaWithSettings } from "../../src/slurm/lua.ts";
import { slurmIsHere } from "../slurm/cluster.ts";
import { allBlocks, type Block, PAGES } from "./blocks.ts";
import { Sandbox } from "./sandbox.ts";

/*
 * Every command of the README and the pages is run as it stands there, in the order of the page, and what is shown of its
 * output has to be its output. A block that needs more than a test has says so above it (`<!-- needs: ... -->`); its
 * syntax is checked here, and its flags in flags.test.ts.
 */

const CI = process.env.CI === "true";
const sky = process.env.NEURARCH_TEST_SKY_PYTHON !== undefined;

const SHELL = ["sh", "bash", "console"];
const BLOCKS = allBlocks().filter(({ language }) => SHELL.includes(language));
/** Pages whose blocks are carried out by tests of their own: in a copy of the project, over a bridge, on a release. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "CONTRIBUTING.md": "contributing.test.ts",
  "docs/remote-evaluation.md": "../acceptance/remote-evaluation.test.ts",
  "docs/install.md": "../packaging/dist.test.ts",
};

const nameOf = ({ line, text }: Block) => `line ${line}: ${text.split("\n")[0]}`;
const isFragment = ({ text }: Block) => text.split("\n").every((line) => line === "" || line.startsWith("#"));

/** A block of `$ command` lines, each with the output that follows it. */
function sessions(block: Block): { readonly command: string; readonly shown: string }[] {
  return block.text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const end = part.indexOf("\n");
      return { command: part.slice(0, end), shown: part.slice(end + 1) };
    });
}

/** Equal but for a job's number, the blank line that ends a session, and what `...` leaves out of a line. */
function matches(shown: string, printed: string): boolean {
  const plain = (text: string) => text.trimEnd().replace(/(submitted batch job) \d+/gi, "$1 N");
  const pattern = plain(shown)
    .split(" ... ")
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join(" [^\\n]* ");
  return new RegExp(`^${pattern}$`).test(plain(printed));
}

test("what is shown is compared word for word, but for numbers of jobs and what is left out", () => {
  expect(matches("Submitted batch job 1042\n", "Submitted batch job 3\n")).toBe(true);
  expect(matches("a ... z\n", "a b\nz\n")).toBe(false);
  expect(matches("a ... z\n", "a b c z\n")).toBe(true);
  expect(matches("needs 1.0 GB", "needs 1x0 GB")).toBe(false);
  expect(matches("one\n", "one\ntwo\n")).toBe(false);
});

test("a mark above a block is one that is known", () => {
  const marks = allBlocks().flatMap(({ mark, page, line }) =>
    mark === null ? [] : [`${page}:${line} ${mark}`],
  );
  const known =
    /^(needs: .+|on: (slurm|skypilot)(, (its own|mode (warn|reject)))?(, anew)?(, serves)?|serves)$/;
  expect(marks.filter((mark) => !known.test(mark.replace(/^\S+ /, "")))).toEqual([]);
});

test("blocks that other tests carry out are shell, and those tests are there", async () => {
  for (const [page, file] of Object.entries(ELSEWHERE)) {
    const name = page.split("/").at(-1)!;
    expect([page, (await Bun.file(join(import.meta.dir, file)).text()).includes(name)]).toEqual([page, true]);
    for (const { text, line } of BLOCKS.filter((block) => block.page === page)) {
      const { exitCode, stderr } = Bun.spawnSync(["bash", "-n"], { stdin: Buffer.from(text) });
      expect([page, line, exitCode, stderr.toString()]).toEqual([page, line, 0, ""]);
    }
  }
});

for (const page of PAGES.filter((one) => !Object.hasOwn(ELSEWHERE, one))) {
  const blocks = BLOCKS.filter((block) => block.page === page);
  if (blocks.length === 0) continue;
  const needsSlurm = blocks.some(({ mark }) => mark?.startsWith("on: slurm") === true);
  const needsSky = blocks.some(({ mark }) => mark?.startsWith("on: skypilot") === true);
  // Under CI a host that is missing is an error, elsewhere the page is left out.
  describe.skipIf(!CI && ((needsSlurm && !slurmIsHere) || (needsSky && !sky)))(page, () => {
    let box: Sandbox;
    beforeAll(() => {
      box = new Sandbox();
      if (needsSlurm) box.cluster;
    }, 120_000);
    afterAll(() => box.remove(), 60_000);

    for (const block of blocks) {
      test(nameOf(block), async () => {
        const { mark, text } = block;
        if (isFragment(block)) return await fragment(box, text);
        if (block.language === "console") return await session(box, block);
        if (mark?.startsWith("needs:") === true) {
          const { exitCode, stderr } = Bun.spawnSync(["bash", "-n"], { stdin: Buffer.from(text) });
          expect([exitCode, stderr.toString()]).toEqual([0, ""]);
          return;
        }
        if (mark?.includes("anew") === true) box.anew();
        const ended = mark?.endsWith("serves") === true ? await box.serving(text) : await box.run(text);
        if (ended.exit !== 0) throw new Error(`ended with ${ended.exit}:\n${ended.text}`);
        if (mark === "on: slurm, its own") {
          expect(ended.text).toMatch(/^sbatch: error: lua: Neurarch: Qwen\/Qwen3-8B needs 339\.4 GB/m);
          expect(ended.text).toMatch(/^nothing was queued\n(?:.*\n)?Submitted batch job \d+$/m);
        }
      }, 120_000);
    }
  });
}

/** Header lines of a batch script: judged as one, every fact of it can be read. */
async function fragment(box: Sandbox, text: string): Promise<void> {
  writeFileSync(join(box.work, "fragment.sbatch"), text.startsWith("#!") ? text : `#!/bin/sh\n${text}`);
  const { exit, text: printed } = await box.run("neurarch-gate judge --slurm fragment.sbatch --json || true");
  const { decision, messages } = JSON.parse(printed);
  expect([
    exit,
    ["allow", "warn", "refuse"].includes(decision),
    messages.join(" ").includes("cannot be read"),
  ]).toEqual([0, true, false]);
}

/** Commands with the output that the page shows; a block that shows none is compared with nothing, and has to succeed. */
async function session(box: Sandbox, block: Block): Promise<void> {
  const all = sessions(block);
  expect(all.length).toBeGreaterThan(0);
  const mode = /mode (warn|reject)$/.exec(block.mark ?? "")?.[1];
  if (mode !== undefined) {
    const lua = await Bun.file(join(import.meta.dir, "../../lua/cli_filter.lua")).text();
    const binary = join(box.work, "dist/neurarch-gate");
    box.cluster.installText(luaWithSettings(lua, { binary, mode: mode as "warn" | "reject" }));
    const conf = join(box.cluster.folder, "etc/slurm.conf");
    const text = await Bun.file(conf).text();
    if (!text.includes("CliFilterPlugins")) writeFileSync(conf, `${text}CliFilterPlugins=cli_filter/lua\n`);
  }
  for (const { command, shown } of all) {
    const { text } = await box.run(command);
    if (!matches(shown, text)) expect(text).toBe(shown);
  }
}
