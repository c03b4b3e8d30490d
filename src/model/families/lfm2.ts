import { decoderGroups } from "../decoder.ts";
import { countParams, type FamilyReader } from "../family.ts";
import { attention, linear } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { contextTokens, headed, layerRuns, nearest, partsStructure, readShape } from "./base.ts";
import { activeOf, type Experts, expertGroups, tokenWidth } from "./experts.ts";
import { RECURRENT_AS_ATTENTION } from "./mamba.ts";

/** LFM2: short convolutions and attention; the feed-forward width is derived (`modeling_lfm2.py`). */
export const lfm2: FamilyReader = {
  types: ["lfm2", "lfm2_moe"],
  read(config) {
    const moe = config.text("model_type", "") === "lfm2_moe";
    const read = readShape(config, {
      hidden: moe ? 2048 : 2560,
      layers: 32,
      vocab: 65536,
      ffn: moe ? 7168 : 12288,
      heads: 32,
      kvHeads: 8,
      headDim: "split",
      tied: config.flag("tie_embedding", true),
    });
    const multiple = config.size("block_multiple_of", 256);
    let ffn = config.size(["intermediate_size", "block_ff_dim"], read.ffn);
    if (!moe && config.flag("block_auto_adjust_ff_dim", true)) {
      ffn = Math.trunc((2 * ffn) / 3);
      if (!config.isNull("block_ffn_dim_multiplier"))
        ffn = Math.trunc(config.ratio("block_ffn_dim_multiplier", 1) * ffn);
      ffn = multiple * Math.ceil(ffn / multiple);
    }
    const head = headed(config, { ...read, ffn, qkNorm: "per-head" });
    const { shape } = head;
    const { layers, hidden } = shape;
    const types = config.list("layer_types");
    const indices = config.list("full_attn_idxs");
    const full = Math.min(
      layers,
      types !== null ? types.filter((type) => type === "full_attention").length : (indices?.length ?? layers),
    );
    const bias = config.flag("conv_bias", false);
    const convolution =
      linear(hidden, 3 * hidden, bias) +
      linear(hidden, hidden, bias) +
      hidden * config.size("conv_L_cache", 3) +
      (bias ? hidden : 0);
    const block = attention(shape, { qkv: false, out: false }) + 2 * shape.headDim;
    const dense = moe ? Math.min(layers, config.sizeOrZero("num_dense_layers", 2)) : layers;
    const side: Experts = {
      sparseLayers: layers - dense,
      denseLayers: dense,
      denseWidth: ffn,
      experts: moe ? config.size("num_experts", 32) : 0,
      perToken: moe ? config.size("num_experts_per_tok", 4) : 0,
      width: moe ? config.size("moe_intermediate_size", 1792) : 0,
      sharedWidth: 0,
    };
    const groups: ParamGroup[] = [
      ...decoderGroups(shape).filter((group) => !["attention", "feed-forward"].includes(group.name)),
      { name: "attention", count: full * block },
      { name: "short convolutions", count: (layers - full) * convolution },
      ...expertGroups(hidden, side),
      ...head.outside,
    ];
    if (!moe) {
      const differs = { convolution: { kernel: config.size("conv_L_cache", 3), bias } };
      const attends = (layer: number) =>
        types !== null ? types[layer] === "full_attention" : indices === null || indices.includes(layer);
      const windows = layerRuns(layers, (layer) =>
        attends(layer) ? { name: "attention", window: null } : { name: "convolution", window: null, differs },
      );
      return partsStructure(
        "lfm2",
        groups,
        { ...shape, windows },
        {
          contextTokens: contextTokens(config),
          paramsOutside: countParams(head.outside),
          notes: head.notes,
        },
      );
    }
    return partsStructure(
      config.text("model_type", "lfm2"),
      groups,
      { ...shape, ffn: tokenWidth(side, shape.hidden) },
      {
        contextTokens: contextTokens(config),
        activeParams: activeOf(groups, side),
        assumed: [nearest("llama"), RECURRENT_AS_ATTENTION],
        notes: head.notes,
      },
    );
  },
};
