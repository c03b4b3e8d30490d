import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { knownTypes } from "../../src/model/families/index.ts";
import { parseConfig, readStructure } from "../../src/model/read.ts";
import type { Structure } from "../../src/model/types.ts";

type Json = Record<string, unknown>;

const LLAMA: Json = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 256,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 2,
  intermediate_size: 512,
  vocab_size: 1000,
  max_position_embeddings: 2048,
  torch_dtype: "bfloat16",
};

function read(config: unknown): Structure {
  const answer = readStructure(config);
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value;
}

function refusal(config: unknown): string {
  const answer = readStructure(config);
  return answer.ok ? `read as ${answer.value.family}` : answer.error.message;
}

describe("a config that is none", () => {
  const rows: [string, unknown, string][] = [
    ["null", null, "the config is null, not an object of keys"],
    ["a list", [LLAMA], "the config is a list, not an object of keys"],
    ["text", "llama", "the config is a string, not an object of keys"],
    ["a number", 7, "the config is a number, not an object of keys"],
    ["empty", {}, "the config has no `model_type` and lacks `hidden_size`"],
    ["no sizes", { model_type: "llama" }, "the config has no `hidden_size`"],
    ["no depth", { model_type: "llama", hidden_size: 64 }, "the config has no `num_hidden_layers`"],
    ["no width under its family's name", { model_type: "t5", num_layers: 2 }, "the config has no `d_model`"],
    ["no depth under its family's name", { model_type: "gpt2", n_embd: 64 }, "the config has no `n_layer`"],
    ["model_type a number", { ...LLAMA, model_type: 4 }, "`model_type` is 4, not a name"],
    ["negative", { ...LLAMA, hidden_size: -1 }, "`hidden_size` is -1, not a whole number from 1 to 10000000"],
    ["zero", { ...LLAMA, vocab_size: 0 }, "`vocab_size` is 0, not a whole number from 1 to 1000000000"],
    [
      "a fraction",
      { ...LLAMA, hidden_size: 2.5 },
      "`hidden_size` is 2.5, not a whole number from 1 to 10000000",
    ],
    [
      "text for a size",
      { ...LLAMA, hidden_size: "256" },
      '`hidden_size` is "256", not a whole number from 1 to 10000000',
    ],
    [
      "a list for a size",
      { ...LLAMA, num_attention_heads: [8] },
      "`num_attention_heads` is a list of 1, not a whole number from 1 to 10000000",
    ],
    [
      "an object for a size",
      { ...LLAMA, intermediate_size: {} },
      "`intermediate_size` is an object, not a whole number from 1 to 10000000",
    ],
    [
      "true for a size",
      { ...LLAMA, intermediate_size: true },
      "`intermediate_size` is true, not a whole number from 1 to 10000000",
    ],
    [
      "a thousand million layers",
      { ...LLAMA, num_hidden_layers: 1e9 },
      "`num_hidden_layers` is 1000000000, not a whole number from 1 to 10000",
    ],
    [
      "a width beyond belief",
      { ...LLAMA, hidden_size: 1e30 },
      "`hidden_size` is 1e+30, not a whole number from 1 to 10000000",
    ],
    [
      "text for a flag",
      { ...LLAMA, tie_word_embeddings: "yes" },
      '`tie_word_embeddings` is "yes", not true or false',
    ],
    [
      "a context that is text",
      { ...LLAMA, model_type: "mixtral", max_position_embeddings: "long" },
      '`max_position_embeddings` is "long", not a whole number from 1 to 1000000000',
    ],
    [
      "a nested key",
      { model_type: "gemma3", text_config: { hidden_size: 64, num_hidden_layers: -3 } },
      "`text_config.num_hidden_layers` is -3, not a whole number from 1 to 10000",
    ],
    [
      "a nested vision key",
      { model_type: "llava", text_config: {}, vision_config: { hidden_size: "x" } },
      '`vision_config.hidden_size` is "x", not a whole number from 1 to 10000000',
    ],
    [
      "more heads than width",
      { ...LLAMA, model_type: "mixtral", hidden_size: 4 },
      "`num_attention_heads` is 8, more than the hidden size 4",
    ],
    [
      "a senseless factor",
      { model_type: "mamba", hidden_size: 8, num_hidden_layers: 1, expand: -2 },
      "`expand` is -2, not a number above 0",
    ],
    [
      "control characters",
      { ...LLAMA, hidden_size: "a\nb\u001b[31m" },
      '`hidden_size` is "a\\nb\\u001b[31m", not a whole number from 1 to 10000000',
    ],
    [
      "sizes beyond any model",
      {
        ...LLAMA,
        hidden_size: 1e7,
        intermediate_size: 1e7,
        num_hidden_layers: 1e4,
        num_attention_heads: 100,
        num_key_value_heads: 100,
      },
      "the config's sizes give 7.0e+18 parameters, more than any model has (`hidden_size` 10000000, `num_hidden_layers` 10000, `vocab_size` 1000)",
    ],
    [
      "an unknown family without the usual keys",
      { model_type: "futurenet", hidden_size: 64 },
      'the config is of the unknown family "futurenet" and lacks `num_hidden_layers`',
    ],
  ];
  test.each(rows)("%s", (_, config, message) => {
    expect(refusal(config)).toBe(message);
  });
});

