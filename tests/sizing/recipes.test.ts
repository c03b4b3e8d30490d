import { expect, test } from "bun:test";
import type { Optimizer, Recipe } from "../../src/facts/types.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { unmeasured } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { configOf, located, type Row, readRows, recipeOf, structureOf } from "./rows.ts";

/** A step under a recipe that the other tables lack: `recipes.jsonl`, made by `tests/oracle/rows.py recipes`. */
interface RecipeRow extends Omit<Row, "recipe" | "optimizer"> {
  readonly recipe: Row["recipe"] | "amp-fp16" | "lora-fp16";
  /** `none`: state and step are on the host. */
  readonly optimizer: Row["optimizer"] | "sgd" | "sgd-momentum" | "adafactor" | "lion" | "none";
  readonly grad_accum: number;
  readonly ddp: boolean;
  readonly optim: number;
}

const OPTIMIZERS: Readonly<Record<RecipeRow["optimizer"], Optimizer>> = {
  fused: "adamw",
  foreach: "adamw-foreach",
  "adamw-8bit": "adamw-8bit",
  sgd: "sgd",
  "sgd-momentum": "sgd-momentum",
  adafactor: "adafactor",
  lion: "lion",
  none: "adamw",
};

const ROWS = readRows("recipes.jsonl") as unknown as RecipeRow[];

function jobOf(row: RecipeRow): Recipe {
  const scaled = row.recipe === "amp-fp16" || row.recipe === "lora-fp16";
  const known = recipeOf(row as unknown as Row);
  return {
    ...known,
    precision: scaled ? "amp-fp16" : known.precision,
    optimizer: OPTIMIZERS[row.optimizer],
    offload: row.optimizer === "none" ? "optimizer" : "none",
    gradAccum: row.grad_accum,
    parallel: row.ddp ? "ddp" : "sharded",
  };
}

function sized(row: RecipeRow): Sizing {
  const asRow = row as unknown as Row;
  const sizing = sizeStructure(located(structureOf(configOf(asRow)), row.config), jobOf(row), row.seq);
  if (!sizing.ok) throw new Error(sizing.error.message);
  return sizing.value;
}

/** What a row is there for, in words. */
function kindOf({ recipe, optimizer, attention, checkpointing, grad_accum, ddp }: RecipeRow): string {
  const words: string[] = [recipe, optimizer, attention];
  if (checkpointing) words.push("checkpointing");
  if (grad_accum > 1) words.push(`accumulation ${grad_accum}`);
  if (ddp) words.push("ddp");
  return words.join(" ");
}

const KINDS = new Map<string, RecipeRow[]>();
for (const row of ROWS) KINDS.set(kindOf(row), [...(KINDS.get(kindOf(row)) ?? []), row]);

test("amp-fp16, sgd, sgd-momentum, adafactor, lion, accumulation, ddp and offload were measured on four families", () => {
  const families = (rows: readonly RecipeRow[]) => new Set(rows.map(({ config }) => config)).size;
  const named = [...KINDS.keys()].join("\n");
  for (const part of [
    "amp-fp16",
    " sgd ",
    "sgd-momentum",
    "adafactor",
    "lion",
    "accumulation 4",
    "ddp",
    "none",
  ])
    expect(named).toContain(part);
  for (const [kind, rows] of KINDS)
    expect([kind, families(rows), rows.length >= 24]).toEqual([kind, 4, true]);
});

const errors: string[] = [];
for (const [kind, rows] of KINDS) {
  test(`peaks under ${kind} are within 0.1 % of the measured, and in the median within 0.01 %`, () => {
    const off = rows.map((row) => (peakBytes(sized(row), row.batch) / row.peak_bytes - 1) * 100);
    const sizes = off.map(Math.abs).sort((a, b) => a - b);
    const median = sizes[Math.floor(sizes.length / 2)]!;
    errors.push(
      `${kind.padEnd(48)}${String(rows.length).padStart(4)}${[median, Math.min(...off), Math.max(...off)].map((x) => x.toFixed(4).padStart(10)).join("")}`,
    );
    expect(median).toBeLessThan(0.01);
    const far = rows.filter((_, at) => Math.abs(off[at]!) > 0.1);
    expect(far.map(({ config, seq, batch }) => [config, seq, batch])).toEqual([]);
  });
}

test("the optimizer's step is as high as measured, whichever moment is highest", () => {
  for (const row of ROWS) {
    const step = sized(row).moments[0]!.fixedBytes;
    // Beside it live the inputs, ids and labels of 8 bytes, and a norm for each gradient.
    const off = row.phase_peaks!.optimizer - 16 * row.batch * row.seq - step;
    expect([kindOf(row), row.config, off > -2048, off < 100_000]).toEqual([
      kindOf(row),
      row.config,
      true,
      true,
    ]);
  }
});

test("the state of every optimizer is the measured one, within 0.1 %", () => {
  console.log(`${"percent off".padEnd(48)}   n    median     under      over\n${errors.sort().join("\n")}`);
  for (const row of ROWS) {
    const { moments } = sized(row);
    const state = moments[0]!.terms.find(({ name }) => name === "optimizer")?.fixedBytes ?? 0;
    // The loss's scale and the count beside it are no state of the optimizer.
    const scaler = jobOf(row).precision === "amp-fp16" ? 1024 : 0;
    const off = Math.abs(state - scaler - row.optim);
    expect([row.config, row.optimizer, off <= Math.max(row.optim / 1000, 512)]).toEqual([
      row.config,
      row.optimizer,
      true,
    ]);
  }
});

test("what was measured is not called unmeasured", () => {
  for (const row of ROWS) expect([kindOf(row), unmeasured(jobOf(row))]).toEqual([kindOf(row), []]);
});
