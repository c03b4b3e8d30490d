import type { FamilyReader } from "../family.ts";
import { dense, MHA, NO_BIAS } from "./dense.ts";

const layers = dense({
  types: ["qwen"],
  defaults: { hidden: 4096, layers: 32, vocab: 151936, ffn: 11008, heads: 32, ...MHA, tied: false },
  traits: () => ({ bias: { ...NO_BIAS, qkv: true } }),
});

/**
 * The first Qwen is remote code (`modeling_qwen.py` beside its weights): llama's layers with a bias on the fused
 * queries, keys and values. Its `intermediate_size` counts gate and up together, so each of them is half as wide.
 */
export const qwen1: FamilyReader = {
  types: ["qwen"],
  read: (config) =>
    layers.read(config.withValues({ intermediate_size: config.size("intermediate_size", 22016) / 2 })),
};