describe("any JSON at all", () => {
  const keys = [
    ...Object.keys(LLAMA),
    "text_config",
    "vision_config",
    "layer_types",
    "head_dim",
    "num_experts",
    "num_experts_per_tok",
    "n_embd",
    "n_layer",
    "d_model",
    "num_layers",
    "conv_dim",
    "expand",
    "id2label",
    "image_size",
    "quantization_config",
    "tie_word_embeddings",
    "hybrid_override_pattern",
    "mlp_ratio",
  ];
  const value = fc.oneof(
    fc.integer(),
    fc.double(),
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.anything(), { maxLength: 3 }),
    fc.constantFrom(1, 2, 8, 64, 1e9, 2 ** 53, -1),
  );
  const config = fc.record({
    base: fc.dictionary(fc.constantFrom(...keys), value),
    text: fc.option(fc.dictionary(fc.constantFrom(...keys), value)),
    type: fc.constantFrom(...knownTypes(), "", "futurenet"),
    whole: fc.boolean(),
  });
  test("is a structure with believable counts or one line naming the fault", () => {
    fc.assert(
      fc.property(config, ({ base, text, type, whole }) => {
        const sizes = whole ? { hidden_size: 64, num_hidden_layers: 2, d_model: 64, encoder_layers: 2 } : {};
        const answer = readStructure({
          ...sizes,
          ...base,
          ...(text && { text_config: text }),
          model_type: type,
        });
        if (answer.ok) {
          expect(Number.isSafeInteger(answer.value.params) && answer.value.params > 0).toBe(true);
          expect(answer.value.activeParams).toBeLessThanOrEqual(answer.value.params);
        } else {
          expect(answer.error.message).toMatch(/^[^\n\r]{1,300}$/);
        }
      }),
      { numRuns: 3000 },
    );
  });
  test("also what is no object", () => {
    fc.assert(
      fc.property(fc.anything(), (raw) => void readStructure(raw)),
      { numRuns: 500 },
    );
  });
});

