/*
 * Writes docs/accuracy.md, as `make accuracy` does: every figure is computed from the fixtures by the code as it
 * stands. `accuracy-page.test.ts` holds the committed page against it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import type { Recipe } from "../../src/facts/types.ts";
import { catalogueNames, findInCatalogue } from "../../src/model/catalogue.ts";
import { readStructure } from "../../src/model/read.ts";
import { defaultSeqLen } from "../../src/sizing/default-length.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { MEASURED_FACTOR, MEASURED_GB_PER_CARD } from "../../src/verdict/fit.ts";
import { assumedRows, type Compared, comparedRows, type Json, namedConfig } from "./accuracy-rows.ts";
import { located } from "./rows.ts";

const ASSUMED_ROWS = assumedRows();

interface Job {
  readonly model: string;
  readonly changes?: Json;
  readonly recipe: Partial<Recipe>;
  readonly seqLen: number;
  readonly batch: number;
  /** `floor`: what no batch changes, where the source does not state its batch. */
  readonly figure?: "floor";
}

interface Anchor {
  readonly row: string;
  readonly source: string;
  readonly setup: string;
  readonly measured: number;
  readonly unit: "GB" | "GiB";
  readonly job: Job;
  /** What stands in where this build does not size the recipe. */
  readonly otherwise?: Pick<Job, "recipe" | "figure"> & { readonly differs: string };
  /** A second way to read the set-up, on a row of its own. */
  readonly also?: { readonly recipe: Job["recipe"]; readonly what: string };
  readonly differs: string;
}

interface Anchors {
  readonly measured: readonly Anchor[];
  readonly notComparable: readonly {
    readonly row: string;
    readonly source: string;
    readonly setup: string;
    readonly measured: string;
    readonly why: string;
  }[];
  readonly examples: readonly {
    readonly setup: string;
    readonly job: Job;
    readonly measuredGb: number;
    readonly publishedGb: readonly number[];
  }[];
}

export const PAGE = `${import.meta.dir}/../../docs/accuracy.md`;

const ANCHORS: Anchors = JSON.parse(
  readFileSync(`${import.meta.dir}/../fixtures/sizing/anchors.json`, "utf8"),
);
const GIB = 2 ** 30;
const HEADROOM = 1.15;

/** The whole page. */
export function accuracyPage(): string {
  return `${[
    "# How near the sizes are",
    "",
    "Written by `make accuracy` from `tests/fixtures/sizing/`; do not edit. GB are 1e9 bytes.",
    "",
    ...stepsSection(comparedRows()),
    ...assumedSection(),
    ...anchorsSection(),
    ...examplesSection(),
  ].join("\n")}\n`;
}

function stepsSection(rows: readonly Compared[]): string[] {
  const sized = rows.filter(isSized);
  const far = sized
    .filter(({ error }) => Math.abs(error) > 0.01)
    .sort((a, b) => Math.abs(b.error) - Math.abs(a.error) || (a.what < b.what ? -1 : 1));
  return [
    "## Against measured training steps",
    "",
    "Each row is one training step of the real transformers, peft and torch code on fake tensors, its live bytes counted",
    "by storage; nothing of our formulas is in it. Errors are (computed - measured) / measured: median and 95 % of their",
    "size, then the furthest below and above. Steps that this build does not size are counted and left out of the errors.",
    "",
    ...errorTable("table", rows, ({ file }) => `\`${file}\``),
    "",
    `Of ${grouped(sized.length)} sized steps ${grouped(sized.filter(({ error }) => Math.abs(error) <= 0.001).length)} are within 0.1 %, ` +
      `and ${far.length} more than 1 % off${far.length > 10 ? "; the furthest ten:" : far.length > 0 ? ":" : "."}`,
    "",
    ...(far.length === 0
      ? []
      : [
          ...table(
            ["step", "recipe", "attention", "measured GB", "error"],
            far
              .slice(0, 10)
              .map(({ what, recipe, kernels, peakBytes: bytes, error }) => [
                what,
                recipe,
                kernels,
                gb(bytes),
                percent(error),
              ]),
          ),
          "",
        ]),
    "### By family",
    "",
    "`*` = the verdict says of at least one of these steps that something was assumed.",
    "",
    ...errorTable("family", rows, ({ family }) => family, true),
    "",
    "### By recipe",
    "",
    ...errorTable("recipe", rows, ({ recipe }) => recipe),
    "",
    "### By attention",
    "",
    ...errorTable("attention", rows, ({ kernels }) => kernels),
    "",
  ];
}

type SizedRow = Compared & { readonly error: number };

function isSized(row: Compared): row is SizedRow {
  return row.error !== null;
}

function errorTable(
  title: string,
  rows: readonly Compared[],
  keyOf: (row: Compared) => string,
  marked = false,
): string[] {
  const groups = new Map<string, Compared[]>();
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row]);
  const lines = [...groups].sort(byKey).map(([key, own]) => {
    const star = marked && own.some(({ assumed }) => assumed) ? " *" : "";
    return [`${key}${star}`, ...errorCells(own)];
  });
  return table(
    [title, "sized", "not sized", "median", "95 % within", "most under", "most over"],
    groups.size > 1 ? [...lines, ["all", ...errorCells(rows)]] : lines,
  );
}

