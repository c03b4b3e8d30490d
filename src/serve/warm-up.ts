import type { Settings } from "../gate/settings.ts";
import { makeSizer } from "../gate/size.ts";
import { monotonicMs } from "../host/clock.ts";
import { answerPolicy } from "./policy.ts";

const MODELS = [
  "Qwen/Qwen3-8B",
  "meta-llama/Llama-3.1-8B",
  "mistralai/Mixtral-8x7B-v0.1",
  "google/gemma-2-9b",
  "google-bert/bert-base-uncased",
  "deepseek-ai/DeepSeek-V2",
];
const RESOURCES = [
  "  accelerators:\n    A100-80GB: 4\n",
  "  ordered:\n  - accelerators:\n      L4: 1\n    labels: &id001\n      team: a\n  - accelerators:\n      T4: 1\n    labels: *id001\n",
  "  accelerators:\n    H200: 8\n",
  "  accelerators:\n    A10G: 1\n",
];
const SCRIPT = `'${"python -m train --flag value && echo done\n\n  ".repeat(40)}'`;

/**
 * Answers made-up requests for at most `forMs`, so that the first real one meets code that is compiled. Nothing of them
 * is counted, logged or kept, no network is asked and no program run.
 */
export async function warmUp(settings: Settings, forMs: number): Promise<void> {
  const own: Settings = { ...settings, sizing: "builtin", cli: null, planUrl: null, ledger: null };
  const size = makeSizer(own, { cwd: "/", env: { HF_HUB_OFFLINE: "1" }, deadlineMs: forMs });
  const untilMs = monotonicMs() + forMs;
  for (let turn = 0; monotonicMs() < untilMs; turn++)
    await answerPolicy(bodyOf(turn), { settings: own, size, policyOf: async () => null });
}

function bodyOf(turn: number): string {
  const task =
    `name: warm\n\nresources:\n${RESOURCES[turn % RESOURCES.length]}  disk_size: 256\n\nnum_nodes: 1\n\nrun: ${SCRIPT}\n\n` +
    `envs:\n  NEURARCH_MODEL: ${MODELS[turn % MODELS.length]}\n  NEURARCH_BATCH: '${1 << (turn % 5)}'\n` +
    `${turn % 3 === 0 ? "  NEURARCH_LORA_RANK: '16'\n" : ""}\n`;
  const request = { task, skypilot_config: "{}\n", request_name: "launch", request_options: null, user: "" };
  return JSON.stringify(JSON.stringify(request));
}
