import { describe, expect, test } from "bun:test";
import { ConfigReader } from "../../src/model/config.ts";
import { countParams } from "../../src/model/family.ts";
import { CATALOGUE, CONFIGS, readerOf, readRows, structureOf } from "./rows.ts";

describe("dense decoders", () => {
  test("counts equal the measured models' to the parameter", () => {
    const measured = new Map(
      readRows("peaks.jsonl")
        .filter((row) => row.lora_rank === null)
        .map((row) => [row.config, row.params]),
    );
    const seen: string[] = [];
    for (const [name, params] of measured) {
      if (readerOf(CONFIGS[name]!) === null) continue;
      seen.push(name);
      expect([name, structureOf(CONFIGS[name]!).params]).toEqual([name, params]);
    }
    expect(seen.length).toBeGreaterThan(30);
  });

  test("counts equal the catalogue's", () => {
    // A bare `*Model` has no head; that is the business of whoever calls the reader.
    const rows = CATALOGUE.filter(
      (row) =>
        readerOf(row.config) !== null &&
        !/[a-z0-9]Model$/.test(String(row.config.architectures).replace("LMHeadModel", "")),
    );
    expect(rows.length).toBeGreaterThan(130);
    for (const row of rows) expect([row.id, structureOf(row.config).params]).toEqual([row.id, row.params]);
  });

  test("groups add up, and every row reads without an assumption", () => {
    for (const row of CATALOGUE.filter((one) => readerOf(one.config) !== null)) {
      const structure = structureOf(row.config);
      expect(countParams(structure.groups)).toBe(structure.params);
      expect([row.id, structure.assumed]).toEqual([row.id, []]);
    }
  });
});

describe("class defaults where a key is absent or null", () => {
  const read = (config: Record<string, unknown>) => {
    const reader = readerOf(config)!;
    return reader.read(new ConfigReader(config)).decoder!;
  };
  const cases: readonly (readonly [string, Record<string, unknown>, Record<string, unknown>])[] = [
    [
      "llama: kv heads are heads",
      { model_type: "llama", num_attention_heads: 16 },
      { kvHeads: 16, headDim: 256, tiedHead: false },
    ],
    [
      "llama: head_dim null is h / n",
      { model_type: "llama", hidden_size: 512, num_attention_heads: 8, head_dim: null },
      { headDim: 64 },
    ],
    [
      "qwen3: head_dim 128",
      { model_type: "qwen3", hidden_size: 1024, num_attention_heads: 16 },
      { headDim: 128, qkNorm: "per-head" },
    ],
    [
      "qwen2: no window unless asked",
      { model_type: "qwen2", num_hidden_layers: 4, sliding_window: 128 },
      { windows: [{ layers: 4, window: null }] },
    ],
    [
      "qwen2: windowed from max_window_layers on",
      {
        model_type: "qwen2",
        num_hidden_layers: 4,
        use_sliding_window: true,
        sliding_window: 128,
        max_window_layers: 1,
      },
      {
        windows: [
          { layers: 1, window: null },
          { layers: 3, window: 128 },
        ],
      },
    ],
    [
      "mistral: window 4096",
      { model_type: "mistral", num_hidden_layers: 2 },
      { windows: [{ layers: 2, window: 4096 }], kvHeads: 8 },
    ],
    [
      "mistral: window null is none",
      { model_type: "mistral", num_hidden_layers: 2, sliding_window: null },
      { windows: [{ layers: 2, window: null }] },
    ],
    [
      "gemma: tied, head_dim 256",
      { model_type: "gemma" },
      { tiedHead: true, headDim: 256, norm: "rms-plus-one" },
    ],
    [
      "gpt2: n_inner null is 4h",
      { model_type: "gpt2", n_embd: 100, n_head: 4, n_inner: null },
      { ffn: 400, tiedHead: true },
    ],
    [
      "opt-350m: projected embedding, norms after",
      {
        model_type: "opt",
        hidden_size: 1024,
        num_attention_heads: 16,
        word_embed_proj_dim: 512,
        do_layer_norm_before: false,
      },
      { embedWidth: 512, normPlacement: "post-residual", finalNorm: false },
    ],
    [
      "falcon: multi-query is one kv head",
      { model_type: "falcon" },
      { kvHeads: 1, normPlacement: "parallel-one" },
    ],
    [
      "falcon: new architecture, two norms",
      {
        model_type: "falcon",
        new_decoder_architecture: true,
        num_kv_heads: 8,
        num_attention_heads: 64,
        hidden_size: 4096,
      },
      { kvHeads: 8, normPlacement: "parallel-two" },
    ],
    [
      "gpt_neox: a quarter of a head rotates",
      { model_type: "gpt_neox" },
      { rotary: 0.25, normPlacement: "parallel-two" },
    ],
    ["phi3: tied only when said", { model_type: "phi3", tie_word_embeddings: true }, { tiedHead: true }],
  ];
  for (const [name, config, expected] of cases)
    test(name, () => expect(read(config)).toMatchObject(expected));
});
