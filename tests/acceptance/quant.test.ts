import { expect, test } from "bun:test";
import { run } from "./run.ts";

interface Verdict {
  readonly decision: string;
  readonly reason: string;
  readonly message: string;
  readonly peakGb: number | null;
  readonly alternatives: readonly { readonly change: string; readonly needGb: number }[];
}

async function judged(words: string): Promise<{ exit: number; verdict: Verdict }> {
  const { exit, out } = await run(["judge", ...words.split(" "), "--json"]);
  return { exit, verdict: JSON.parse(out).verdicts[0] };
}

test("a refusal offers 8-bit states, and a 4-bit base under LoRA, where they make the job fit", async () => {
  const rows: readonly [string, string][] = [
    ["--model Qwen/Qwen2.5-1.5B --request A10G:1 --batch 1 --seq-len 256", "optimizer=adamw-8bit"],
    ["--model meta-llama/Llama-3.1-8B --request L4:1 --batch 1 --seq-len 1024 --lora-rank 16", "quant=nf4"],
  ];
  for (const [job, change] of rows) {
    const { exit, verdict } = await judged(job);
    const offered = verdict.alternatives.find((one) => one.change === change);
    const [key, value] = change.split("=") as [string, string];
    const changed = await judged(`${job} --${key} ${value}`);
    expect([exit, changed.verdict.decision === "refuse"]).toEqual([1, false]);
    expect(offered?.needGb).toBeCloseTo(changed.verdict.peakGb! * 1.15, 9);
  }
});

test("a quantised base without adapters is not judged, and the message says what is missing", async () => {
  const { exit, verdict } = await judged("--model Qwen/Qwen2.5-1.5B --request A10G:1 --quant nf4");
  expect([exit, verdict.decision, verdict.reason]).toEqual([3, "unjudged", "recipe-not-sized"]);
  expect(verdict.message).toContain("without lora-rank nothing is left to train");
});

test("an explanation tells 4-bit layers from what stays whole", async () => {
  const words = "size Qwen/Qwen3-30B-A3B --lora-rank 8 --quant nf4 --explain";
  const { exit, out } = await run(words.split(" "));
  const text = out.replace(/\s+/g, " ");
  expect(exit).toBe(0);
  for (const part of [
    "frozen parameters of linear layers in 4 bits",
    "Note: The experts are no linear layers, so they are not quantised; they are raised to fp32 by peft's preparation.",
  ])
    expect(text).toContain(part);
});
