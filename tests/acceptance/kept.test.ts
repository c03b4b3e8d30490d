import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freshFolder } from "../sources/support.ts";
import { run as gate } from "./run.ts";

const SUBMIT = ["slurm", "--script", "examples/finetune-qwen3-8b.sbatch", "--gres", "gpu:a10g:1"];

/** What is kept below a home, with the place of each file on its disk: another place is another writing. */
function keptBelow(home: string) {
  const folder = join(home, ".cache", "neurarch-gate");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).map((name) => ({
    path: join(folder, name),
    inode: statSync(join(folder, name)).ino,
  }));
}

describe("a loop of submits", () => {
  test("sizes the model once", async () => {
    const home = freshFolder();
    const env = { HOME: home };
    const first = await gate(SUBMIT, { env });
    const [kept, ...more] = keptBelow(home);
    expect(more).toEqual([]);
    const again = await Promise.all(Array.from({ length: 49 }, () => gate(SUBMIT, { env })));
    for (const { out } of again) expect(out).toBe(first.out);
    expect(keptBelow(home)).toEqual([kept!]);
    // They read it: a figure that is changed there is the figure they tell.
    writeFileSync(
      kept!.path,
      readFileSync(kept!.path, "utf8").replace(/"stateBytes":\d+/, '"stateBytes":99000000000'),
    );
    expect((await gate(SUBMIT, { env })).out).toContain("state alone need 113.8 GB");
  });

  test("that all come first each tell the same", async () => {
    const env = { HOME: freshFolder() };
    const outs = await Promise.all(Array.from({ length: 16 }, () => gate(SUBMIT, { env })));
    expect(new Set(outs.map(({ out }) => out)).size).toBe(1);
    expect(keptBelow(env.HOME).length).toBe(1);
  });

  test("adds what another request asks of the same model", async () => {
    const home = freshFolder();
    const env = { HOME: home };
    const more = [...SUBMIT.slice(0, -1), "gpu:h100:2"];
    await gate(SUBMIT, { env });
    const before = readFileSync(keptBelow(home)[0]!.path, "utf8");
    const noted = await gate(more, { env });
    expect(keptBelow(home).length).toBe(1);
    expect(readFileSync(keptBelow(home)[0]!.path, "utf8").length).toBeGreaterThan(before.length);
    const alone = await gate(more, { env: { HOME: freshFolder() } });
    expect(noted.out).toBe(alone.out);
    expect((await gate(more, { env })).out).toBe(alone.out);
  });

  test("makes no home for a user that has none", async () => {
    const home = join(freshFolder(), "nobody");
    const { out } = await gate(SUBMIT, { env: { HOME: home } });
    expect(out).toStartWith("decision=warn\n");
    expect(existsSync(home)).toBe(false);
  });
});
