import type { ConfigReader } from "../config.ts";
import { countParams, decoderStructure, type FamilyReader } from "../family.ts";
import { attention, gatedMlp, linear } from "../parts.ts";
import type { DecoderShape, ExpertsShape, ParamGroup, Structure } from "../types.ts";
import { contextTokens, headed, layerRuns, nearest, partsStructure, readShape } from "./base.ts";

function gemmaTraits(config: ConfigReader): Partial<DecoderShape> {
  const bias = config.flag("attention_bias", false);
  return {
    norm: "rms-plus-one",
    normPlacement: "sandwich",
    activation: "gelu-tanh",
    bias: { qkv: bias, out: bias, mlp: false, head: false },
    multipliers: { embedding: true, attention: false, residual: false, logits: false },
  };
}

const SMALL = {
  hidden: 2304,
  ffn: 9216,
  heads: 8,
  kvHeads: 4,
  headDim: 256,
  tied: true,
  window: 4096,
} as const;

export const gemma2: FamilyReader = {
  types: ["gemma2"],
  read(config) {
    const head = headed(
      config,
      readShape(
        config,
        { vocab: 256000, layers: 26, ...SMALL, fullEvery: 2 },
        {
          ...gemmaTraits(config),
          softcap: {
            attention: !config.isNull("attn_logit_softcapping"),
            logits: !config.isNull("final_logit_softcapping"),
          },
        },
      ),
    );
    return decoderStructure("gemma2", head.shape, {
      contextTokens: contextTokens(config),
      outside: head.outside,
      notes: head.notes,
    });
  },
};

/** The text side of Gemma 3; real 4B files leave out heads and vocabulary, so all have class defaults. */
export const gemma3Text: FamilyReader = {
  types: ["gemma3_text"],
  read(config) {
    const head = headed(
      config,
      readShape(
        config,
        { vocab: 262208, layers: 26, ...SMALL, fullEvery: 6 },
        { ...gemmaTraits(config), qkNorm: "per-head" },
      ),
    );
    return decoderStructure("gemma3_text", head.shape, {
      contextTokens: contextTokens(config),
      outside: head.outside,
      notes: head.notes,
    });
  },
};

/** Layers that attend to everything: as `layer_types` says, else every sixth and the last one. */
function globalLayers(config: ConfigReader, layers: number): boolean[] {
  const types = config.list("layer_types");
  const global = Array.from({ length: layers }, (_, layer) =>
    types === null ? (layer + 1) % 6 === 0 : types[layer] !== "sliding_attention",
  );
  global[layers - 1] = true;
  return global;
}

function expertsBeside(count: number, perToken: number, width: number): ExpertsShape {
  return {
    count,
    perToken: Math.min(perToken, count),
    width,
    bias: false,
    shared: null,
    beside: true,
    router: {
      scores: "softmax",
      normalized: true,
      scaled: true,
      returns: "scores",
      full: false,
      bias: false,
      groups: null,
    },
  };
}

/**
 * The text side of Gemma 4 (`modeling_gemma4.py`): global layers have heads of their own size, and with
 * `attention_k_eq_v` no value matrix; the last `num_kv_shared_layers` have no keys and values at all.
 */
