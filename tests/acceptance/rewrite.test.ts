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
      "neurarch-gate judge: --rewrite goes with --skypilot only. Leave it out, or judge with --skypilot.\n",
    );
    const path = join(folder, "task.yaml");
    expect((await run(["judge", "--skypilot", path, "--rewrite", "--json"])).exit).toBe(2);
  });
});

describe("what SkyPilot's own ways of asking bring", () => {
  const envs = 'envs: {NEURARCH_MODEL: Qwen/Qwen3-0.6B, NEURARCH_BATCH: "2"}\n';
  const settled: readonly (readonly [name: string, resources: string])[] = [
    ["a list", "{accelerators: [H200:8, A100:8]}"],
    ["a set with a candidate dropped", "{any_of: [{accelerators: T4:1}, {accelerators: H100:1}]}"],
    ["a mapping", "{accelerators: {H200: 8, A100-80GB: 8}}"],
  ];
  for (const [name, resources] of settled) {
    test(`a second pass changes nothing: ${name}`, async () => {
      const { out } = await rewritten(`resources: ${resources}\n${envs}`);
      expect((await rewritten(out)).out).toBe(out);
    });
  }

  const kept: readonly (readonly [name: string, resources: string, becomes: RegExp])[] = [
    ["a cloud whose cards nobody told us", "{infra: lambda, accelerators: H200:1}", /accelerators: H200:1/],
    ["fewer of the same card there", "{infra: lambda, accelerators: H200:8}", /accelerators: H200:[124]\}/],
    [
      "an instance type",
      "{cloud: gcp, instance_type: a3-ultragpu-8g, accelerators: H200:8}",
      /accelerators: H200:8/,
    ],
  ];
  for (const [name, resources, becomes] of kept) {
    test(`never to a card that the place may not have: ${name}`, async () => {
      const { out } = await rewritten(`resources: ${resources}\n${envs}`);
      expect(out).toMatch(becomes);
    });
  }

  test("--env and --env-file lie over the file", async () => {
    const path = join(folder, "env.yaml");
    writeFileSync(
      path,
      "resources: {accelerators: H100:1}\nenvs: {NEURARCH_MODEL: gpt2, NEURARCH_BATCH: 2}\n",
    );
    writeFileSync(join(folder, "env"), "NEURARCH_BATCH=64\n");
    const ask = async (...args: string[]) =>
      JSON.parse((await run(["judge", "--skypilot", path, "--json", ...args])).out);
    expect((await ask()).sizing.batch).toBe(2);
    expect(await ask("--env", "NEURARCH_BATCH=64")).toMatchObject({
      decision: "refuse",
      sizing: { batch: 64 },
    });
    expect(await ask("--env-file", join(folder, "env"))).toMatchObject({ sizing: { batch: 64 } });
    expect((await ask("--env", "NEURARCH_MODEL=Qwen/Qwen3-8B")).sizing.model).toBe("Qwen/Qwen3-8B");
    expect((await ask("--env", "NEURARCH_BATCH=x")).messages[0]).toBe(
      'Neurarch: NEURARCH_BATCH: "x" is not a whole number from 1 to 1,000,000; write NEURARCH_BATCH=8, say (in YAML NEURARCH_BATCH: "8", with the quotes). Correct it and resubmit.',
    );
  });

  test("a task that cannot be rewritten where it stands comes back as it is, with the reason", async () => {
    const before = `resources:\n  accelerators: >-\n    H200:1\n${envs}`;
    const { out, err, exit } = await rewritten(before);
    expect({ out, exit }).toEqual({ out: before, exit: 0 });
    expect(err).toEndWith("Change `accelerators:` by hand.\n");
  });

  test("beside a candidate that cannot be judged nothing is rewritten, and nothing is told as if it were", async () => {
    const before = `resources: {accelerators: [H200:8, FOO:1]}\n${envs}`;
    const { out, err, exit } = await rewritten(before);
    expect({ out, exit }).toEqual({ out: before, exit: 3 });
    expect(err).not.toContain("rewrote");
  });
});

test("a sequence longer than the model's learned positions is told whatever the verdict", async () => {
  const { out } = await run("judge --model gpt2 --request T4:1 --batch 1 --seq-len 4096 --json".split(" "));
  expect(JSON.parse(out).messages).toEqual([
    "Neurarch: The model has 1024 learned positions; 4096 tokens do not run.",
  ]);
});
