import type { FamilyReader } from "../family.ts";
import { attentionBias, dense, NO_BIAS } from "./dense.ts";

const QWEN2_VL = { hidden: 8192, layers: 80, vocab: 152064, ffn: 29568, heads: 64 } as const;

/** The text side of Qwen2-VL and Qwen2.5-VL: qwen2 with other class defaults. */
const qwen2VlText = dense({
  types: ["qwen2_vl_text", "qwen2_5_vl_text"],
  defaults: { ...QWEN2_VL, kvHeads: 8, headDim: "split", tied: false, windowOff: true },
  measured: () => true,
  traits: () => ({ bias: { ...NO_BIAS, qkv: true }, rotaryPerSample: true }),
});

const qwen3VlText = dense({
  types: ["qwen3_vl_text"],
  defaults: {
    hidden: 4096,
    layers: 32,
    vocab: 151936,
    ffn: 22016,
    heads: 32,
    kvHeads: 32,
    headDim: 128,
    tied: false,
  },
  measured: () => true,
  traits: (config) => ({ qkNorm: "per-head", bias: attentionBias(config), rotaryPerSample: true }),
});

/** The text side of the Qwen models that see. */
export const QWEN_VL_TEXT: readonly FamilyReader[] = [qwen2VlText, qwen3VlText];