describe("where the text model is nested", () => {
  const text = {
    model_type: "llama",
    hidden_size: 128,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    intermediate_size: 256,
    vocab_size: 500,
  };
  const vision = {
    model_type: "clip_vision_model",
    hidden_size: 64,
    intermediate_size: 128,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    image_size: 56,
    patch_size: 14,
  };
  const llava = { model_type: "llava", text_config: text, vision_config: vision };

  test("the text's shape is walked and the tower is counted as weights", () => {
    const structure = read(llava);
    expect(structure.decoder).toMatchObject({ hidden: 128, layers: 2, heads: 4 });
    expect(structure.groups.map((group) => group.name)).toContain("vision tower");
    expect(structure.paramsOutside).toBeGreaterThan(0);
  });
  test("keys left out are the defaults of the text's class: real llava-1.5 leaves out its sizes", () => {
    const real = {
      model_type: "llava",
      text_config: { model_type: "llama", vocab_size: 32064 },
      vision_config: { ...vision },
    };
    expect(read(real).decoder).toMatchObject({ hidden: 4096, layers: 32, ffn: 11008, heads: 32 });
  });
  test("Gemma 3 4B leaves out heads and vocabulary", () => {
    const gemma = {
      model_type: "gemma3",
      text_config: {
        model_type: "gemma3_text",
        hidden_size: 2560,
        num_hidden_layers: 34,
        intermediate_size: 10240,
      },
      vision_config: {
        hidden_size: 1152,
        intermediate_size: 4304,
        num_hidden_layers: 27,
        num_attention_heads: 16,
        image_size: 896,
        patch_size: 14,
        vision_use_head: false,
      },
    };
    expect(read(gemma).decoder).toMatchObject({
      heads: 8,
      kvHeads: 4,
      headDim: 256,
      vocab: 262208,
      tiedHead: true,
    });
    expect(read(gemma).params).toBe(4_300_079_472);
  });
  test("flat keys of older files are the same numbers; a nested one wins and that is noted", () => {
    const vl = {
      vocab_size: 2000,
      hidden_size: 256,
      num_hidden_layers: 3,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      intermediate_size: 512,
    };
    const flat = { model_type: "qwen2_vl", ...vl, vision_config: {} };
    const nested = { model_type: "qwen2_vl", text_config: vl, vision_config: {} };
    const both = { ...flat, vocab_size: 3000, text_config: vl };
    expect(read(flat).params).toBe(read(nested).params);
    expect(read(both).params).toBe(read(nested).params);
    expect(read(both).notes).toContain("text_config wins over the top level for vocab_size");
    expect(read(nested).notes.join()).not.toContain("wins over");
  });
  test("the top level decides on tying", () => {
    const tied = read({
      ...llava,
      model_type: "llava_next",
      tie_word_embeddings: true,
      text_config: { ...text, tie_word_embeddings: false },
    });
    const untied = read({
      ...llava,
      model_type: "llava_next",
      tie_word_embeddings: false,
      text_config: { ...text, tie_word_embeddings: true },
    });
    expect(untied.params - tied.params).toBe(500 * 128);
  });
});

describe("attention of 4 heads of 256 on a width of 640", () => {
  test("has 1,638,400 parameters a layer", () => {
    const config = {
      model_type: "gemma3_text",
      hidden_size: 640,
      num_hidden_layers: 1,
      num_attention_heads: 4,
      num_key_value_heads: 1,
      head_dim: 256,
      intermediate_size: 8,
      vocab_size: 8,
    };
    const group = read(config).groups.find((part) => part.name === "attention");
    expect(group?.count).toBe(1_638_400 + 2 * 256);
  });
});

describe("tying where the file says nothing is the family's", () => {
  const rows: [string, Json, boolean][] = [
    ["gemma2", { model_type: "gemma2" }, true],
    ["llama", { model_type: "llama" }, false],
    ["llama, true", { model_type: "llama", tie_word_embeddings: true }, true],
    ["gemma2, false", { model_type: "gemma2", tie_word_embeddings: false }, false],
    ["cohere", { model_type: "cohere" }, true],
    ["bloom", { model_type: "bloom" }, true],
    ["phi", { model_type: "phi" }, false],
    ["mixtral", { model_type: "mixtral" }, false],
    ["gpt_bigcode", { model_type: "gpt_bigcode" }, true],
  ];
  test.each(rows)("%s", (_, part, tied) => {
    const sizes = {
      hidden_size: 64,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 4,
      n_head: 4,
    };
    expect(read({ ...sizes, ...part }).decoder?.tiedHead).toBe(tied);
  });
  test("mT5 and flan-T5 have a head of their own, as their checkpoints do", () => {
    const t5 = { d_model: 64, num_layers: 2, d_ff: 128, num_heads: 2, vocab_size: 1000 };
    const tied = read({ model_type: "t5", ...t5 }).params;
    expect(read({ model_type: "t5", ...t5, tie_word_embeddings: false }).params - tied).toBe(64_000);
    expect(read({ model_type: "mt5", ...t5 }).groups.map((group) => group.name)).toContain("output head");
  });
});

