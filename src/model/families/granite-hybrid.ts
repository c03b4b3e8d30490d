import { decoderGroups } from "../decoder.ts";
import { countParams, type FamilyReader } from "../family.ts";
import { attention } from "../parts.ts";
import type { ParamGroup } from "../types.ts";
import { contextTokens, headed, nearest, partsStructure, readShape } from "./base.ts";
import { activeOf, type Experts, expertGroups, tokenWidth } from "./experts.ts";
import { mamba2Mixer, RECURRENT_AS_ATTENTION } from "./mamba.ts";

/** Granite 4: Mamba-2 or attention, a shared feed-forward block in every layer, experts where there are any. */
export const graniteHybrid: FamilyReader = {
  types: ["granitemoehybrid"],
  read(config) {
    const head = headed(
      config,
      readShape(
        config,
        {
          hidden: 4096,
          layers: 32,
          vocab: 32000,
          ffn: 11008,
          heads: 32,
          kvHeads: "heads",
          headDim: "split",
          tied: false,
        },
        {
          bias: {
            qkv: config.flag("attention_bias", false),
            out: config.flag("attention_bias", false),
            mlp: false,
            head: false,
          },
          multipliers: { embedding: true, attention: true, residual: true, logits: true },
        },
      ),
    );
    const { shape } = head;
    const { layers, hidden } = shape;
    const types = config.list(["layer_types", "layers_block_type"]);
    const full =
      types === null
        ? 0
        : Math.min(layers, types.filter((type) => type === "attention" || type === "full_attention").length);
    const mambaHeads = config.size("mamba_n_heads", 128);
    const inner = Math.trunc(config.ratio("mamba_expand", 2) * hidden);
    const stated = typeof config.raw_("mamba_d_head")?.value === "number" ? config.size("mamba_d_head") : 0;
    const mamba = mamba2Mixer(hidden, {
      heads: mambaHeads,
      headDim: stated > 0 ? stated : Math.floor(inner / mambaHeads),
      groups: config.size("mamba_n_groups", 1),
      state: config.size("mamba_d_state", 256),
      kernel: config.size("mamba_d_conv", 4),
      convBias: config.flag("mamba_conv_bias", true),
      bias: config.flag("mamba_proj_bias", false),
    });
    const side: Experts = {
      sparseLayers: layers,
      denseLayers: 0,
      denseWidth: 1,
      experts: config.sizeOrZero("num_local_experts", 8),
      perToken: config.sizeOrZero("num_experts_per_tok", 2),
      width: shape.ffn,
      sharedWidth: config.size("shared_intermediate_size", 1024),
    };
    const groups: ParamGroup[] = [
      ...decoderGroups(shape).filter((group) => !["attention", "feed-forward"].includes(group.name)),
      { name: "attention", count: full * attention(shape, shape.bias) },
      { name: "mamba mixers", count: (layers - full) * mamba },
      ...expertGroups(hidden, side),
      ...head.outside,
    ];
    const dense = full === layers && side.experts === 0;
    if (dense) {
      // Attention in every layer and no experts: granite, but for one matrix for gate and up.
      const rotary = config.text("position_embedding_type", "") === "rope" ? shape.rotary : 0;
      const decoder = { ...shape, ffn: side.sharedWidth, mlp: "gated-fused" as const, rotary };
      return partsStructure("granitemoehybrid", groups, decoder, {
        contextTokens: contextTokens(config),
        paramsOutside: countParams(head.outside),
        notes: head.notes,
      });
    }
    return partsStructure(
      "granitemoehybrid",
      groups,
      { ...shape, ffn: tokenWidth(side, shape.hidden) },
      {
        contextTokens: contextTokens(config),
        activeParams: activeOf(groups, side),
        assumed: full === layers ? [nearest("granite")] : [nearest("granite"), RECURRENT_AS_ATTENTION],
        notes: head.notes,
      },
    );
  },
};
