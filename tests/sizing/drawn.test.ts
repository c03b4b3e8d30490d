import { describe, expect, test } from "bun:test";
import { countsOf, rowsOf } from "./accuracy-rows.ts";
import { summary, table } from "./errors.ts";

/** `drawn.jsonl`, made by `measure_drawn.py`: nothing was tuned to these combinations before they were drawn. */
describe("steps drawn at random from all decoders and all keys of a recipe", () => {
  const rows = rowsOf(["drawn.jsonl"]);
  const errors = rows.map(({ family, error }) => ({
    family,
    errorPercent: error === null ? Number.NaN : error * 100,
  }));
  test("are sized within the bars", () => {
    console.log(table(errors, ({ family }) => family));
    const all = summary(errors.map(({ errorPercent }) => errorPercent));
    console.log(all);
    expect(all.n).toBeGreaterThan(350);
    expect(new Set(errors.map(({ family }) => family)).size).toBeGreaterThan(35);
    expect(all.median).toBeLessThan(0.01);
    expect(all.p95).toBeLessThan(0.5);
    expect(all.under).toBeGreaterThan(-1.5);
    expect(all.over).toBeLessThan(7.5);
  });
  test("train exactly as many parameters", () => {
    const { rows, counted } = countsOf("drawn.jsonl");
    expect(counted).toEqual(rows);
  });
});