describe("an architecture that names a bare model has no head", () => {
  test.each([
    ["MistralModel", "mistral"],
    ["Qwen2Model", "qwen2"],
    ["MixtralModel", "mixtral"],
  ])("%s", (name, model_type) => {
    const whole = read({ ...LLAMA, model_type, architectures: [name.replace("Model", "ForCausalLM")] });
    const bare = read({ ...LLAMA, model_type, architectures: [name] });
    expect(whole.params - bare.params).toBe(256_000);
    expect(bare.notes).toContain(`${name}: no output head is counted`);
  });
  test("GPT2LMHeadModel has one", () => {
    expect(read({ ...LLAMA, architectures: ["GPT2LMHeadModel"] }).params).toBe(read(LLAMA).params);
  });
  test("a classifier has one row a label", () => {
    const config = {
      ...LLAMA,
      architectures: ["LlamaForSequenceClassification"],
      id2label: { 0: "a", 1: "b", 2: "c" },
    };
    expect(read(LLAMA).params - read(config).params).toBe(256_000 - 3 * 256);
  });
});

describe("the dtype of the weights", () => {
  const rows: [string, Json, string][] = [
    ["dtype alone", { torch_dtype: null, dtype: "float16" }, "weights stored as float16 (dtype)"],
    ["torch_dtype alone", {}, "weights stored as bfloat16 (torch_dtype)"],
    ["both", { dtype: "float32" }, "weights stored as float32 (dtype)"],
    ["neither", { torch_dtype: null }, "the config names no dtype; weights are taken as stored in bfloat16"],
    ["auto", { torch_dtype: "auto" }, "the config names no dtype; weights are taken as stored in bfloat16"],
    ["a class's name", { torch_dtype: "torch.float16" }, "weights stored as float16 (torch_dtype)"],
    [
      "nested only",
      { torch_dtype: null, text_config: { dtype: "float16" } },
      "weights stored as float16 (dtype)",
    ],
  ];
  test.each(rows)("%s", (_, part, note) => {
    expect(read({ ...LLAMA, ...part }).notes).toContain(note);
  });
});

describe("how the weights are stored changes no count", () => {
  test.each(["mxfp4", "fp8", "gptq"])("%s", (quant_method) => {
    const structure = read({ ...LLAMA, quantization_config: { quant_method } });
    expect(structure.params).toBe(read(LLAMA).params);
    expect(structure.notes.join()).toContain(`quantization_config (${quant_method})`);
  });
  test("remote code is named and not run", () => {
    const structure = read({ ...LLAMA, auto_map: { AutoModel: "modeling_x.X" } });
    expect(structure.notes.join()).toContain("auto_map names remote code, which is never run");
  });
  test("a layer for predicting more tokens is not counted", () => {
    const config = { ...LLAMA, model_type: "deepseek_v3", n_routed_experts: 4, moe_intermediate_size: 64 };
    expect(read({ ...config, num_nextn_predict_layers: 1 }).params).toBe(read(config).params);
  });
});

describe("the context", () => {
  const rows: [string, Json, number | null][] = [
    ["as stated", {}, 2048],
    [
      "never multiplied by a rope factor",
      {
        max_position_embeddings: 1_048_576,
        rope_scaling: { factor: 32, type: "deepseek_yarn", original_max_position_embeddings: 32_768 },
      },
      1_048_576,
    ],
    [
      "DeepSeek-V3",
      {
        model_type: "deepseek_v3",
        max_position_embeddings: 163_840,
        rope_scaling: { factor: 40, original_max_position_embeddings: 4096 },
      },
      163_840,
    ],
    ["RoBERTa keeps two rows", { model_type: "roberta", max_position_embeddings: 514 }, 512],
    ["mamba has none", { model_type: "mamba" }, null],
    [
      "T5 has none",
      { model_type: "t5", d_model: 64, num_layers: 6, num_decoder_layers: 4, n_positions: 512 },
      null,
    ],
  ];
  test.each(rows)("%s", (_, part, context) => {
    expect(read({ ...LLAMA, ...part }).contextTokens).toBe(context);
  });
  test("T5's two stacks are counted each by its own depth, with cross attention", () => {
    const t5 = {
      model_type: "t5",
      d_model: 64,
      d_kv: 16,
      d_ff: 128,
      num_heads: 4,
      vocab_size: 100,
      num_layers: 6,
      n_positions: 512,
    };
    const block = 4 * 64 * 64;
    const mlp = 2 * 64 * 128;
    const four = read({ ...t5, num_decoder_layers: 4 }).params;
    expect(read({ ...t5, num_decoder_layers: 5 }).params - four).toBe(2 * block + mlp + 3 * 64);
    expect(read({ ...t5, num_layers: 7, num_decoder_layers: 4 }).params - four).toBe(block + mlp + 2 * 64);
    expect(read(t5).params - four).toBe(2 * (2 * block + mlp + 3 * 64));
  });
});

