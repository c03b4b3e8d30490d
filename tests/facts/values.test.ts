import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FACT_SPECS, specOf } from "../../src/facts/keys.ts";
import type { FactKey } from "../../src/facts/types.ts";
import { readValue } from "../../src/facts/values.ts";

const READABLE: [FactKey, string, unknown][] = [
  ["model", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"],
  ["model", "  org/model ", "org/model"],
  ["model", "/data/my models/a.neurarch.json", "/data/my models/a.neurarch.json"],
  ["model", "org/名前", "org/名前"],
  ["model", "cost$5", "cost$5"],
  ["batch", "8", 8],
  ["batch", " 8 ", 8],
  ["batch", "1", 1],
  ["batch", "1000000", 1_000_000],
  ["seqLen", "131072", 131_072],
  ["seqLen", "10000000", 10_000_000],
  ["loraRank", "16", 16],
  ["loraRank", "none", null],
  ["loraRank", "None", null],
  ["hours", "6", 6],
  ["hours", "0.5", 0.5],
  ["hours", ".5", 0.5],
  ["hours", "90", 90],
  ["hours", "1e2", 100],
  ["attention", "flash", "flash"],
  ["attention", "Flash", "flash"],
  ["precision", "bf16", "bf16"],
  ["optimizer", "adamw-8bit", "adamw-8bit"],
  ["checkpointing", "full", "full"],
  ["quant", "nf4", "nf4"],
  ["loraTargets", "all-linear", "all-linear"],
  ["loraDropout", "0.05", 0.05],
  ["loraDropout", ".1", 0.1],
  ["loraDropout", "5e-2", 0.05],
  ["loraDropout", "0", 0],
  ["loraDropout", "0.0", 0],
  ["parallel", "ddp", "ddp"],
  ["offload", "optimizer", "optimizer"],
  ["gradAccum", "4", 4],
  ["loss", "fused", "fused"],
  ["paddingMask", "on", true],
  ["paddingMask", "TRUE", true],
  ["paddingMask", "1", true],
  ["paddingMask", "off", false],
  ["paddingMask", "False", false],
  ["paddingMask", "0", false],
];

const UNREADABLE: [FactKey, string, string][] = [
  ["model", "", "is empty"],
  ["model", "   ", "is empty"],
  ["model", "a\nb", "control characters"],
  ["model", "a\u0000b", "control characters"],
  ["model", "x".repeat(5000), "longer than"],
  ["model", "$" + "{BASE_MODEL}", "names a variable"],
  ["model", "$BASE", "names a variable"],
  ["model", "/scratch/$USER/m", "names a variable"],
  ["batch", "0", "whole number from 1 to 1,000,000"],
  ["batch", "-8", "whole number"],
  ["batch", "+8", "whole number"],
  ["batch", "eight", "whole number"],
  ["batch", "8.0", "whole number"],
  ["batch", "08", "whole number"],
  ["batch", "1e3", "whole number"],
  ["batch", "8 8", "whole number"],
  ["batch", "0x8", "whole number"],
  ["batch", "8_0", "whole number"],
  ["batch", "True", "whole number"],
  ["batch", "", "is empty"],
  ["batch", "٨", "whole number"],
  ["batch", "1000001", "whole number"],
  ["batch", "9".repeat(100_000), "whole number"],
  ["batch", "$" + "{B}", "names a variable"],
  ["seqLen", "1000000000000", "from 1 to 100,000,000"],
  ["loraRank", "0", "none or a whole number"],
  ["loraRank", "null", "none or a whole number"],
  ["loraDropout", "1", "from 0 to below 1"],
  ["loraDropout", "5", "from 0 to below 1"],
  ["loraDropout", "5%", "from 0 to below 1"],
  ["loraDropout", "-0.1", "from 0 to below 1"],
  ["loraDropout", "0,05", "from 0 to below 1"],
  ["loraDropout", "none", "from 0 to below 1"],
  ["loraDropout", "", "is empty"],
  ["loraDropout", "$P", "names a variable"],
  ["hours", "0", "above 0"],
  ["hours", "-1", "above 0"],
  ["hours", "inf", "above 0"],
  ["hours", "NaN", "above 0"],
  ["hours", "1:30", "above 0"],
  ["hours", "1e300", "above 0"],
  ["hours", "1e-999", "above 0"],
  ["hours", "", "is empty"],
  ["attention", "flash_attention_2", "one of sdpa, flash, eager"],
  ["precision", "fp16", "one of amp-bf16"],
  ["optimizer", "adam", "one of adamw"],
  ["paddingMask", "yes", "on or off"],
  ["gradAccum", "0", "whole number"],
];

describe("a readable value", () => {
  for (const [key, text, value] of READABLE) {
    test(`${key}=${text}`, () => expect(readValue(specOf(key), text)).toEqual({ ok: true, value } as never));
  }
});

describe("an unreadable value", () => {
  for (const [key, text, part] of UNREADABLE) {
    test(`${key}=${JSON.stringify(text.slice(0, 30))}`, () => {
      const read = readValue(specOf(key), text);
      expect(read.ok).toBe(false);
      if (!read.ok) expect(read.error.fault).toContain(part);
    });
  }
});

const SUGGESTED: [FactKey, string, string][] = [
  ["optimizer", "adamw_8bit", "adamw-8bit"],
  ["attention", "flash_attention_2", "flash"],
  ["attention", "spda", "sdpa"],
  ["parallel", "fsdp", "sharded"],
  ["checkpointing", "ful", "full"],
];

describe("the value to write instead", () => {
  for (const [key, text, write] of SUGGESTED) {
    test(`${key}=${text}`, () => expect(readValue(specOf(key), text)).toMatchObject({ error: { write } }));
  }

  test("can itself be read, for every key and any text", () => {
    fc.assert(
      fc.property(fc.constantFrom(...FACT_SPECS), fc.string(), (spec, text) => {
        const read = readValue(spec, text);
        return read.ok || readValue(spec, read.error.write).ok;
      }),
    );
  });
});

test("a default is what its own text reads as", () => {
  for (const spec of FACT_SPECS) {
    if (spec.byDefault === null) continue;
    const text = typeof spec.byDefault === "boolean" ? spec.byDefaultText : String(spec.byDefault);
    expect(readValue(spec, text)).toEqual({ ok: true, value: spec.byDefault } as never);
  }
});

test("whole numbers are read back exactly, and never anything else as one", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), (count) =>
      expect(readValue(specOf("batch"), String(count))).toEqual({ ok: true, value: count }),
    ),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      const read = readValue(specOf("batch"), text);
      return !read.ok || String(read.value) === text.trim();
    }),
  );
});
