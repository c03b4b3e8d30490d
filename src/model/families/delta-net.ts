import type { ConfigReader } from "../config.ts";
import { decoderGroups } from "../decoder.ts";
import { countParams, type FamilyReader } from "../family.ts";
import { attention, gatedMlp, linear } from "../parts.ts";
import type { DecoderShape, ParamGroup } from "../types.ts";
import { contextTokens, headed, layerRuns, partsStructure, readShape, type ShapeDefaults } from "./base.ts";
import { activeOf, type Experts, expertGroups, withExperts } from "./experts.ts";
import { isSparse, sparseStep } from "./moe.ts";

const PLAIN_DELTA =
  "linear attention is sized in PyTorch's own operators, as it runs without flash-linear-attention; with it less is needed";

/** Number of full-attention layers: `layer_types`, else every `full_attention_interval`-th. */
function fullLayers(config: ConfigReader, layers: number): number {
  const types = config.list("layer_types");
  if (types !== null) return Math.min(layers, types.filter((type) => type === "full_attention").length);
  return Math.floor(layers / Math.max(1, Math.trunc(config.number("full_attention_interval", 4))));
}

/** Whether a layer has full attention. */
function attending(config: ConfigReader): (layer: number) => boolean {
  const types = config.list("layer_types");
  if (types !== null) return (layer) => types[layer] === "full_attention";
  const every = Math.max(1, Math.trunc(config.number("full_attention_interval", 4)));
  return (layer) => (layer + 1) % every === 0;
}

/** A gated delta-net layer (`modeling_qwen3_next.py`): convolution over q, k and v, gates, gated norm. */
function deltaNet(config: ConfigReader, hidden: number, defaults: { readonly valueHeads: number }): number {
  const keyHeads = config.size("linear_num_key_heads", 16);
  const valueHeads = config.size("linear_num_value_heads", defaults.valueHeads);
  const valueDim = config.size("linear_value_head_dim", 128);
  const keys = keyHeads * config.size("linear_key_head_dim", 128);
  const values = valueHeads * valueDim;
  return (
    (2 * keys + values) * config.size("linear_conv_kernel_dim", 4) +
    linear(hidden, 2 * keys + 2 * values + 2 * valueHeads, false) +
    2 * valueHeads +
    valueDim +
    linear(values, hidden, false)
  );
}

/** Qwen3-Next and the text side of Qwen3.5: three delta-net layers to one of attention with an output gate. */
function deltaFamily(
  types: readonly string[],
  defaults: ShapeDefaults,
  experts: { readonly count: number; readonly perToken: number; readonly everyLayer: boolean } | null,
): FamilyReader {
  const fused = types[0] === "qwen3_next";
  return {
    types,
    read(config) {
      const head = headed(
        config,
        readShape(config, defaults, { norm: "rms-plus-one", qkNorm: "per-head", rotary: 0.25 }),
      );
      const { shape } = head;
      const { layers, hidden } = shape;
      const full = fullLayers(config, layers);
      const bias = config.flag("attention_bias", false);
      const gate = linear(hidden, shape.heads * shape.headDim, bias);
      const block = attention(shape, { qkv: bias, out: bias }) + gate + 2 * shape.headDim;
      const side: Experts | null = experts && {
        ...(experts.everyLayer ? { sparseLayers: layers, denseLayers: 0 } : sparseStep(config, layers)),
        denseWidth: shape.ffn,
        experts: config.size(["num_experts", "num_local_experts"], experts.count),
        perToken: config.size("num_experts_per_tok", experts.perToken),
        width: config.size("moe_intermediate_size", 512),
        sharedWidth: config.size("shared_expert_intermediate_size", 512),
        routerExtra: hidden,
        sharedGated: true,
        adapted: fused,
        router: { normalized: config.flag("norm_topk_prob", true), returns: "logits" },
      };
      const groups: ParamGroup[] = [
        ...decoderGroups(shape).filter((group) => !["attention", "feed-forward"].includes(group.name)),
        { name: "attention", count: full * block },
        { name: "linear attention", count: (layers - full) * deltaNet(config, hidden, { valueHeads: 32 }) },
        ...(side === null
          ? [{ name: "feed-forward", count: layers * gatedMlp(hidden, shape.ffn) }]
          : expertGroups(hidden, side)),
        ...head.outside,
      ];
      const delta = {
        keyHeads: config.size("linear_num_key_heads", 16),
        valueHeads: config.size("linear_num_value_heads", 32),
        keyDim: config.size("linear_key_head_dim", 128),
        valueDim: config.size("linear_value_head_dim", 128),
        kernel: config.size("linear_conv_kernel_dim", 4),
        fused,
      };
      const attends = attending(config);
      const sparse = side === null || experts?.everyLayer ? () => true : isSparse(config);
      const windows = layerRuns(layers, (layer) => {
        const differs: Partial<DecoderShape> = {
          ...(attends(layer) ? {} : { delta }),
          ...(sparse(layer) ? {} : { experts: undefined }),
        };
        return { name: `${attends(layer)} ${sparse(layer)}`, window: null, differs };
      });
      const gated = { ...shape, outputGate: true, bias: { ...shape.bias, qkv: bias, out: bias } };
      const decoder = side === null ? gated : withExperts(gated, side);
      return partsStructure(
        config.text("model_type", types[0] ?? ""),
        groups,
        { ...decoder, windows },
        {
          paramsOutside: countParams(head.outside),
          contextTokens: contextTokens(config),
          activeParams: side === null ? countParams(groups) : activeOf(groups, side),
          notes: [...head.notes, PLAIN_DELTA],
        },
      );
    },
  };
}

export const DELTA_NETS: readonly FamilyReader[] = [
  deltaFamily(
    ["qwen3_next"],
    { hidden: 2048, layers: 48, vocab: 151936, ffn: 5632, heads: 16, kvHeads: 2, headDim: 256, tied: false },
    { count: 512, perToken: 10, everyLayer: false },
  ),
  deltaFamily(
    ["qwen3_5_text"],
    { hidden: 4096, layers: 32, vocab: 248320, ffn: 12288, heads: 16, kvHeads: 4, headDim: 256, tied: false },
    null,
  ),
  deltaFamily(
    ["qwen3_5_moe_text"],
    { hidden: 2048, layers: 40, vocab: 248320, ffn: 512, heads: 16, kvHeads: 2, headDim: 256, tied: false },
    { count: 256, perToken: 8, everyLayer: true },
  ),
];
