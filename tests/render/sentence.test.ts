import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { messageOfForm, noteLine, unreadableMessages } from "../../src/render/messages.ts";
import { sentenceOf, submittedAnyway } from "../../src/render/sentence.ts";
import { cut, NAME_LIMIT, printable } from "../../src/render/text.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { formsOf } from "../../src/verdict/decide.ts";
import type { Decision, Judged } from "../../src/verdict/types.ts";
import { candidateOf, sizingOf, tableOf } from "../verdict/support.ts";
import { type Case, outcomeOf, SLURM } from "./support.ts";

const model = "Qwen/Qwen3-8B";
const b = { source: "builtin" } as const;
const one = (fixed: number, per = 0, over: Partial<Sizing> = {}) =>
  sizingOf([{ fixed, per }], { model, ...over });
const optimizer = [{ name: "optimizer", formula: "", fixedBytes: 65e9, perSampleBytes: 0 }];
const two = sizingOf(
  [
    { name: "optimizer-step", fixed: 60 },
    { name: "loss", fixed: 40, per: 30 },
  ],
  { model, ...b, stateBytes: 50e9 },
);

/** Name, case, decision, every message word for word. */
const ROWS: readonly [string, Case, Decision, readonly string[]][] = [
  [
    "no batch fits, several cards needed",
    { sizing: one(165.1, 6.75), facts: { model, batch: 8 }, request: ["A10G:1"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 252.0 GB to train at batch 8 per device, 2048 tokens (peak 219.1 GB x 1.15 headroom), and A10G:1 holds 24 GB. No batch fits A10G:1: the weights, gradients and optimizer state alone need 189.9 GB. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized offline by the neurarch CLI from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "some batch fits, one larger card holds it",
    {
      sizing: one(12.3, 1.1, { model: "Qwen/Qwen3-0.6B" }),
      facts: { model: "Qwen/Qwen3-0.6B", batch: 16 },
      request: ["T4:1"],
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-0.6B needs 34.4 GB to train at batch 16 per device, 2048 tokens (peak 29.9 GB x 1.15 headroom), and T4:1 holds 16 GB. The largest batch that fits T4:1 is 1 per device. The smallest card that holds this job is A100:1. Sized offline by the neurarch CLI from the model's structure; nothing was trained. Change `accelerators:` or `NEURARCH_BATCH` and resubmit.",
    ],
  ],
  [
    "the same sentence in Slurm's words",
    { sizing: one(157.3, 12.72), facts: { model, batch: 8 }, request: ["a10g:1"], words: SLURM },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 297.9 GB to train at batch 8 per device, 2048 tokens (peak 259.1 GB x 1.15 headroom), and a10g:1 holds 24 GB. No batch fits a10g:1: the weights, gradients and optimizer state alone need 180.9 GB. No single card holds it; the smallest request that does is A100-80GB:4, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized offline by the neurarch CLI from the model's structure; nothing was trained. Change --gres and resubmit.",
    ],
  ],
  [
    "the size does not depend on the batch: no word of batches",
    { sizing: one(120, 0, b), facts: { model, batch: 8 }, request: ["A100:1"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 138.0 GB to train at batch 8 per device, 2048 tokens (peak 120.0 GB x 1.15 headroom), and A100:1 holds 40 GB. The smallest card that holds this job is H200:1. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "the state alone does not fit",
    { sizing: two, facts: { model, batch: 2 }, request: ["L40S:1"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 115.0 GB to train at batch 2 per device, 2048 tokens (peak 100.0 GB x 1.15 headroom), and L40S:1 holds 48 GB. No batch fits L40S:1: the weights, gradients and optimizer state alone need 57.5 GB. The smallest card that holds this job is H200:1. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "a smaller batch fits two cards",
    { sizing: two, facts: { model, batch: 2 }, request: ["H100:2"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 184.0 GB to train at batch 2 per device, 2048 tokens sharded over 2 cards (peak 160.0 GB x 1.15 headroom), and H100:2 holds 160 GB. The largest batch that fits H100:2 is 1 per device. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 4. Sized offline from the model's structure; nothing was trained. Change `accelerators:` or `NEURARCH_BATCH` and resubmit.",
    ],
  ],
  [
    "the state fits, one sample does not",
    { sizing: two, facts: { model, batch: 4 }, request: ["A100:2"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 322.0 GB to train at batch 4 per device, 2048 tokens sharded over 2 cards (peak 280.0 GB x 1.15 headroom), and A100:2 holds 80 GB. No batch fits A100:2: one sample of 2048 tokens already needs 115.0 GB (one on each card). No single card holds it; the smallest request that does is H200:4, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "several cards asked, none alone holds it",
    { sizing: one(20, 5, b), facts: { model, batch: 8 }, request: ["T4:4"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 207.0 GB to train at batch 8 per device, 2048 tokens sharded over 4 cards (peak 180.0 GB x 1.15 headroom), and T4:4 holds 64 GB. The largest batch that fits T4:4 is 1 per device. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 32. Sized offline from the model's structure; nothing was trained. Change `accelerators:` or `NEURARCH_BATCH` and resubmit.",
    ],
  ],
  [
    "nothing up to 64 cards",
    { sizing: one(9000, 5, b), facts: { model, batch: 8 }, request: ["H200:64"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 13294.0 GB to train at batch 8 per device, 2048 tokens sharded over 64 cards (peak 11560.0 GB x 1.15 headroom), and H200:64 holds 9024 GB. No batch fits H200:64: the weights, gradients and optimizer state alone need 10350.0 GB. No single card holds it; no listed request of up to 64 cards holds it. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "nothing up to the cards asked",
    { sizing: one(29000, 5, b), facts: { model, batch: 8 }, request: ["H200:64x2"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 39238.0 GB to train at batch 8 per device, 2048 tokens sharded over 128 cards (peak 34120.0 GB x 1.15 headroom), and H200:64 x 2 nodes holds 18048 GB. No batch fits H200:64 x 2 nodes: the weights, gradients and optimizer state alone need 33350.0 GB. No single card holds it; no listed request of up to 128 cards holds it. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "every fact that is not the default is named",
    {
      sizing: one(100, 5, b),
      facts: {
        model,
        batch: 8,
        loraRank: 16,
        loraTargets: "all-linear",
        attention: "eager",
        precision: "bf16",
        optimizer: "sgd",
        checkpointing: "full",
        quant: "nf4",
        offload: "all",
        gradAccum: 4,
        loss: "fused",
        paddingMask: true,
      },
      request: ["T4:1"],
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 161.0 GB to train at batch 8 per device, 2048 tokens, LoRA rank 16, lora-targets=all-linear, attention=eager, precision=bf16, optimizer=sgd, checkpointing=full, quant=nf4, offload=all, grad-accum=4, loss=fused, padding-mask=on (peak 140.0 GB x 1.15 headroom), and T4:1 holds 16 GB. No batch fits T4:1: the weights, gradients and optimizer state alone need 115.0 GB. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized with attention=sdpa instead of eager. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "ends with the change that makes it fit",
    {
      sizing: one(100, 5, b),
      facts: { model, batch: 8 },
      request: ["A100-80GB:1"],
      resize: (c) => (c.checkpointing === "full" ? one(50, 1) : c.precision === "bf16" ? one(40, 1) : null),
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 161.0 GB to train at batch 8 per device, 2048 tokens (peak 140.0 GB x 1.15 headroom), and A100-80GB:1 holds 80 GB. No batch fits A100-80GB:1: the weights, gradients and optimizer state alone need 115.0 GB. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit. With checkpointing=full it needs 66.7 GB.",
    ],
  ],
  [
    "what was assumed is said",
    {
      sizing: one(100, 5, {
        ...b,
        assumed: ["The family foo is sized like llama.", "Dropout is taken as off."],
      }),
      facts: { model, batch: 8 },
      request: ["T4:1"],
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 161.0 GB to train at batch 8 per device, 2048 tokens (peak 140.0 GB x 1.15 headroom), and T4:1 holds 16 GB. No batch fits T4:1: the weights, gradients and optimizer state alone need 115.0 GB. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 8. Assumed: The family foo is sized like llama; Dropout is taken as off. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "what was sized instead is said",
    {
      sizing: one(100, 5, b),
      facts: { model, batch: 8, attention: "flash", precision: "fp32" },
      request: ["T4:1"],
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 161.0 GB to train at batch 8 per device, 2048 tokens, attention=flash, precision=fp32 (peak 140.0 GB x 1.15 headroom), and T4:1 holds 16 GB. No batch fits T4:1: the weights, gradients and optimizer state alone need 115.0 GB. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized with attention=sdpa instead of flash. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "ddp: each card alone",
    { sizing: one(100, 5, b), facts: { model, batch: 8, parallel: "ddp" }, request: ["A100-80GB:4"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 161.0 GB to train at batch 8 per device, 2048 tokens, parallel=ddp on each card (peak 140.0 GB x 1.15 headroom), and each card of A100-80GB:4 holds 80 GB. No batch fits A100-80GB:4: the weights, gradients and optimizer state alone need 115.0 GB. No single card holds it; the smallest request that does is A100-80GB:4, sharded (FSDP or ZeRO-3) at the same global batch of 32. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "slices: each alone, never sharded",
    { sizing: one(30, 1, b), facts: { model, batch: 8 }, request: ["a100_3g.20gb:2"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 43.7 GB to train at batch 8 per device, 2048 tokens on each slice (peak 38.0 GB x 1.15 headroom), and each slice of a100_3g.20gb:2 holds 20 GB. No batch fits a100_3g.20gb:2: the weights, gradients and optimizer state alone need 34.5 GB. The smallest cards that hold this job are L40S:2. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "sized by the hosted plan",
    { sizing: one(100, 5, { source: "hosted" }), facts: { model, batch: 8 }, request: ["T4:1"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 161.0 GB to train at batch 8 per device, 2048 tokens (peak 140.0 GB x 1.15 headroom), and T4:1 holds 16 GB. No batch fits T4:1: the weights, gradients and optimizer state alone need 115.0 GB. No single card holds it; the smallest request that does is H200:2, sharded (FSDP or ZeRO-3) at the same global batch of 8. Sized by the hosted plan from the model's graph; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "over-requested",
    { sizing: one(10, 0.5), facts: { model, batch: 4 }, request: ["A100:8"] },
    "warn",
    [
      "Neurarch: A100:8 (320 GB) is over-requested: Qwen/Qwen3-8B needs 29.9 GB to train at batch 4 per device, 2048 tokens sharded over 8 cards (peak 26.0 GB x 1.15 headroom), and L40S:1 (48 GB) holds it. It holds the same global batch of 32, 32 per device on 1 card; left at 4 per device the run takes more steps.",
    ],
  ],
  [
    "over-requested over several nodes",
    { sizing: one(10, 0.5), facts: { model, batch: 4 }, request: ["A100:8x2"], settings: { mutate: true } },
    "warn",
    [
      "Neurarch: A100:8 x 2 nodes (640 GB) is over-requested: Qwen/Qwen3-8B needs 48.3 GB to train at batch 4 per device, 2048 tokens sharded over 16 cards (peak 42.0 GB x 1.15 headroom), and A100-80GB:1 (80 GB) holds it. It holds the same global batch of 64, 64 per device on 1 card; left at 4 per device the run takes more steps. A request over several nodes is never rewritten.",
    ],
  ],
  [
    "over-requested and still the cheapest",
    {
      sizing: one(10),
      facts: { model, batch: 4 },
      request: ["H200:1"],
      settings: { table: tableOf({ H200: 0.1 }) },
    },
    "warn",
    [
      "Neurarch: H200:1 (141 GB) is over-requested in memory: Qwen/Qwen3-8B needs 11.5 GB to train at batch 4 per device, 2048 tokens (peak 10.0 GB x 1.15 headroom), and T4:1 would hold it; at the prices in force it is still the cheapest.",
    ],
  ],
  [
    "over-requested single card",
    { sizing: one(10), facts: { model, batch: 4 }, request: ["H200:1"] },
    "warn",
    [
      "Neurarch: H200:1 (141 GB) is over-requested: Qwen/Qwen3-8B needs 11.5 GB to train at batch 4 per device, 2048 tokens (peak 10.0 GB x 1.15 headroom), and T4:1 (16 GB) holds it.",
    ],
  ],
  [
    "over-requested, no card allowed to rewrite to",
    {
      sizing: one(70, 0.1),
      facts: { model, batch: 4 },
      request: ["H100:8"],
      settings: { rewriteCards: ["V100"], mutate: true },
    },
    "warn",
    [
      "Neurarch: H100:8 (640 GB) is over-requested: Qwen/Qwen3-8B needs 84.2 GB to train at batch 4 per device, 2048 tokens sharded over 8 cards (peak 73.2 GB x 1.15 headroom), and H200:1 (141 GB) holds it. It holds the same global batch of 32, 32 per device on 1 card; left at 4 per device the run takes more steps. It was not rewritten: no card that this task may use holds it in less.",
      "Neurarch: Qwen/Qwen3-8B holds on H100:8 only if sharded (FSDP or ZeRO-3): a whole copy needs 81.0 GB and one card has 80 GB, so plain DDP, what torchrun does by default, would not fit.",
    ],
  ],
  [
    "rewritten",
    {
      sizing: one(10, 0.5),
      facts: { model, batch: 4, hours: 3 },
      request: ["A100:8"],
      settings: { mutate: true, maxCostUsd: 100 },
    },
    "rewrite",
    [
      "Neurarch: rewrote A100:8 to L40S:1: Qwen/Qwen3-8B needs 29.9 GB to train at batch 4 per device, 2048 tokens sharded over 8 cards (peak 26.0 GB x 1.15 headroom), and L40S:1 (48 GB) is the cheapest request allowed that holds it. It holds the same global batch of 32, 32 per device on 1 card; left at 4 per device the run takes more steps.",
    ],
  ],
  [
    "borderline by share",
    { sizing: one(10, 5), facts: { model, batch: 13 }, request: ["A100-80GB:8"] },
    "warn",
    [
      "Neurarch: borderline fit: Qwen/Qwen3-8B needs 609.5 GB to train at batch 13 per device, 2048 tokens sharded over 8 cards (peak 530.0 GB x 1.15 headroom), 95% of the 640 GB on A100-80GB:8, inside the estimate's error. The largest batch with headroom is 13 per device.",
      "Neurarch: Qwen/Qwen3-8B holds on A100-80GB:8 only if sharded (FSDP or ZeRO-3): a whole copy needs 86.3 GB and one card has 80 GB, so plain DDP, what torchrun does by default, would not fit.",
    ],
  ],
  [
    "borderline by what runs measured",
    {
      sizing: one(2.5, 0, b),
      facts: { model, batch: 10 },
      request: ["Tiny:1"],
      settings: { table: buildCardTable({ cards: { Tiny: { gb: 4 } } }) },
    },
    "warn",
    [
      "Neurarch: borderline fit: Qwen/Qwen3-8B needs 2.9 GB to train at batch 10 per device, 2048 tokens (peak 2.5 GB x 1.15 headroom), 72% of the 4 GB on Tiny:1; measured runs took up to 1.05 x the peak and 1.5 GB a card, here 4.1 GB.",
    ],
  ],
  [
    "over the cost cap, with array tasks",
    {
      sizing: one(70),
      facts: { model, batch: 10, hours: 6 },
      request: ["A100-80GB:4"],
      settings: { maxCostUsd: 50, tasks: 12 },
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B on A100-80GB:4 would cost $720.00: 4 cards x 6 h x 12 array tasks x $2.50 per card-hour (Modal's on-demand list, 2026-08-19), over the cap of $50.00. Change `accelerators:` or the hours and resubmit.",
    ],
  ],
  [
    "over the cost cap even rewritten",
    {
      sizing: one(10, 0.5),
      facts: { model, batch: 4, hours: 30 },
      request: ["A100:8"],
      settings: { mutate: true, maxCostUsd: 5 },
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B on A100:8, even rewritten to L40S:1, would cost $58.50: 1 card x 30 h x $1.95 per card-hour (Modal's on-demand list, 2026-08-19), over the cap of $5.00. Change `accelerators:` or the hours and resubmit.",
    ],
  ],
  [
    "spot: over the cap is a warning",
    {
      sizing: one(55),
      facts: { model, batch: 10, hours: 6 },
      request: ["H100:1"],
      settings: { maxCostUsd: 5, useSpot: true },
    },
    "warn",
    [
      "Neurarch: Qwen/Qwen3-8B on H100:1 may cost up to $23.70: 1 card x 6 h x $3.95 per card-hour (Modal's on-demand list, 2026-08-19), over the cap of $5.00. A list price is only an upper bound for spot, so this is a warning.",
    ],
  ],
  [
    "cap not checked: no hours",
    { sizing: one(10), facts: { model, batch: 10 }, request: ["L4:1"], settings: { maxCostUsd: 1200 } },
    "allow",
    ["Neurarch: the cost cap of $1,200.00 was not checked: the job does not say how many hours it runs."],
  ],
  [
    "cap not checked: no price",
    {
      sizing: one(100),
      facts: { model, batch: 10, hours: 1 },
      request: ["MI300X:1"],
      settings: { maxCostUsd: 1200 },
    },
    "allow",
    ["Neurarch: the cost cap of $1,200.00 was not checked: no price is on file for MI300X."],
  ],
  [
    "holds only if sharded",
    { sizing: one(100), facts: { model, batch: 10 }, request: ["A100:4"] },
    "allow",
    [
      "Neurarch: Qwen/Qwen3-8B holds on A100:4 only if sharded (FSDP or ZeRO-3): a whole copy needs 115.0 GB and one card has 40 GB, so plain DDP, what torchrun does by default, would not fit.",
    ],
  ],
  [
    "two of three candidates refused",
    { sizing: one(30, 1), facts: { model, batch: 2 }, request: ["T4:1", "L4:1", "A100:1"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 36.8 GB to train at batch 2 per device, 2048 tokens (peak 32.0 GB x 1.15 headroom), and T4:1 holds 16 GB. No batch fits T4:1: the weights, gradients and optimizer state alone need 34.5 GB. The smallest card that holds this job is A100:1. Sized offline by the neurarch CLI from the model's structure; nothing was trained. 2 of 3 candidates refused: T4:1, L4:1. Change `accelerators:` and resubmit.",
      "Neurarch: Qwen/Qwen3-8B needs 36.8 GB to train at batch 2 per device, 2048 tokens (peak 32.0 GB x 1.15 headroom), and L4:1 holds 24 GB. No batch fits L4:1: the weights, gradients and optimizer state alone need 34.5 GB. The smallest card that holds this job is A100:1. Sized offline by the neurarch CLI from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "refused candidates dropped",
    {
      sizing: one(30, 1),
      facts: { model, batch: 2 },
      request: ["T4:1", "L4:1", "L40S:1"],
      settings: { mutate: true },
    },
    "rewrite",
    [
      "Neurarch: dropped T4:1: Qwen/Qwen3-8B needs 36.8 GB to train at batch 2 per device, 2048 tokens (peak 32.0 GB x 1.15 headroom), more than the 16 GB it has.",
      "Neurarch: dropped L4:1: Qwen/Qwen3-8B needs 36.8 GB to train at batch 2 per device, 2048 tokens (peak 32.0 GB x 1.15 headroom), more than the 24 GB it has.",
    ],
  ],
  [
    "a costly candidate rewritten",
    {
      sizing: one(30),
      facts: { model, batch: 2, hours: 10 },
      request: ["H100:1", "L40S:1"],
      settings: { mutate: true, maxCostUsd: 20 },
    },
    "rewrite",
    [
      "Neurarch: rewrote H100:1 to L40S:1: Qwen/Qwen3-8B needs 34.5 GB to train at batch 2 per device, 2048 tokens (peak 30.0 GB x 1.15 headroom), and L40S:1 (48 GB) is the cheapest request allowed that holds it.",
    ],
  ],
  [
    "one candidate not judged",
    {
      sizing: one(10),
      facts: { model, batch: 2 },
      request: [
        "L4:1",
        {
          accelerator: "B999",
          count: 1,
          nodes: 1,
          label: "B999:1",
          reason: "card-unknown",
          message: "No capacity is on file for accelerator `B999`; not judged. Did you mean B200?",
        },
      ],
    },
    "unjudged",
    [
      "Neurarch: B999:1 not judged: No capacity is on file for accelerator `B999`. Did you mean B200? Allowed unchecked (fail open).",
    ],
  ],
  [
    "not judged where the site fails closed",
    {
      sizing: one(10),
      facts: { model, batch: 2 },
      failsClosed: true,
      request: [
        {
          accelerator: "B999",
          count: 1,
          nodes: 1,
          label: "B999:1",
          reason: "card-unknown",
          message: "No capacity is on file for accelerator `B999`; not judged.",
        },
      ],
    },
    "unjudged",
    [
      "Neurarch: B999:1 not judged: No capacity is on file for accelerator `B999`. Refused, as this site fails closed.",
    ],
  ],
  [
    "ZeRO-2 between its two ends",
    { sizing: one(60), facts: { model, batch: 2, parallel: "zero2" }, request: ["L4:4"] },
    "unjudged",
    [
      "Neurarch: Qwen/Qwen3-8B not judged: parallel=zero2 over 4 cards is not sized: sharded fully the job holds on L4:4, copied whole to each card it does not. Allowed unchecked (fail open).",
    ],
  ],
  [
    "rewritten on spot and over the cap",
    {
      sizing: one(10, 0.5),
      facts: { model, batch: 4, hours: 30 },
      request: ["A100:8"],
      settings: { mutate: true, maxCostUsd: 5, useSpot: true },
    },
    "rewrite",
    [
      "Neurarch: rewrote A100:8 to L40S:1: Qwen/Qwen3-8B needs 29.9 GB to train at batch 4 per device, 2048 tokens sharded over 8 cards (peak 26.0 GB x 1.15 headroom), and L40S:1 (48 GB) is the cheapest request allowed that holds it. It holds the same global batch of 32, 32 per device on 1 card; left at 4 per device the run takes more steps.",
      "Neurarch: Qwen/Qwen3-8B on A100:8, even rewritten to L40S:1, may cost up to $58.50: 1 card x 30 h x $1.95 per card-hour (Modal's on-demand list, 2026-08-19), over the cap of $5.00. A list price is only an upper bound for spot, so this is a warning.",
    ],
  ],
  [
    "borderline on spot and over the cap",
    {
      sizing: one(60),
      facts: { model, batch: 10, hours: 6 },
      request: ["H100:1"],
      settings: { maxCostUsd: 5, useSpot: true },
    },
    "warn",
    [
      "Neurarch: borderline fit: Qwen/Qwen3-8B needs 69.0 GB to train at batch 10 per device, 2048 tokens (peak 60.0 GB x 1.15 headroom), 86% of the 80 GB on H100:1, inside the estimate's error.",
      "Neurarch: Qwen/Qwen3-8B on H100:1 may cost up to $23.70: 1 card x 6 h x $3.95 per card-hour (Modal's on-demand list, 2026-08-19), over the cap of $5.00. A list price is only an upper bound for spot, so this is a warning.",
    ],
  ],
  [
    "fails at the first optimizer step",
    {
      sizing: sizingOf(
        [
          { name: "optimizer-step", fixed: 131, terms: optimizer },
          { name: "loss", fixed: 113, per: 1, terms: optimizer },
        ],
        { model, ...b, stateBytes: 131e9 },
      ),
      facts: { model, batch: 1, seqLen: 128 },
      request: ["A100-80GB:1"],
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 150.6 GB to train at batch 1 per device, 2048 tokens (peak 131.0 GB x 1.15 headroom), and A100-80GB:1 holds 80 GB. No batch fits A100-80GB:1: the weights, gradients and optimizer state alone need 150.6 GB. The moment of the peak is the first optimizer step: forward and backward before it would fit. No single card holds it; the smallest request that does is A100-80GB:2, sharded (FSDP or ZeRO-3) at the same global batch of 1. Sized offline from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "a memory size",
    {
      sizing: one(90),
      facts: { model, batch: 1 },
      request: [{ ...candidateOf("H100:1"), accelerator: "80GB", label: "80GB:1", memoryForm: true }],
      choice: "open",
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 103.5 GB to train at batch 1 per device, 2048 tokens (peak 90.0 GB x 1.15 headroom), and 80GB:1 holds at least 80 GB. The smallest card that holds this job is H200:1. Sized offline by the neurarch CLI from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "a least memory size that a larger card meets",
    {
      sizing: one(90),
      facts: { model, batch: 1 },
      request: [{ ...candidateOf("H100:1"), accelerator: "80GB+", label: "80GB+:1", memoryForm: true }],
      choice: "open",
    },
    "warn",
    [
      "Neurarch: Qwen/Qwen3-8B needs 103.5 GB to train at batch 1 per device, 2048 tokens (peak 90.0 GB x 1.15 headroom), more than 80GB+:1 may give; only a larger card that the request also admits holds the job.",
    ],
  ],
  [
    "a least memory size that no card meets",
    {
      sizing: one(400),
      facts: { model, batch: 1 },
      request: [
        { ...candidateOf("H100:1"), accelerator: "80GB+", label: "80GB+:1", memoryForm: true, written: 0 },
        { ...candidateOf("H200:1"), accelerator: "80GB+", label: "80GB+:1", memoryForm: true, written: 0 },
      ],
      choice: "open",
    },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 460.0 GB to train at batch 1 per device, 2048 tokens (peak 400.0 GB x 1.15 headroom), and 80GB+:1 holds at least 80 GB. No single card holds it; the smallest request that does is H200:4, sharded (FSDP or ZeRO-3) at the same global batch of 1. Sized offline by the neurarch CLI from the model's structure; nothing was trained. No card on file that it may give holds the job. Change `accelerators:` and resubmit.",
    ],
  ],
  [
    "a card of a vendor without listed cards",
    { sizing: one(300, 1), facts: { model, batch: 2 }, request: ["MI300X:1"] },
    "refuse",
    [
      "Neurarch: Qwen/Qwen3-8B needs 347.3 GB to train at batch 2 per device, 2048 tokens (peak 302.0 GB x 1.15 headroom), and MI300X:1 holds 192 GB. No batch fits MI300X:1: the weights, gradients and optimizer state alone need 345.0 GB. No single card holds it; the smallest request that does is MI300X:2, sharded (FSDP or ZeRO-3) at the same global batch of 2. Sized offline by the neurarch CLI from the model's structure; nothing was trained. Change `accelerators:` and resubmit.",
    ],
  ],
];

describe("what is said", () => {
  for (const [name, given, decision, messages] of ROWS) {
    test(name, () => {
      const outcome = outcomeOf(given);
      expect(outcome.messages).toEqual([...messages]);
      expect(outcome.result.decision).toBe(decision);
    });
  }

  test("both schedulers get one sentence but for where things are written", () => {
    for (const [, given] of ROWS) {
      const sky = outcomeOf(given).messages.join("\n");
      const slurm = outcomeOf({ ...given, words: SLURM }).messages.join("\n");
      const words = slurm
        .replaceAll("--gres", "`accelerators:`")
        .replaceAll("batch= in #NEURARCH", "`NEURARCH_BATCH`");
      expect(words).toBe(sky.replaceAll("--gres", "`accelerators:`"));
    }
  });

  test("every message begins with the product and is one line", () => {
    for (const [, given] of ROWS) {
      for (const message of outcomeOf(given).messages) expect(message).toMatch(/^Neurarch: .*[.?]$/);
    }
  });

  test("a plain fit has a sentence of its own and needs no message", () => {
    const { messages, result, request, telling } = outcomeOf({ sizing: one(10), request: ["L4:1"] });
    expect(messages).toEqual([]);
    const [form] = formsOf(result.verdicts, request, telling.settings.table);
    expect(messageOfForm(form!, telling, true)).toBe(
      "Neurarch: org/model needs 11.5 GB to train at batch 8 per device, 2048 tokens " +
        "(peak 10.0 GB x 1.15 headroom), and L4:1 holds 24 GB. " +
        "Sized offline by the neurarch CLI from the model's structure; nothing was trained.",
    );
  });

  test("at most three refused candidates are told in full", () => {
    const { messages } = outcomeOf({
      sizing: one(9000),
      request: ["T4:1", "L4:1", "A10:1", "A100:1", "H100:1"],
    });
    expect(messages.length).toBe(3);
    expect(messages[0]).toContain("5 of 5 candidates refused: T4:1, L4:1, A10:1, A100:1, H100:1.");
  });

  test("a rewritten request is told at the batch it keeps", () => {
    const { result, telling } = outcomeOf({ sizing: one(10, 0.5), facts: { batch: 4 }, request: ["A100:8"] });
    const verdict = { ...(result.verdicts[0] as Judged), totalCards: 1 };
    expect(sentenceOf(verdict, telling)).toContain("to train at the global batch of 32, 2048 tokens (peak");
  });

  test("a waiver and a budget line", () => {
    const { result, telling } = outcomeOf({ sizing: one(100), request: ["L4:1"] });
    const verdict = result.verdicts[0] as Judged;
    const waiver = {
      file: ".neurarch.yml",
      owner: "ml@org",
      expires: "2027-01-01",
      reason: "Known to page.\n",
    };
    expect(sentenceOf({ ...verdict, decision: "warn", waiver }, telling)).toEndWith(
      "Change `accelerators:` and resubmit. " +
        "Allowed: waived in .neurarch.yml by ml@org until 2027-01-01: Known to page.",
    );
    const budget = {
      file: ".neurarch.yml",
      title: "L4 is not an allowed card (H100)",
      fix: "Request one of H100.",
    };
    expect(sentenceOf({ ...verdict, budget }, telling)).toBe(
      "Neurarch: .neurarch.yml: L4 is not an allowed card (H100). Request one of H100.",
    );
  });

  test("notes and unreadable facts", () => {
    expect(noteLine("Neurarch: `--gres` is given twice.\nThe last one counts.")).toBe(
      "Neurarch: `--gres` is given twice. The last one counts.",
    );
    const problem = { key: "batch", value: "eight", from: { kind: "env", name: "NEURARCH_BATCH" } } as const;
    expect(
      unreadableMessages(
        [{ ...problem, message: "NEURARCH_BATCH is no number: eight." }],
        "Correct it and resubmit.",
      ),
    ).toEqual(["Neurarch: NEURARCH_BATCH is no number: eight. Correct it and resubmit."]);
    expect(submittedAnyway("Neurarch: too small.")).toBe("Neurarch: too small. Submitted anyway.");
  });
});

describe("text that users wrote", () => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
  const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

  const rows: [string, string, string][] = [
    ["line ends become a space", "a\r\nb\tc", "a b c"],
    ["escape sequences lose their escape", "\u001b[31mred\u009b0m", "[31mred0m"],
    ["writing direction cannot be turned", "abc\u202etxt\u2066.exe", "abctxt.exe"],
    ["line separators become a space", "a\u2028b\u0085c", "a b c"],
    ["half a surrogate is shown as broken", "a\ud800b", "a\ufffdb"],
    ["other scripts stay", "モデル/é", "モデル/é"],
  ];
  for (const [name, text, expected] of rows) {
    test(name, () => {
      expect(printable(text)).toBe(expected);
    });
  }

  test("long names are cut at 200 characters, whole characters only", () => {
    expect(cut("x".repeat(NAME_LIMIT))).toBe("x".repeat(NAME_LIMIT));
    expect(cut("x".repeat(NAME_LIMIT + 1))).toBe(`${"x".repeat(NAME_LIMIT)}...`);
    expect(cut("😀".repeat(250))).toBe(`${"😀".repeat(200)}...`);
    const { messages } = outcomeOf({
      sizing: one(100),
      facts: { model: "m".repeat(5e6) },
      request: ["T4:1"],
    });
    expect(messages[0]).toStartWith(`Neurarch: ${"m".repeat(200)}... needs`);
  });

  test("no message holds a control character, whatever was written", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: fc.constantFrom(..."a\u001b\n\u202e\u0000\u2028/") }),
    );
    fc.assert(
      fc.property(text, text, text, fc.constantFrom(10, 21, 100), (name, label, reason, peak) => {
        const candidate = { ...candidateOf("L4:1"), accelerator: label, label };
        const unknown = {
          accelerator: label,
          count: 1,
          nodes: 1,
          label,
          reason: "card-unknown",
          message: reason,
        } as const;
        const { messages } = outcomeOf({
          sizing: one(peak, 0, { assumed: [reason], notes: [reason] }),
          facts: { model: name, parallel: "sharded" },
          request: [candidate, unknown],
          settings: { maxCostUsd: 1 },
        });
        expect(messages.length).toBeGreaterThan(0);
        for (const message of messages) expect(message).not.toMatch(FORBIDDEN);
      }),
      { numRuns: 300 },
    );
  });
});
