import type { ConfigReader } from "../config.ts";
import { decoderGroups, normParams } from "../decoder.ts";
import type { FamilyReader } from "../family.ts";
import { attention, plainMlp } from "../parts.ts";
import type { DecoderShape, ParamGroup } from "../types.ts";
import { contextTokens, headed, nearest, partsStructure, readShape } from "./base.ts";
import { activeOf, type Experts, tokenWidth } from "./experts.ts";
import { mamba2Mixer, RECURRENT_AS_ATTENTION } from "./mamba.ts";

/** Blocks of a Nemotron-H pattern by kind, from the string of older files or the list of newer ones. */
function nemotronBlocks(config: ConfigReader, layers: number) {
  const counts = { mamba: 0, attention: 0, mlp: 0, moe: 0 };
  const names: Record<string, keyof typeof counts> = {
    M: "mamba",
    mamba: "mamba",
    linear_attention: "mamba",
    "*": "attention",
    attention: "attention",
    full_attention: "attention",
    "-": "mlp",
    mlp: "mlp",
    E: "moe",
    moe: "moe",
  };
  const listed = config.list(["layers_block_type", "layer_types"]);
  const blocks = listed ?? [...config.text("hybrid_override_pattern", "M".repeat(layers))];
  for (const block of blocks.slice(0, 10_000)) {
    const kind = names[String(block)];
    if (kind !== undefined) counts[kind]++;
  }
  return { counts, total: blocks.length };
}

/** Nemotron-H: every layer is one block with one norm: Mamba-2, attention, feed-forward or experts. */
export const nemotronH: FamilyReader = {
  types: ["nemotron_h"],
  read(config) {
    const listed = config.list(["layers_block_type", "layer_types"])?.length;
    const pattern = config.text("hybrid_override_pattern", "").length;
    const layers = listed || pattern || config.size("num_hidden_layers");
    const shape = readShape(
      config.withDefaults({ num_hidden_layers: layers }),
      {
        hidden: 4096,
        layers: 52,
        vocab: 131072,
        ffn: 21504,
        heads: 32,
        kvHeads: 8,
        headDim: 128,
        tied: false,
      },
      {
        layers,
        headDim: config.size(["head_dim", "attention_head_dim"], 128),
        // The class has no tied weights, whatever the file says.
        tiedHead: false,
        mlp: "plain",
        activation: "relu2",
      },
    );
    const head = headed(config, shape);
    const { hidden } = shape;
    const { counts } = nemotronBlocks(config, layers);
    const mlpBias = config.flag("mlp_bias", false);
    const mamba = mamba2Mixer(hidden, {
      heads: config.size("mamba_num_heads", 128),
      headDim: config.size("mamba_head_dim", 64),
      groups: config.size("n_groups", 8),
      state: config.size("ssm_state_size", 128),
      kernel: config.size("conv_kernel", 4),
      convBias: config.flag("use_conv_bias", true),
      bias: config.flag("use_bias", false),
    });
    const latent = config.sizeOrNull("moe_latent_size");
    const width = config.size("moe_intermediate_size", 7688);
    const side: Experts = {
      sparseLayers: counts.moe,
      denseLayers: 0,
      denseWidth: shape.ffn,
      experts: counts.moe > 0 ? config.size("n_routed_experts", 8) : 0,
      perToken: config.size("num_experts_per_tok", 2),
      width,
      sharedWidth: 0,
    };
    const shared = config.size("moe_shared_expert_intermediate_size", 7688);
    const groups: ParamGroup[] = [
      ...decoderGroups(head.shape).filter(
        (group) => !["attention", "feed-forward", "layer norms"].includes(group.name),
      ),
      { name: "layer norms", count: layers * normParams("rms", hidden) },
      { name: "attention", count: counts.attention * attention(shape, { qkv: false, out: false }) },
      { name: "mamba mixers", count: counts.mamba * mamba },
      { name: "feed-forward", count: counts.mlp * plainMlp(hidden, shape.ffn, mlpBias) },
      {
        name: "routed experts",
        count: counts.moe * side.experts * plainMlp(latent ?? hidden, width),
      },
      { name: "router", count: counts.moe * side.experts * hidden },
      { name: "shared feed-forward", count: counts.moe * plainMlp(hidden, shared, mlpBias) },
      {
        name: "latent projections",
        count: latent === null ? 0 : counts.moe * plainMlp(hidden, latent, mlpBias),
      },
      ...head.outside,
    ];
    const decoder: DecoderShape = {
      ...head.shape,
      layers: Math.max(1, Math.ceil(layers / 2)),
      ffn: counts.moe > counts.mlp ? tokenWidth({ ...side, sharedWidth: shared }, hidden) : shape.ffn,
      windows: [{ layers: Math.max(1, Math.ceil(layers / 2)), window: null }],
    };
    return partsStructure("nemotron_h", groups, decoder, {
      contextTokens: contextTokens(config),
      activeParams: activeOf(groups, side),
      assumed: [nearest("llama"), "two blocks of the pattern walked as one layer", RECURRENT_AS_ATTENTION],
      notes: head.notes,
    });
  },
};
