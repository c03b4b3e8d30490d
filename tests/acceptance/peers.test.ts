import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HELPER, install, needed, OFFLINE, python3, skyPython, VENV } from "./peer-packages.ts";
import { BINARY, run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-peers-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => {
  if (python3 !== null) install();
}, 300_000);

/** Peak in GB at a batch, as the straight line through our own batches 1 and 2 has it. */
async function lineAt(model: string, facts: readonly string[], batch: number): Promise<number> {
  const peak = async (samples: number) => {
    const ran = await run(["size", model, ...facts, "--batch", String(samples), "--json"], { cwd: folder });
    return JSON.parse(ran.out).peakBytes / 1e9;
  };
  const [one, two] = [await peak(1), await peak(2)];
  return one + (two - one) * (batch - 1);
}

const withPython = needed("python3", python3 !== null);
const withSky = needed("a Python with SkyPilot, named by NEURARCH_TEST_SKY_PYTHON", skyPython !== undefined);

if (withPython)
  describe("the published neurarch-slurm with this executable as its CLI", () => {
    async function helper(directive: string, gres: string) {
      const script = join(folder, "job.sbatch");
      writeFileSync(script, `#!/bin/bash\n#NEURARCH ${directive}\npython train.py\n`);
      const child = Bun.spawn(
        [
          HELPER,
          "--script",
          script,
          "--gres",
          gres,
          "--mode",
          "reject",
          "--sizing",
          "cli",
          "--cli",
          `'${BINARY}'`,
        ],
        {
          cwd: folder,
          env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", ...OFFLINE },
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect([await child.exited, err]).toEqual([0, ""]);
      const [decision = "", ...messages] = out.trimEnd().split("\n");
      return { decision, messages };
    }

    test("refuses with our figure", async () => {
      const { decision, messages } = await helper("model=Qwen/Qwen3-8B batch=8 seq-len=2048", "gpu:a10g:1");
      const need = (await lineAt("Qwen/Qwen3-8B", ["--seq-len", "2048"], 8)) * 1.15;
      expect(decision).toBe("decision=reject");
      expect(messages[0]).toStartWith(
        `message=Neurarch: Qwen/Qwen3-8B needs ${need.toFixed(1)} GB to train at batch 8 per device, 2048 tokens`,
      );
      expect(messages[0]).toContain("Sized offline by the neurarch CLI");
    });
    test("is told the length where the job names none, and the LoRA rank", async () => {
      const { decision, messages } = await helper(
        "model=openai-community/gpt2 batch=1 lora-rank=8",
        "gpu:t4:1",
      );
      const named = await helper(
        "model=openai-community/gpt2 batch=64 lora-rank=8 attention=eager",
        "gpu:t4:1",
      );
      const need =
        (await lineAt("openai-community/gpt2", ["--lora-rank", "8", "--attention", "eager"], 64)) * 1.15;
      expect([decision, messages]).toEqual(["decision=allow", []]);
      expect(named.messages[0]).toContain(
        `needs ${need.toFixed(1)} GB to train at batch 64 per device, 1024 tokens, LoRA r=8`,
      );
    });
    test("reads a config beside the job", async () => {
      const config = {
        model_type: "llama",
        hidden_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        intermediate_size: 128,
        vocab_size: 1000,
      };
      writeFileSync(join(folder, "config.json"), JSON.stringify(config));
      expect(await helper("model=./config.json batch=1", "gpu:t4:1")).toEqual({
        decision: "decision=allow",
        messages: [],
      });
    });
    test("lets a job through that cannot be sized, with our reason", async () => {
      const { decision, messages } = await helper("model=nobody/nothing batch=1", "gpu:t4:1");
      expect(decision).toBe("decision=warn");
      expect(messages[0]).toContain(
        "the CLI could not size nobody/nothing: No config was found for nobody/nothing: ",
      );
    });
  });

if (withPython && withSky)
  describe("the published neurarch-skypilot, in SkyPilot itself", () => {
    test("refuses, warns and rewrites by our figures", async () => {
      const task = (model: string, batch: number, accelerators: string) =>
        `resources: {accelerators: ${accelerators}}\nenvs: {NEURARCH_MODEL: ${model}, NEURARCH_BATCH: "${batch}"}\nrun: train\n`;
      const tasks = [
        task("Qwen/Qwen3-8B", 8, "A10G:1"),
        task("Qwen/Qwen3-0.6B", 1, "A100-80GB:8"),
        task("Qwen/Qwen3-0.6B", 1, "L4:1"),
      ];
      const found = Bun.spawnSync(["sh", "-c", `echo ${VENV}/lib/python3*/site-packages`])
        .stdout.toString()
        .trim();
      const child = Bun.spawn([skyPython!, join(import.meta.dir, "peer_policy.py")], {
        cwd: folder,
        stdin: new Blob([JSON.stringify(tasks)]),
        stdout: "pipe",
        stderr: "pipe",
        env: {
          PATH: process.env.PATH,
          PYTHONPATH: found,
          PYTHONDONTWRITEBYTECODE: "1",
          NEURARCH_POLICY_SIZING: "cli",
          NEURARCH_POLICY_CLI: `'${BINARY}'`,
          NEURARCH_POLICY_MUTATE: "1",
          ...OFFLINE,
        },
      });
      const [out, err] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      expect([await child.exited, err.includes("Traceback")]).toEqual([0, false]);
      const [refused, rewritten, fits] = JSON.parse(out.trim().split("\n").at(-1)!);
      const need = (await lineAt("Qwen/Qwen3-8B", [], 8)) * 1.15;
      expect(refused.refused).toStartWith(
        `Neurarch: Qwen/Qwen3-8B needs ${need.toFixed(1)} GB to train at batch 8`,
      );
      expect(rewritten.refused).toBeNull();
      expect(rewritten.accelerators).not.toEqual([{ "A100-80GB": 8 }]);
      expect(rewritten.lines[0]).toMatch(/A100-80GB:8/);
      expect(fits).toEqual({ refused: null, accelerators: [{ L4: 1 }], lines: [] });
    }, 120_000);
  });