export function gemma4Structure(config: ConfigReader): Structure {
  const head = headed(
    config,
    readShape(
      config,
      { vocab: 262144, layers: 30, ...SMALL, window: 512, fullEvery: 6 },
      { ...gemmaTraits(config), qkNorm: "per-head" },
    ),
  );
  const { shape } = head;
  const { layers, hidden, heads, bias } = shape;
  const globalDim = config.isNull("global_head_dim") ? shape.headDim : config.size("global_head_dim", 512);
  const keyIsValue = config.flag("attention_k_eq_v", false);
  const globalKv =
    keyIsValue && config.has("num_global_key_value_heads")
      ? config.size("num_global_key_value_heads")
      : shape.kvHeads;
  const shared = Math.min(layers, config.sizeOrNull("num_kv_shared_layers") ?? 0);
  const wide = config.flag("use_double_wide_mlp", false);
  let attend = 0;
  let norms = 0;
  let mlp = 0;
  globalLayers(config, layers).forEach((global, layer) => {
    const headDim = global ? globalDim : shape.headDim;
    const reuse = layer >= layers - shared && shared > 0;
    const kv = reuse ? 0 : global ? globalKv : shape.kvHeads;
    const matrices = attention({ hidden, heads, kvHeads: kv, headDim }, { qkv: bias.qkv, out: bias.out });
    attend += matrices - (global && keyIsValue ? linear(hidden, kv * headDim, bias.qkv) : 0);
    norms += 4 * hidden + (reuse ? headDim : 2 * headDim);
    mlp += gatedMlp(hidden, shape.ffn * (wide && reuse ? 2 : 1));
  });
  const ple = config.isNull("hidden_size_per_layer_input")
    ? 0
    : config.sizeOrZero("hidden_size_per_layer_input", 256);
  const moe = config.flag("enable_moe_block", false);
  const experts = moe ? config.size("num_experts") : 0;
  const width = moe ? config.size(["moe_intermediate_size", "expert_intermediate_size"]) : 0;
  const perToken = moe ? config.size(["top_k_experts", "num_experts_per_tok"]) : 0;
  const routed = layers * experts * gatedMlp(hidden, width);
  const groups: ParamGroup[] = [
    { name: "token embedding", count: shape.vocab * hidden },
    {
      name: "per-layer embedding",
      count: ple && config.size("vocab_size_per_layer_input", 262144) * layers * ple,
    },
    {
      name: "per-layer projections",
      count: ple && hidden * layers * ple + ple + layers * (2 * hidden * ple + hidden),
    },
    { name: "attention", count: attend },
    { name: "feed-forward", count: mlp },
    { name: "routed experts", count: routed },
    { name: "router", count: moe ? layers * (hidden + experts + hidden * experts + 3 * hidden) : 0 },
    { name: "layer norms", count: norms },
    { name: "final norm", count: hidden },
    { name: "output head", count: shape.tiedHead ? 0 : shape.vocab * hidden },
    ...head.outside,
  ];
  const unused = moe ? (routed / experts) * (experts - Math.min(perToken, experts)) : 0;
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  if (ple === 0 && shared === 0) {
    const global = globalLayers(config, layers);
    const differs: Partial<DecoderShape> = {
      headDim: globalDim,
      kvHeads: globalKv,
      valueIsKey: keyIsValue,
    };
    const window = shape.windows.find((run) => run.window !== null)?.window ?? null;
    const decoder: DecoderShape = {
      ...shape,
      norm: "rms-power",
      valueNorm: true,
      layerScaled: true,
      softcap: { attention: false, logits: !config.isNull("final_logit_softcapping") },
      windows: layerRuns(layers, (layer) =>
        global[layer] ? { name: "global", window: null, differs } : { name: "local", window },
      ),
      ...(moe ? { experts: expertsBeside(experts, perToken, width) } : {}),
    };
    return partsStructure("gemma4_text", groups, decoder, {
      contextTokens: contextTokens(config),
      paramsOutside: countParams(head.outside),
      activeParams: total - unused,
      notes: head.notes,
    });
  }
  return partsStructure(
    "gemma4_text",
    groups,
    { ...shape, ffn: shape.ffn + Math.min(perToken, experts) * width },
    {
      contextTokens: contextTokens(config),
      activeParams: total - unused,
      assumed: [nearest("gemma")],
      notes: head.notes,
    },
  );
}

export const gemma4Text: FamilyReader = { types: ["gemma4_text"], read: gemma4Structure };

export const MORE_GEMMA: readonly FamilyReader[] = [gemma2, gemma3Text, gemma4Text];