describe("a family that is not known by name", () => {
  const sizes = { ...LLAMA, model_type: "futurenet", architectures: ["FuturenetForCausalLM"] };
  test("is read as llama, and that is said", () => {
    expect(read(sizes).params).toBe(read(LLAMA).params);
    expect(read(sizes).assumed.join()).toContain('the family "futurenet" is not known');
  });
  test("under the keys that GPT-2 writes", () => {
    const keys = {
      model_type: "futurenet",
      n_embd: 64,
      n_layer: 2,
      n_head: 4,
      n_inner: 256,
      vocab_size: 100,
    };
    expect(read(keys).params).toBeGreaterThan(0);
  });
  test("its experts are counted", () => {
    const experts = { ...sizes, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 128 };
    const structure = read(experts);
    expect(structure.params).toBeGreaterThan(4 * 8 * 3 * 256 * 128);
    expect(structure.params - structure.activeParams).toBe(4 * 6 * 3 * 256 * 128);
  });
  test("experts under the name that Aria and ERNIE write are counted", () => {
    const named = { ...sizes, moe_num_experts: 8, moe_topk: 2, moe_intermediate_size: 128 };
    expect(read(named).params).toBe(
      read({ ...sizes, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 128 }).params,
    );
  });
  test("shared experts are counted in every layer, routed ones not in the dense layers", () => {
    const routed = { ...sizes, n_routed_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 128 };
    const shared = read({ ...routed, n_shared_experts: 2 });
    expect(shared.params - read(routed).params).toBe(4 * 2 * 3 * 256 * 128);
    const dense = read({ ...routed, first_k_dense_replace: 1 });
    expect(read(routed).params - dense.params).toBe(6 * 3 * 256 * 128 + 8 * 256);
  });
  test("towers beside it are counted as plain layers where they name their sizes", () => {
    const text = { model_type: "futurevl", text_config: { ...LLAMA } };
    const layers = (config: object) => read({ ...text, ...config }).params - read(text).params;
    const vision = { vision_config: { hidden_size: 64, num_hidden_layers: 3, intermediate_size: 100 } };
    const audio = { audio_config: { d_model: 32, encoder_layers: 2, encoder_ffn_dim: 128 } };
    expect(layers(vision)).toBe(3 * (4 * 64 * 64 + 2 * 64 * 100));
    expect(layers({ ...vision, ...audio }) - layers(vision)).toBe(2 * (4 * 32 * 32 + 2 * 32 * 128));
    expect(read({ ...text, ...vision }).assumed.join()).toContain("counted as plain layers");
    expect(layers({ vision_config: { hidden_size: [64], num_hidden_layers: 3 } })).toBe(0);
  });
  test("towers beside it are said not to be counted", () => {
    const config = { model_type: "futurevl", text_config: { ...LLAMA }, vision_config: { hidden_size: 64 } };
    expect(read(config).assumed.join()).toContain("towers for images or sound are not counted");
  });
  test("a recorded count is used and said", () => {
    const answer = readStructure(sizes, { recorded: { params: 12_345_678, activeParams: null } });
    expect(answer).toMatchObject({ ok: true, value: { params: 12_345_678, family: "futurenet" } });
    expect(answer.ok && answer.value.assumed.join()).toContain("as recorded in the catalogue");
    const nothing = readStructure({ model_type: "futurenet" }, { recorded: { params: 5, activeParams: 3 } });
    expect(nothing).toMatchObject({ ok: true, value: { params: 5, activeParams: 3, decoder: null } });
  });
});

