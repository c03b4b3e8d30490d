import { describe, expect, test } from "bun:test";
import type { Random } from "./fuzz/random.ts";
import { fuzz } from "./fuzz/run.ts";
import { hold } from "./fuzz/target.ts";
import { TARGETS } from "./fuzz/targets.ts";

/** `make fuzz` tries a million of each. */
const INPUTS = 20_000;

describe("random inputs", () => {
  for (const target of TARGETS) {
    test(target.name, async () => {
      const { inputs } = await fuzz(target, INPUTS, 1);
      expect(inputs).toBeGreaterThan(0);
    }, 240_000);
  }
});

describe("the fuzzer itself", () => {
  const broken = (check: (text: string) => void) =>
    fuzz(
      { name: "broken", input: (random: Random) => random.soup(["a", "b", "c"], 5), check } as never,
      1000,
      1,
    );

  test("tells the input that a reader throws on", async () => {
    const told = broken((text) => hold(!text.includes("cab"), "a cab"));
    expect(told).rejects.toThrow(/^broken: input \d+: "[abc]*cab[abc]*"\na cab/);
  });

  test("gives the same inputs for the same seed", async () => {
    const seen: string[][] = [[], []];
    for (const list of seen) await broken((text) => void list.push(text));
    expect(seen[0]).toEqual(seen[1]!);
    expect(new Set(seen[0]).size).toBeGreaterThan(100);
  });
});
