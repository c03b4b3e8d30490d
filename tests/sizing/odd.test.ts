import { describe, expect, test } from "bun:test";
import { readStructure } from "../../src/model/read.ts";
import { DEFAULT_RECIPE } from "../../src/sizing/recipe.ts";
import { sizeStructure } from "../../src/sizing/size.ts";
import { countsOf, rowsOf } from "./accuracy-rows.ts";
import { summary, table } from "./errors.ts";
import { located } from "./rows.ts";

/**
 * `odd.jsonl`, made by `measure_odd.py` (sizes that nobody ships, other heads), and `heads.jsonl`: classifiers on decoders
 * and the families that came with them.
 */
const TABLES = [
  { file: "odd.jsonl", rows: 550, families: 25, p95: 0.5, under: -3, over: 4 },
  { file: "heads.jsonl", rows: 100, families: 5, p95: 0.1, under: -0.2, over: 0.1 },
];

describe.each(TABLES)("steps of $file", ({ file, ...bars }) => {
  const rows = rowsOf([file]);
  const errors = rows.map(({ family, error }) => ({
    family,
    errorPercent: error === null ? Number.NaN : error * 100,
  }));
  test("are sized within the bars", () => {
    console.log(table(errors, ({ family }) => family));
    const all = summary(errors.map(({ errorPercent }) => errorPercent));
    expect(all.n).toBeGreaterThan(bars.rows);
    expect(new Set(errors.map(({ family }) => family)).size).toBeGreaterThanOrEqual(bars.families);
    expect(all.median).toBeLessThan(0.01);
    expect(all.p95).toBeLessThan(bars.p95);
    expect(all.under).toBeGreaterThan(bars.under);
    expect(all.over).toBeLessThan(bars.over);
  });
  test("train exactly as many parameters", () => {
    const { rows, counted } = countsOf(file);
    expect(counted).toEqual(rows);
  });
});

/** A decoder of the usual sizes under another class: what its head counts, and whether it is said to be unknown. */
const HEADS: readonly (readonly [string, number, boolean])[] = [
  ["LlamaForCausalLM", 32000 * 512, false],
  ["LlamaModel", 0, false],
  ["LlamaForSequenceClassification", 2 * 512, false],
  ["LlamaForTokenClassification", 2 * 512 + 2, false],
  ["LlamaForQuestionAnswering", 2 * 512 + 2, false],
  ["LlamaForRewardModel", 32000 * 512, true],
];

test.each(HEADS)("%s has a head of %d parameters", (name, count, unknown) => {
  const config = {
    model_type: "llama",
    hidden_size: 512,
    num_hidden_layers: 2,
    num_attention_heads: 8,
    intermediate_size: 1024,
    vocab_size: 32000,
    tie_word_embeddings: false,
  };
  const read = (architecture: string) => {
    const structure = readStructure({ ...config, architectures: [architecture] });
    if (!structure.ok) throw new Error(structure.error.message);
    return structure.value;
  };
  expect(read(name).params - read("LlamaModel").params).toBe(count);
  expect(read(name).assumed).toEqual(
    unknown ? [`the head of ${name} is not known; a usual one of the family is counted and sized`] : [],
  );
});

/** A script loads the class that it names, whatever the config does: a size without scores of the vocabulary says so. */
test.each(HEADS)("%s: a size without scores of the vocabulary is told with the verdict", (name) => {
  const structure = readStructure({
    model_type: "llama",
    hidden_size: 512,
    num_hidden_layers: 2,
    num_attention_heads: 8,
    intermediate_size: 1024,
    vocab_size: 32000,
    architectures: [name],
  });
  if (!structure.ok) throw new Error(structure.error.message);
  const sized = sizeStructure(located(structure.value, "m"), DEFAULT_RECIPE, 128, 1);
  if (!sized.ok) throw new Error(sized.error.message);
  const { cautions } = sized.value;
  if (/ForCausalLM|RewardModel/.test(name)) expect(cautions).toEqual([]);
  else {
    expect(cautions).toHaveLength(1);
    expect(cautions?.[0]).toContain(name === "LlamaModel" ? "as a bare model" : "as a classifier");
    expect(cautions?.[0]).toContain("training it as a causal LM needs more");
  }
});