describe("the text of a config.json", () => {
  const rows: [string, string, unknown][] = [
    ["as it should be", '{"a": 1}', { a: 1 }],
    ["with a byte order mark", '\ufeff{"a": 1}', { a: 1 }],
    [
      "with Python's Infinity",
      '{"a": [0.0, Infinity], "b": -Infinity, "c": NaN}',
      { a: [0, null], b: null, c: null },
    ],
    ["with these words in strings", '{"a": "Infinity \\" NaN", "b": NaN}', { a: 'Infinity " NaN', b: null }],
  ];
  test.each(rows)("%s", (_, text, value) => {
    expect(parseConfig(text)).toEqual({ ok: true, value });
  });
  test.each(["", "<!doctype html>", "version https://git-lfs.github.com/spec/v1", "{", '{"a": 1,}'])(
    "not %p",
    (text) => {
      expect(parseConfig(text)).toMatchObject({
        ok: false,
        error: { message: "the config is not valid JSON" },
      });
    },
  );
});

describe("attention windows", () => {
  const sizes = { hidden_size: 64, num_hidden_layers: 12, num_attention_heads: 4, intermediate_size: 64 };
  const rows: [string, Json, [number, number | null][]][] = [
    ["none", { model_type: "mixtral" }, [[12, null]]],
    ["null is none", { model_type: "gemma2", sliding_window: null }, [[12, null]]],
    [
      "every other layer by the class",
      { model_type: "gemma2" },
      [
        [6, null],
        [6, 4096],
      ],
    ],
    [
      "five of six by the class",
      { model_type: "gemma3_text", sliding_window: 512 },
      [
        [2, null],
        [10, 512],
      ],
    ],
    [
      "three of four, also where the pattern is letters",
      { model_type: "exaone4", sliding_window_pattern: "LLLG" },
      [
        [3, null],
        [9, 4096],
      ],
    ],
    [
      // Its layers without a window have no positions either, and one of them is the last.
      "the older pattern key",
      { model_type: "cohere2", sliding_window: 100, sliding_window_pattern: 3 },
      [
        [8, 100],
        [4, null],
      ],
    ],
    [
      "layer_types above the pattern",
      {
        model_type: "olmo3",
        sliding_window: 100,
        layer_types: ["sliding_attention", "full_attention", "sliding_attention"],
      },
      [
        [10, null],
        [2, 100],
      ],
    ],
    ["off unless turned on", { model_type: "qwen3_moe", sliding_window: 100 }, [[12, null]]],
    ["turned on", { model_type: "qwen3_moe", sliding_window: 100, use_sliding_window: true }, [[12, 100]]],
  ];
  test.each(rows)("%s", (_, part, windows) => {
    const got = read({ ...sizes, ...part }).decoder?.windows.map((run) => [run.layers, run.window]);
    expect(got).toEqual(windows);
  });
});

describe("where a value came from", () => {
  test("is its key, the nested one's with its section, or the family's default", () => {
    const text = { model_type: "gemma3_text", hidden_size: 64, num_hidden_layers: 2 };
    const inputs = read({ model_type: "gemma3", text_config: text, vision_config: {} }).inputs;
    expect(inputs).toContainEqual({
      name: "text_config.hidden_size",
      value: 64,
      from: "config key text_config.hidden_size",
    });
    expect(inputs).toContainEqual({
      name: "text_config.num_attention_heads",
      value: 8,
      from: "default of the family",
    });
    expect(inputs).toContainEqual({
      name: "vision_config.patch_size",
      value: 16,
      from: "default of the family",
    });
    expect(read(LLAMA).inputs).toContainEqual({
      name: "vocab_size",
      value: 1000,
      from: "config key vocab_size",
    });
  });
});

describe("a class that is half of a model", () => {
  const BART: Json = {
    model_type: "bart",
    d_model: 64,
    encoder_layers: 2,
    decoder_layers: 2,
    encoder_attention_heads: 4,
    decoder_attention_heads: 4,
    encoder_ffn_dim: 128,
    decoder_ffn_dim: 128,
    vocab_size: 100,
  };
  test.each([
    ["BartForConditionalGeneration", []],
    ["BartForCausalLM", ["BartForCausalLM leaves out a part of the model; the whole is counted"]],
  ])("%s", (name, assumed) => {
    expect([...read({ ...BART, architectures: [name] }).assumed]).toEqual(assumed);
  });
});
