import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { run, shown } from "./run.ts";

/** Every example with the command that judges it; its exact output is kept as a snapshot. */
const JUDGED: readonly (readonly [file: string, args: readonly string[]])[] = readdirSync(
  `${import.meta.dir}/../../examples`,
)
  .filter((name) => name.endsWith(".sky.yaml") || name.endsWith(".sbatch"))
  .sort()
  .flatMap((name): (readonly [string, readonly string[]])[] => {
    const mode = name.endsWith(".sbatch") ? "--slurm" : "--skypilot";
    return [[name, ["judge", mode, `examples/${name}`]]];
  });

describe("examples", () => {
  test("there are pairs for both schedulers", () => {
    const names = JUDGED.map(([name]) => name.replace(/\.(sky\.yaml|sbatch)$/, ""));
    for (const name of new Set(names)) expect(names.filter((other) => other === name)).toHaveLength(2);
    expect(new Set(names).size).toBeGreaterThanOrEqual(4);
  });

  for (const [name, args] of JUDGED) {
    test(name, async () => {
      expect(shown(await run(args))).toMatchSnapshot();
    });
  }

  test("a pair gets the same figures and, but for where things are written, the same sentence", async () => {
    for (const name of new Set(JUDGED.map(([file]) => file.replace(/\.(sky\.yaml|sbatch)$/, "")))) {
      const sky = JSON.parse((await run(["judge", "--skypilot", `examples/${name}.sky.yaml`, "--json"])).out);
      const slurm = JSON.parse((await run(["judge", "--slurm", `examples/${name}.sbatch`, "--json"])).out);
      for (const key of [
        "decision",
        "needGb",
        "peakGb",
        "fit",
        "largestBatch",
        "smallestRequest",
        "stateGb",
        "costUsd",
      ]) {
        expect([name, key, slurm.verdicts[0][key]]).toEqual([name, key, sky.verdicts[0][key]]);
      }
      const same = (message: string, label: string, field: string) =>
        message.replaceAll(label, "LABEL").replaceAll(field, "FIELD");
      const [a, b] = [sky, slurm].map((document) => document.verdicts[0].request.label);
      const field = /Change (--[a-z-]+)/.exec(slurm.messages[0] ?? "")?.[1] ?? "--gres";
      expect(slurm.messages.map((text: string) => same(text, b, field))).toEqual(
        sky.messages.map((text: string) => same(text, a, "`accelerators:`")),
      );
    }
  });

  test("a repository's policy file: nothing wrong with it, and its waiver holds where it says", async () => {
    const file = "examples/neurarch.yml";
    const checked = await run(["policy", "check", file, "--today", "2026-11-25"]);
    expect([checked.exit, checked.out]).toEqual([
      0,
      `${file}: 0 errors, 0 warnings; 1 waiver in force on 2026-11-25.\n` +
        "  admission/request-does-not-fit by @ml-infra until 2026-12-20, model Qwen/Qwen3-8B, " +
        "path finetune-qwen3-8b.*: exercises the out-of-memory handler\n",
    ]);
    // By real time it is over one day: the job is refused then, and told why.
    const today = new Date().toISOString().slice(0, 10);
    const { exit, out } = await run([
      "judge",
      "--slurm",
      "examples/finetune-qwen3-8b.sbatch",
      "--policy-file",
      file,
    ]);
    const told = out.replace(/\s+/g, " ");
    if (today >= "2026-11-21" && today <= "2026-12-19") {
      expect([exit, told]).toEqual([
        0,
        expect.stringContaining("waived in neurarch.yml by @ml-infra until 2026-12-20"),
      ]);
    } else if (today > "2026-12-21") {
      expect([exit, told]).toEqual([1, expect.stringContaining("expired on 2026-12-20.")]);
    }
    const budget = await run([
      "judge",
      "--model",
      "Qwen/Qwen3-0.6B",
      "--request",
      "T4:1",
      "--batch",
      "1",
      "--policy-file",
      file,
    ]);
    expect([budget.exit, budget.out.includes("T4 is not an allowed card")]).toEqual([1, true]);
  });

  test("a site's map: its own types only, suggestions in its spelling", async () => {
    const job = [
      "slurm",
      "--script",
      "examples/finetune-qwen3-8b.sbatch",
      "--gpu-map",
      "examples/gpu-map.json",
    ];
    expect(shown(await run([...job, "--gres", "gpu:a10g:1"]))).toMatchSnapshot();
    expect(shown(await run([...job, "--gres", "gpu:v100:1"]))).toMatchSnapshot();
  });

  test("the first example as JSON", async () => {
    const { out, exit } = await run(["judge", "--skypilot", "examples/finetune-qwen3-8b.sky.yaml", "--json"]);
    expect(exit).toBe(1);
    const document = JSON.parse(out);
    expect(document.sizing.params).toBe(8_190_735_360);
    expect(document.sizing.peakBytes / 295e9).toBeCloseTo(1, 2);
    const [verdict] = document.verdicts;
    expect(verdict).toMatchObject({
      decision: "refuse",
      fit: "under",
      largestBatch: null,
      smallestCard: null,
      smallestRequest: { accelerator: "H200", count: 4 },
      alternatives: [],
    });
    expect(verdict.stateGb).toBeCloseTo((8_190_735_360 * 16) / 1e9, 1);
    expect(document).toMatchSnapshot();
  });

  test("a refusal that one key would turn into a fit ends with that key", async () => {
    const { out } = await run("judge --model Qwen/Qwen3-8B --batch 4 --request H200:2 --json".split(" "));
    const [verdict] = JSON.parse(out).verdicts;
    expect(verdict.decision).toBe("refuse");
    expect(verdict.alternatives[0].change).toBe("checkpointing=full");
    expect(verdict.message).toEndWith("With checkpointing=full it needs 171.3 GB.");
  });
});
