import { readdirSync, readFileSync } from "node:fs";
import { OPTIMIZERS, type Optimizer, type Recipe } from "../../src/facts/types.ts";
import { readStructure } from "../../src/model/read.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { CATALOGUE, CONFIGS, located, type Row, readRows, recipeOf } from "./rows.ts";

export type Json = Record<string, unknown>;

/** What rows of later files say beside the usual keys. */
export type AnyRow = Row & {
  /** The whole config that `changes` are made to, where no list of configs has it. */
  readonly raw?: Json;
  readonly untied?: boolean;
  readonly grad_accum?: number;
  readonly ddp?: boolean;
  readonly loss?: Recipe["loss"];
  readonly quant?: Recipe["quant"];
  readonly offload?: Recipe["offload"];
  /** Only in `shared.jsonl`: how cards share the job, and how many do. */
  readonly parallel?: "ddp" | "zero1" | "zero2" | "offload-optimizer" | "offload";
  readonly cards?: number;
  readonly lora_dropout?: number;
};

/** A measured step beside what is computed for it; `error` is a share, null where this build does not size it. */
export interface Compared {
  readonly file: string;
  readonly family: string;
  readonly recipe: string;
  readonly kernels: string;
  readonly error: number | null;
  readonly assumed: boolean;
  readonly what: string;
  readonly peakBytes: number;
}

const FOLDER = `${import.meta.dir}/../fixtures/sizing`;

/** Every row of every table of measured steps. */
export function comparedRows(): Compared[] {
  const files = readdirSync(FOLDER)
    .filter((name) => name.endsWith(".jsonl"))
    .sort();
  return rowsOf(files);
}

/** Every row of some tables. */
export function rowsOf(files: readonly string[]): Compared[] {
  return files.flatMap((file) => (readRows(file) as AnyRow[]).map((row) => compared(file, row)));
}

/** Steps of families of which something is assumed, with how they were measured: told, and in no table of errors. */
export function assumedRows(): (Compared & { readonly how: string })[] {
  const file = "assumed/rows.jsonl";
  return (readRows(file) as (AnyRow & { readonly how: string })[]).map((row) => ({
    ...compared(file, row),
    how: row.how,
  }));
}

/** What the rows of a table say that a model has and trains, and what is counted for them: [config, recipe, all, trained]. */
export function countsOf(file: string): { readonly rows: unknown[]; readonly counted: unknown[] } {
  const rows = readRows(file) as AnyRow[];
  const counted = rows.map((row) => {
    const structure = readStructure(configOf(row));
    const recipe = anyRecipeOf(row);
    if (!structure.ok || recipe === null) throw new Error(row.config);
    const sized = sizeStructure(located(structure.value, "m"), recipe, row.seq, row.cards ?? 1);
    if (!sized.ok) throw new Error(sized.error.message);
    return [row.config, row.recipe, sized.value.params, sized.value.trainableParams];
  });
  return {
    rows: rows.map(({ config, recipe, params, trainable }) => [config, recipe, params, trainable]),
    counted,
  };
}

function compared(file: string, row: AnyRow): Compared {
  const config = configOf(row);
  const recipe = anyRecipeOf(row);
  const told = {
    file,
    family: String(config.model_type),
    recipe: recipeWords(row),
    kernels: `${row.attention}${row.padding_mask ? ", padding mask" : ""}`,
    what: `${row.config}${row.changes === undefined ? "" : " (changed)"}, ${row.seq} tokens x ${row.batch}`,
    peakBytes: row.peak_bytes,
  };
  const structure = readStructure(config);
  const sized =
    recipe === null || !structure.ok
      ? null
      : sizeStructure(located(structure.value, row.config), recipe, row.seq, row.cards ?? 1);
  if (sized === null || !sized.ok) return { ...told, error: null, assumed: false };
  const error = peakBytes(sized.value, row.batch) / row.peak_bytes - 1;
  return { ...told, error, assumed: sized.value.assumed.length > 0 };
}

const STACK_CONFIGS: Readonly<Record<string, Json>> = JSON.parse(
  readFileSync(`${FOLDER}/stack-configs.json`, "utf8"),
);