function errorCells(rows: readonly Compared[]): string[] {
  const errors = rows.filter(isSized).map(({ error }) => error);
  const counts = [grouped(errors.length), grouped(rows.length - errors.length)];
  if (errors.length === 0) return [...counts, "-", "-", "-", "-"];
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const at = (share: number) => sizes[Math.min(sizes.length - 1, Math.floor(share * sizes.length))]!;
  const under = Math.min(0, ...errors);
  const over = Math.max(0, ...errors);
  return [...counts, unsigned(at(0.5)), unsigned(at(0.95)), percent(under), percent(over)];
}

/** Which families of the catalogue are still sized with something assumed, by the code as it stands. */
function assumedSection(): string[] {
  const seen = new Set<string>();
  const families = new Map<string, { models: number; assumed: number; unsized: number; said: Set<string> }>();
  for (const name of catalogueNames()) {
    const entry = findInCatalogue(name);
    if (entry === null || seen.has(entry.id)) continue;
    seen.add(entry.id);
    const recorded = { params: entry.params, activeParams: entry.activeParams };
    const structure = readStructure(entry.config, { recorded });
    const family = structure.ok ? structure.value.family : String((entry.config as Json).model_type);
    const own = families.get(family) ?? { models: 0, assumed: 0, unsized: 0, said: new Set<string>() };
    families.set(family, own);
    own.models++;
    const sized = structure.ok
      ? sizeStructure(
          located(structure.value, entry.id),
          DEFAULT_RECIPE,
          defaultSeqLen(structure.value.contextTokens),
        )
      : null;
    if (sized === null || !sized.ok) own.unsized++;
    else if (sized.value.assumed.length > 0) {
      own.assumed++;
      for (const text of sized.value.assumed) own.said.add(text);
    }
  }
  const all = [...families].sort(byKey);
  const sum = (key: "models" | "assumed" | "unsized") => all.reduce((total, [, own]) => total + own[key], 0);
  const open = all.filter(([, own]) => own.assumed + own.unsized > 0);
  const closed = all.filter(([, own]) => own.assumed + own.unsized === 0);
  return [
    "## What is still assumed",
    "",
    `The catalogue inside the executable has ${grouped(sum("models"))} models of ${all.length} families. Under the default recipe`,
    `${grouped(sum("models") - sum("assumed") - sum("unsized"))} of them are sized with nothing assumed, ${grouped(sum("assumed"))} say "assumed", ${grouped(sum("unsized"))} have no size.`,
    "",
    ...(open.length === 0
      ? []
      : [
          ...table(
            ["family", "models", "assumed", "no size", "what the verdict says", "error where measured"],
            open.map(([family, own]) => [
              family === "" ? "(none named)" : family,
              String(own.models),
              String(own.assumed),
              String(own.unsized),
              saidOf([...own.said]),
              assumedError(family),
            ]),
          ),
          "",
        ]),
    `Nothing assumed (models): ${closed.map(([family, { models }]) => `${family} (${models})`).join(", ")}.`,
    "",
  ];
}

/** How far the steps of a family are off of which something is assumed, and how they were run. */
function assumedError(family: string): string {
  const rows = ASSUMED_ROWS.filter((row) => row.family === family && row.error !== null);
  if (rows.length === 0) return "-";
  const errors = rows.map(({ error }) => error!);
  const [least, most] = [percent(Math.min(...errors)), percent(Math.max(...errors))];
  return `${least === most ? least : `${least} to ${most}`} (${[...new Set(rows.map(({ how }) => how))].join(", ")})`;
}

/** At most three sentences; families of many models repeat themselves. */
function saidOf(sentences: readonly string[]): string {
  const shown = [...sentences].sort().slice(0, 3);
  const more = sentences.length - shown.length;
  return `${shown.map((text) => text.replace(/\.$/, "")).join("; ")}${more > 0 ? `; ${more} more` : ""}`;
}

