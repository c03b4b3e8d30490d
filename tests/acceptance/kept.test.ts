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

/** Changes what is kept; `summed` = its sum is made to agree, as if it had been written so. */
function rewrite(path: string, change: (value: string) => string, summed: boolean): void {
  const entry = JSON.parse(readFileSync(path, "utf8"));
  const value = change(JSON.stringify(entry.value));
  const sum = summed ? new Bun.CryptoHasher("sha256").update(value).digest("hex") : entry.sum;
  writeFileSync(path, JSON.stringify({ ...entry, sum, value: 0 }).replace(/0}$/, `${value}}`));
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
    // They read it: a figure that is changed there, and its sum with it, is the figure they tell.
    rewrite(kept!.path, (text) => text.replace(/"stateBytes":\d+/, '"stateBytes":99000000000'), true);
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

describe("what is kept and was spoiled changes nothing", () => {
  const MOMENTS = /"moments":\[.*?\]\]/;
  const rows: readonly (readonly [name: string, spoil: (path: string) => void])[] = [
    [
      "a moment that is none",
      (path) => rewrite(path, (text) => text.replace(MOMENTS, '"moments":[null]'), false),
    ],
    ["no moments", (path) => rewrite(path, (text) => text.replace(MOMENTS, '"moments":[]'), false)],
    [
      "words for numbers",
      (path) => rewrite(path, (text) => text.replace(MOMENTS, '"moments":[["a","b","1","2"]]'), false),
    ],
    [
      "another figure",
      (path) => rewrite(path, (text) => text.replace(/"stateBytes":\d/, '"stateBytes":9'), false),
    ],
    ["a negative figure", (path) => rewrite(path, (text) => text.replace(/,(\d{12})/, ",-$1"), false)],
    ["a figure beyond all bounds", (path) => rewrite(path, (text) => text.replace(/\d{12}/, "1e300"), false)],
    [
      "a recipe without a sizing",
      (path) =>
        rewrite(path, (text) => text.replace(/"byRecipe":\{"[^}]*\}":/, '$&{"moments":[]},"x":'), false),
    ],
    [
      "a key of objects",
      (path) =>
        rewrite(
          path,
          (text) => text.replace('"byRecipe":{', '"byRecipe":{"__proto__":{"moments":[1]},'),
          false,
        ),
    ],
    ["not a number", (path) => rewrite(path, (text) => text.replace(/"params":\d+/, '"params":NaN'), false)],
    ["cut", (path) => writeFileSync(path, readFileSync(path, "utf8").slice(0, 900))],
    ["garbage", (path) => writeFileSync(path, "\0".repeat(3_999_999))],
    ["brackets without end", (path) => writeFileSync(path, "[".repeat(1_000_000))],
    ["a FIFO", (path) => void Bun.spawnSync(["sh", "-c", 'rm "$0"; mkfifo -m 600 "$0"', path])],
    ["a folder", (path) => void Bun.spawnSync(["sh", "-c", 'rm "$0"; mkdir "$0"', path])],
  ];
  for (const [name, spoil] of rows) {
    test(name, async () => {
      const env = { HOME: freshFolder() };
      const first = await gate(SUBMIT, { env });
      const { path } = keptBelow(env.HOME)[0]!;
      const before = readFileSync(path, "utf8");
      spoil(path);
      expect(statSync(path).isFile() && readFileSync(path, "utf8") === before).toBe(false);
      expect(await gate(SUBMIT, { env })).toEqual(first);
    });
  }
});
