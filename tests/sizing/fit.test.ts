import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { lineAt, lineSizing, peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { largestBatch } from "../../src/verdict/figures.ts";
import { CONFIGS, located, structureOf } from "./rows.ts";

interface Decided {
  readonly sizing: { readonly fixed_gb: number; readonly per_sample_gb: number; readonly seq_len: number };
  readonly request: { readonly accelerator: string; readonly count: number; readonly num_nodes: number };
  readonly expect: { readonly max_batch: number | null };
}

/** Capacities in GB by the names that the decided cases use. */
const CAPACITY: Readonly<Record<string, number>> = {
  t4: 16,
  l4: 24,
  a10g: 24,
  a10: 24,
  a100: 40,
  "a100-40gb": 40,
  l40s: 48,
  "a100-80gb": 80,
  h100: 80,
  "h100-80gb": 80,
  "h100-sxm": 80,
  h200: 141,
};

function line(fixedGb: number, perSampleGb: number) {
  return lineSizing({
    source: "cli",
    model: "org/model",
    seqLen: 2048,
    fixedBytes: fixedGb * 1e9,
    perSampleBytes: perSampleGb * 1e9,
  });
}

describe("largest batch of one line", () => {
  test("equals that of every decided case of the published package", () => {
    const rows: Decided[] = readFileSync(`${import.meta.dir}/../fixtures/parity.jsonl`, "utf8")
      .split("\n")
      .filter(Boolean)
      .map((l) => JSON.parse(l));
    let compared = 0;
    for (const { sizing, request, expect: want } of rows) {
      const card = CAPACITY[request.accelerator.toLowerCase()];
      if (card === undefined || want.max_batch === null) continue;
      compared++;
      const cards = request.count * request.num_nodes;
      expect(largestBatch(line(sizing.fixed_gb, sizing.per_sample_gb), card * cards, cards, 1.15)).toBe(
        want.max_batch,
      );
    }
    expect(compared).toBeGreaterThan(200);
  });

  const cases: readonly (readonly [string, number, number, number, number, number | null])[] = [
    ["an exact fit counts", 60, 2, 80, 1, 4],
    ["cards share the room", 60, 2, 160, 2, 19],
    ["none when one sample does not fit", 79, 2, 80, 1, null],
    ["none when the batch does not matter", 10, 0, 80, 1, null],
  ];
  for (const [name, fixed, per, capacity, cards, want] of cases) {
    test(name, () => expect(largestBatch(line(fixed, per), capacity, cards, 1.15)).toBe(want));
  }
});

describe("largest batch of several moments", () => {
  const sized = sizeStructure(
    located(structureOf(CONFIGS["meta-llama/Llama-3.2-1B"]!), "m"),
    DEFAULT_RECIPE,
    2048,
  );
  if (!sized.ok) throw new Error(sized.error.message);
  const sizing = sized.value;
  for (const [capacity, cards] of [
    [24, 1],
    [40, 1],
    [80, 1],
    [141, 1],
    [320, 4],
    [640, 8],
  ] as const) {
    test(`${capacity} GB over ${cards}: the batch fits and the next one does not`, () => {
      const batch = largestBatch(sizing, capacity, cards, 1.15);
      const fits = (b: number) => (peakBytes(sizing, b * cards) / 1e9) * 1.15 <= capacity;
      if (batch === null) expect(fits(1)).toBe(false);
      else expect([fits(batch), fits(batch + 1)]).toEqual([true, false]);
    });
  }
  test("the moment in force is the peak, and a line beyond the floor", () => {
    expect(lineAt(sizing, 64).name).toBe("loss");
    expect(peakBytes(sizing, 1)).toBeGreaterThanOrEqual(sizing.floorBytes);
    expect(sizing.floorBytes).toBeGreaterThanOrEqual(sizing.stateBytes);
  });
});