function anchorsSection(): string[] {
  const rows = ANCHORS.measured.map((anchor) => ({ anchor, ...computed(anchor) }));
  const withSecond = ANCHORS.measured.flatMap((anchor) => {
    const { also, job } = anchor;
    const first = { anchor, ...computed(anchor) };
    if (also === undefined) return [first];
    const { figure: _, ...whole } = job;
    const second = {
      ...anchor,
      row: `${anchor.row}+`,
      setup: also.what,
      job: { ...whole, recipe: also.recipe },
    };
    return [first, { anchor: second, ...computed(second) }];
  });
  return [
    "## Against published measurements on GPUs",
    "",
    "Measured by others, with their code, on their machines. Ours is the peak of the matching recipe; what a run takes",
    "beyond it (CUDA context, libraries' work space, fragmentation) is in the headroom, so ours should lie a little below",
    `and the need above. Need is ours x ${HEADROOM}; the margin of measured runs is ours x ${MEASURED_FACTOR} + ${MEASURED_GB_PER_CARD} GB a card.`,
    "`accelerate estimate-memory` prints the largest of model, gradients, optimizer and step, by its own rule 8 bytes a",
    "parameter for 16-bit training and 16 for fp32, without activations and without LoRA; here of all parameters (the",
    "command builds most models without their head and then prints a little less).",
    "",
    ...table(
      [
        "#",
        "setup",
        "measured GB",
        "ours GB",
        "error",
        "need covers",
        "margin covers",
        "accelerate 16-bit",
        "accelerate fp32",
      ],
      withSecond.map(({ anchor, oursGb, floor, params }) => {
        const measuredGb = (anchor.measured * (anchor.unit === "GiB" ? GIB : 1e9)) / 1e9;
        const margin = oursGb === null ? null : oursGb * MEASURED_FACTOR + MEASURED_GB_PER_CARD;
        return [
          anchor.row,
          anchor.setup,
          `${measuredGb.toFixed(2)}${anchor.unit === "GiB" ? ` (${anchor.measured} GiB)` : ""}`,
          oursGb === null ? "not sized" : `${oursGb.toFixed(2)}${floor ? " (floor)" : ""}`,
          oursGb === null ? "-" : percent(oursGb / measuredGb - 1, 1),
          oursGb === null ? "-" : yes(oursGb * HEADROOM >= measuredGb),
          margin === null ? "-" : yes(margin >= measuredGb),
          gb(params * 8),
          gb(params * 16),
        ];
      }),
    ),
    "",
    "Sources, and where the set-ups differ:",
    "",
    ...rows.map(({ anchor, differs }) => `- ${anchor.row}: ${anchor.source}. Differs: ${differs}.`),
    "",
    "Published too, and not comparable:",
    "",
    ...ANCHORS.notComparable.map(
      ({ row, source, setup, measured, why }) =>
        `- ${row}: ${source}: ${setup}: ${measured}. Not compared: ${why}.`,
    ),
    "",
  ];
}

function examplesSection(): string[] {
  return [
    "## The published packages' two example jobs",
    "",
    "Peaks in GB under the default recipe (fp32 weights under bf16 autocast, fused AdamW, no checkpointing). The measured",
    "step is one of the first section's kind; the published figures are those in the READMEs of the neurarch packages.",
    "",
    ...table(
      ["job", "measured step", "ours", "published packages", "accelerate 16-bit", "accelerate fp32"],
      ANCHORS.examples.map(({ setup, job, measuredGb, publishedGb }) => {
        const { oursGb, params } = sizedJob(job);
        return [
          setup,
          measuredGb.toFixed(1),
          oursGb === null ? "not sized" : `${oursGb.toFixed(1)} (${percent(oursGb / measuredGb - 1, 1)})`,
          publishedGb.map((one) => `${one.toFixed(1)} (${percent(one / measuredGb - 1, 1)})`).join(" and "),
          `${gb(params * 8)} (${percent((params * 8) / 1e9 / measuredGb - 1, 1)})`,
          `${gb(params * 16)} (${percent((params * 16) / 1e9 / measuredGb - 1, 1)})`,
        ];
      }),
    ),
  ];
}

function computed(anchor: Anchor) {
  const { job, otherwise, differs } = anchor;
  const first = sizedJob(job);
  if (first.oursGb !== null || otherwise === undefined) {
    return { ...first, floor: job.figure === "floor", differs };
  }
  return {
    ...sizedJob({ ...job, ...otherwise }),
    floor: otherwise.figure === "floor",
    differs: `${differs}; ${otherwise.differs}`,
  };
}

/** Our figure for a job in GB, null where this build does not size its recipe; and its parameters. */
function sizedJob(job: Job): { readonly oursGb: number | null; readonly params: number } {
  const structure = readStructure({ ...namedConfig(job.model), ...job.changes });
  if (!structure.ok) throw new Error(`${job.model}: ${structure.error.message}`);
  const recipe = { ...DEFAULT_RECIPE, ...job.recipe };
  const sized = sizeStructure(located(structure.value, job.model), recipe, job.seqLen);
  const { params } = structure.value;
  if (!sized.ok) return { oursGb: null, params };
  const bytes = job.figure === "floor" ? sized.value.floorBytes : peakBytes(sized.value, job.batch);
  return { oursGb: bytes / 1e9, params };
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replace(/\|/g, "/")).join(" | ")} |`;
  return [line(heads), line(heads.map(() => "---")), ...rows.map(line)];
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Rounded before the sign is looked at, so that no noise of the last bit shows as `-0.00 %`. */
function percent(share: number, decimals = 2): string {
  const text = (share * 100).toFixed(decimals);
  const number = Number(text);
  return number === 0 ? `${(0).toFixed(decimals)} %` : `${number > 0 ? "+" : ""}${text} %`;
}

function unsigned(share: number): string {
  return `${(share * 100).toFixed(2)} %`;
}

function gb(bytes: number): string {
  return (bytes / 1e9).toFixed(1);
}

function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function yes(is: boolean): string {
  return is ? "yes" : "no";
}

if (import.meta.main) writeFileSync(PAGE, accuracyPage());
