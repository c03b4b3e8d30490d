import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-rewrite-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const task = (accelerators: string, batch: number) => `# what I run
name: mine     # a name
resources:
  accelerators: ${accelerators}   # cards
envs: {NEURARCH_MODEL: Qwen/Qwen3-0.6B, NEURARCH_BATCH: ${batch}, NEURARCH_SEQ_LEN: 2048}
run: |
  echo "accelerators: A100-80GB:8"
`;

async function rewritten(text: string) {
  const path = join(folder, "task.yaml");
  writeFileSync(path, text);
  return run(["judge", "--skypilot", path, "--rewrite"]);
}

describe("judge --rewrite", () => {
  const rows: readonly (readonly [
    name: string,
    accelerators: string,
    batch: number,
    becomes: string | null,
  ])[] = [
    ["a single card far too large", "H200:1", 1, "L4:1"],
    ["a mapping", "{H200: 1}", 1, "{L4: 1}"],
    ["what fits stays", "L4:1", 1, null],
    ["eight cards", "A100-80GB:8", 1, "H200:1"],
  ];
  for (const [name, accelerators, batch, becomes] of rows) {
    test(name, async () => {
      const before = task(accelerators, batch);
      const { out, exit } = await rewritten(before);
      expect(exit).toBe(0);
      const unmarked = out.replace(/^# neurarch-gate: .*\n/, "");
      expect(unmarked).toBe(
        becomes === null
          ? before
          : before.replace(`accelerators: ${accelerators} `, `accelerators: ${becomes} `),
      );
      // Judging the result again changes nothing.
      expect((await rewritten(out)).out).toBe(out);
    });
  }

  test("the result of a changed task is judged afresh", async () => {
    const { out } = await rewritten(task("A100-80GB:8", 1));
    const changed = out
      .replace("NEURARCH_SEQ_LEN: 2048", "NEURARCH_SEQ_LEN: 128")
      .replace("NEURARCH_BATCH: 1", "NEURARCH_BATCH: 2");
    expect((await rewritten(changed)).out).not.toBe(changed);
  });

  test("what does not fit stays, and is refused", async () => {
    const before = task("T4:1", 64);
    const { out, exit, err } = await rewritten(before);
    expect({ out, exit }).toEqual({ out: before, exit: 1 });
    expect(err).toStartWith("Neurarch: Qwen/Qwen3-0.6B needs ");
  });

  test("it needs a task file and goes without --json", async () => {
    expect((await run(["judge", "--model", "gpt2", "--request", "T4:1", "--rewrite"])).err).toBe(
      "neurarch-gate judge: --rewrite works on a task file only. Give it with --skypilot FILE.\n",
    );
    const path = join(folder, "task.yaml");
    expect((await run(["judge", "--skypilot", path, "--rewrite", "--json"])).exit).toBe(2);
  });
});
