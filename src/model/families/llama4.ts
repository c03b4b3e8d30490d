import type { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import type { DecoderShape, LayerRun, Structure } from "../types.ts";
import { contextTokens, headed, layerRuns, readShape } from "./base.ts";
import { type Experts, moeStructure } from "./experts.ts";

/** Layers with experts: the list `moe_layers`, else every `interleave_moe_layer_step`-th. */
function expertLayers(config: ConfigReader, layers: number): number {
  const listed = config.list("moe_layers");
  if (listed !== null) return Math.min(layers, new Set(listed).size);
  const step = Math.max(1, Math.trunc(config.number("interleave_moe_layer_step", 1)));
  return Math.floor(layers / step);
}

/** The layers by kind: with or without positions, sparse or dense. Layers with positions attend within a chunk. */
function runsOf(config: ConfigReader, shape: DecoderShape, side: Experts): LayerRun[] {
  const { layers } = shape;
  const step = Math.max(1, Math.trunc(config.number("interleave_moe_layer_step", 1)));
  const listed = config.list("moe_layers");
  const positions = config.list("no_rope_layers");
  const every = Math.max(1, Math.trunc(config.number("no_rope_layer_interval", 4)));
  const chunk = config.isNull("attention_chunk_size") ? null : config.size("attention_chunk_size", 8192);
  const tuned = config.flag("attn_temperature_tuning", true);
  return layerRuns(layers, (layer) => {
    const stated = positions?.[layer];
    const rotated = stated === undefined ? (layer + 1) % every !== 0 : stated === 1 || stated === true;
    const sparse = listed === null ? (layer + 1) % step === 0 : listed.includes(layer);
    const differs: Partial<DecoderShape> = {
      ...(rotated ? {} : { rotary: 0, qkNorm: "none", queryTuned: tuned }),
      ...(sparse ? {} : { experts: undefined, ffn: side.denseWidth }),
    };
    // A chunk as long as the sequence needs no mask.
    const window = rotated && chunk !== null ? chunk + 1 : null;
    return { name: `${rotated} ${sparse}`, window, differs };
  });
}

/** The text side of Llama 4: experts and one shared expert of the same width; dense layers have their own width. */
export function llama4Structure(config: ConfigReader): Structure {
  const bias = config.flag("attention_bias", false);
  const head = headed(
    config,
    readShape(
      config,
      {
        hidden: 5120,
        layers: 48,
        vocab: 202048,
        ffn: 8192,
        heads: 40,
        kvHeads: 8,
        headDim: 128,
        tied: false,
      },
      {
        bias: { qkv: bias, out: bias, mlp: false, head: false },
        qkNorm: config.flag("use_qk_norm", true) ? "per-head" : "none",
        qkNormBare: true,
        qkNormAfterRotary: true,
        rotaryComplex: true,
        eagerStyle: "plain",
      },
    ),
  );
  const { shape } = head;
  const sparse = expertLayers(config, shape.layers);
  const side: Experts = {
    sparseLayers: sparse,
    denseLayers: shape.layers - sparse,
    denseWidth: config.size("intermediate_size_mlp", 16384),
    experts: config.size("num_local_experts", 16),
    perToken: config.size("num_experts_per_tok", 1),
    width: shape.ffn,
    sharedWidth: shape.ffn,
    everyToken: true,
    router: { scores: "sigmoid-of-chosen", linear: true },
  };
  const structure = moeStructure("llama4_text", shape, side, {
    contextTokens: contextTokens(config),
    outside: head.outside,
    notes: head.notes,
  });
  return { ...structure, decoder: { ...structure.decoder!, windows: runsOf(config, shape, side) } };
}

export const llama4Text: FamilyReader = { types: ["llama4_text"], read: llama4Structure };
