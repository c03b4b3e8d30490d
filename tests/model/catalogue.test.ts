import { describe, expect, test } from "bun:test";
import { findInCatalogue, nearestInCatalogue } from "../../src/model/catalogue.ts";

describe("looking a model up", () => {
  const rows: [string, string, string | null][] = [
    ["its id", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"],
    ["a copy of it", "NousResearch/Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"],
    ["another case", "qwen/QWEN3-8b", "Qwen/Qwen3-8B"],
    ["a copy in another case", "nousresearch/llama-2-7B-hf", "meta-llama/Llama-2-7b-hf"],
    ["an unknown one", "nobody/nothing", null],
    ["a part of a name", "Qwen3-8B", null],
    ["a word of a config", "llama", null],
    ["a key of the file", "names", null],
    ["another word of a config", "LlamaForCausalLM", null],
    ["nothing", "", null],
    ["a quote", 'Qwen/"Qwen3-8B', null],
    ["a line end", "Qwen/Qwen3-8B\n", null],
    ["a very long one", "x".repeat(100_000), null],
  ];
  test.each(rows)("%s", (_, name, id) => {
    expect(findInCatalogue(name)?.id ?? null).toBe(id);
  });
});

describe("the name that was meant", () => {
  const rows: [string, string | null][] = [
    ["Qwen3-8B", "Qwen/Qwen3-8B"],
    ["Qwen/Qwen3-8b", "Qwen/Qwen3-8B"],
    ["Qwen/Qwen3_8B", "Qwen/Qwen3-8B"],
    ["meta-lama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"],
    ["my-mirror/gemma-2-9b", "google/gemma-2-9b"],
    ["zzzzzzzzzzzzzzzzzzzz/yyyyyyyyyyyyyyyy", null],
    ["", null],
    ["x", null],
  ];
  test.each(rows)("%s", (name, meant) => {
    expect(nearestInCatalogue(name)).toBe(meant);
  });
});
