import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { type AnyRow, anyRecipeOf, configOf } from "./accuracy-rows.ts";
import { summary } from "./errors.ts";
import { located, readRows } from "./rows.ts";

/** Steps with a fused loss, and of one card of several: `shared.jsonl`, made by `tests/oracle/shared_rows.py`. */
type SharedRow = AnyRow & { readonly optim: number };

const ROWS = readRows("shared.jsonl") as SharedRow[];

function sized(row: SharedRow, recipe: Recipe = anyRecipeOf(row)!): Sizing {
  const structure = readStructure(configOf(row));
  if (!structure.ok) throw new Error(structure.error.message);
  const sizing = sizeStructure(located(structure.value, row.config), recipe, row.seq, row.cards ?? 1);
  if (!sizing.ok) throw new Error(sizing.error.message);
  return sizing.value;
}

const percentOff = (row: SharedRow) => (peakBytes(sized(row), row.batch) / row.peak_bytes - 1) * 100;

/** What a row is there for. */
function kindOf({ parallel, loss }: SharedRow): string {
  return loss === "fused" ? "fused" : (parallel ?? "plain");
}

const KINDS = Map.groupBy(ROWS, kindOf);

const MEASURED: readonly [string, number, number][] = [
  // kind, rows at least, families at least
  ["fused", 150, 10],
  ["ddp", 100, 7],
  ["zero1", 100, 7],
  ["zero2", 100, 10],
  ["offload-optimizer", 60, 4],
  ["offload", 150, 8],
];
for (const [kind, number, families] of MEASURED) {
  test(`${kind} was measured often enough, at three batches and two lengths`, () => {
    const rows = KINDS.get(kind) ?? [];
    const count = (of: (row: SharedRow) => unknown) => new Set(rows.map(of)).size;
    expect(rows.length).toBeGreaterThanOrEqual(number);
    expect(count((row) => configOf(row).model_type)).toBeGreaterThanOrEqual(families);
    expect(count((row) => row.batch)).toBe(3);
    expect(count((row) => row.seq)).toBeGreaterThanOrEqual(2);
  });
}

for (const [kind, rows] of KINDS) {
  if (kind === "fused") continue;
  test(`one card's peak under ${kind} is within 0.1 % of the measured`, () => {
    const { median, p95, under, over } = summary(rows.map(percentOff));
    console.log(kind, rows.length, median, p95, under, over);
    expect(median).toBeLessThan(0.01);
    expect(p95).toBeLessThan(0.1);
    expect(under).toBeGreaterThan(-0.1);
    expect(over).toBeLessThan(0.5);
  });
}

test("a fused loss is never sized below the measured, and over it by what a chunk's power of two may add", () => {
  const { median, p95, under, over } = summary((KINDS.get("fused") ?? []).map(percentOff));
  console.log("fused", median, p95, under, over);
  expect(under).toBeGreaterThan(-0.1);
  expect(median).toBeLessThan(0.5);
  expect(p95).toBeLessThan(3);
  expect(over).toBeLessThan(3);
});

test("the state on a card is the measured share", () => {
  for (const row of ROWS) {
    if (row.parallel === "offload" || row.parallel === "offload-optimizer") continue;
    const { moments } = sized(row);
    const state = moments[0]!.terms.find(({ name }) => name === "optimizer")?.fixedBytes ?? 0;
    const scaler = anyRecipeOf(row)!.precision === "amp-fp16" ? 1024 : 0;
    const off = Math.abs(state - scaler - row.optim);
    expect([row.config, kindOf(row), off <= Math.max(row.optim / 1000, 512)]).toEqual([
      row.config,
      kindOf(row),
      true,
    ]);
  }
});

test("PyTorch's own optimizer for shared states differs by its uneven shares only", () => {
  const file = `${import.meta.dir}/../fixtures/sizing/checks/zero-redundancy.jsonl`;
  const rows = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as SharedRow);
  expect(rows.length).toBeGreaterThanOrEqual(12);
  for (const row of rows) {
    // It runs inside of DDP, so its buckets are there too, and it deals out whole parameters.
    const ours = sized(row, { ...anyRecipeOf({ ...row, parallel: "ddp" })!, parallel: "ddp" });
    const state = ours.moments[0]!.terms.find(({ name }) => name === "optimizer")!.fixedBytes;
    const off = peakBytes(ours, row.batch) - state + row.optim - row.peak_bytes;
    expect([row.config, row.batch, Math.abs(off) < row.peak_bytes / 1000]).toEqual([
      row.config,
      row.batch,
      true,
    ]);
  }
});

test("what was measured is not called unmeasured, but for what DeepSpeed does otherwise", () => {
  for (const row of ROWS) {
    const said = sized(row).assumed;
    const halfStates = /^zero/.test(row.parallel ?? "") && row.recipe === "bf16";
    expect([kindOf(row), row.recipe, said.length]).toEqual([kindOf(row), row.recipe, halfStates ? 1 : 0]);
  }
});