/** A config by name. Tables drawn from the catalogue mean its configs where a name is in both lists. */
export function namedConfig(name: string, fromCatalogue = false): Json {
  const listed = CATALOGUE.find(({ id }) => id === name)?.config;
  const own = STACK_CONFIGS[name] ?? CONFIGS[name];
  const config = fromCatalogue ? (STACK_CONFIGS[name] ?? listed ?? own) : (own ?? listed);
  if (config === undefined) throw new Error(`no config of ${name}`);
  return config;
}

/** As measured: the named config with the row's changes, whose keys may be dotted. */
export function configOf(row: AnyRow): Json {
  const config = structuredClone(
    row.raw ?? namedConfig(row.config, row.catalogue === true || "untied" in row),
  );
  for (const [key, value] of Object.entries(row.changes ?? {})) {
    const path = key.split(".");
    let at = config;
    for (const name of path.slice(0, -1)) {
      at[name] ??= {};
      at = at[name] as Json;
    }
    at[path.at(-1)!] = value;
  }
  // Rows without a fitted line are of a later run, which had starcoder2's config without its dropouts.
  if (
    row.config === "bigcode/starcoder2-3b" &&
    row.changes === undefined &&
    row.act_fixed === undefined &&
    !row.catalogue
  ) {
    for (const key of ["attention_dropout", "embedding_dropout", "residual_dropout"]) delete config[key];
  }
  return config;
}

/** The row's recipe in our words; null where we have none for it (a step without an optimizer). */
export function anyRecipeOf(row: AnyRow): Recipe | null {
  const named: string = row.optimizer;
  const optimizer = named === "fused" ? "adamw" : named === "foreach" ? "adamw-foreach" : named;
  if (!OPTIMIZERS.includes(optimizer as Optimizer)) return null;
  const recipe = recipeOf(row);
  const half = (row.recipe as string) === "lora-fp16";
  const { parallel } = row;
  return {
    ...recipe,
    precision: half ? "amp-fp16" : recipe.precision,
    optimizer: optimizer as Optimizer,
    gradAccum: row.grad_accum ?? 1,
    parallel:
      row.ddp === true
        ? "ddp"
        : parallel === undefined || parallel.startsWith("offload")
          ? recipe.parallel
          : (parallel as Recipe["parallel"]),
    loss: row.loss ?? recipe.loss,
    quant: row.quant ?? recipe.quant,
    offload:
      row.offload ??
      (parallel === "offload" ? "all" : parallel === "offload-optimizer" ? "optimizer" : recipe.offload),
    ...(row.lora_dropout ? { loraDropout: row.lora_dropout } : {}),
  };
}

const PARALLEL_WORDS: Readonly<Record<NonNullable<AnyRow["parallel"]>, string>> = {
  ddp: "ddp",
  zero1: "zero1",
  zero2: "zero2",
  "offload-optimizer": "offload=optimizer",
  offload: "offload=all",
};

/** `amp-bf16, checkpointing`, `LoRA all-linear on fp32`: what decides most of a peak. */
function recipeWords(row: AnyRow): string {
  const lora: Readonly<Record<string, string>> = {
    lora: "bf16 base, fp32 adapters",
    "lora-bf16": "all bf16",
    "lora-fp32": "fp32 base",
    "lora-fp16": "fp16 base, fp32 adapters",
  };
  const words = [
    row.lora_rank === null
      ? row.recipe
      : `LoRA ${row.targets === "all-linear" ? "all-linear" : "attention"}, ${lora[row.recipe] ?? row.recipe}`,
  ];
  if (row.lora_dropout) words.push("dropout");
  if (row.checkpointing) words.push("checkpointing");
  const optimizers: Readonly<Record<string, string>> = { foreach: "adamw-foreach", none: "no optimizer" };
  if (row.optimizer !== "fused") words.push(optimizers[row.optimizer] ?? row.optimizer);
  if ((row.grad_accum ?? 1) > 1) words.push("grad-accum");
  if (row.ddp === true) words.push("ddp");
  if (row.parallel !== undefined) words.push(PARALLEL_WORDS[row.parallel]);
  for (const key of ["loss", "quant", "offload"] as const) {
    const value = row[key];
    if (value !== undefined && value !== "full" && value !== "none") words.push(`${key}=${value}`);
  }
  return words.join(", ");
}
