import type { ConfigReader } from "../config.ts";
import { attention, encoderLayer, gatedMlp, layerNorm, linear, plainMlp } from "../parts.ts";

/** An image side as the files state it: a number or `[height, width]`. */
function sides(config: ConfigReader, key: string, fallback: number): readonly [number, number] {
  const list = config.list(key);
  const [first, second] = list ?? [];
  if (typeof first === "number" && typeof second === "number" && first >= 1 && second >= 1) {
    return [Math.trunc(Math.min(first, 1e6)), Math.trunc(Math.min(second, 1e6))];
  }
  const side = config.size(key, fallback);
  return [side, side];
}

export interface Patches {
  /** Patches in an image. */
  readonly count: number;
  /** Pixels of a patch, all channels. */
  readonly pixels: number;
}

export function patches(
  config: ConfigReader,
  defaults: { readonly image: number; readonly patch: number },
): Patches {
  const [height, width] = sides(config, "image_size", defaults.image);
  const [patchHeight, patchWidth] = sides(config, "patch_size", defaults.patch);
  return {
    count: Math.max(1, Math.floor(height / patchHeight) * Math.floor(width / patchWidth)),
    pixels: config.size("num_channels", 3) * patchHeight * patchWidth,
  };
}

/** Values of a whole image, all channels. */
export function imageValues(config: ConfigReader, defaults: { readonly image: number }): number {
  const [height, width] = sides(config, "image_size", defaults.image);
  return config.size("num_channels", 3) * height * width;
}

/** CLIP's image tower: class token, patches without bias, norms before and after. */
export function clipVision(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 768);
  const grid = patches(config, { image: 224, patch: 32 });
  return (
    hidden +
    linear(grid.pixels, hidden, false) +
    (grid.count + 1) * hidden +
    config.size("num_hidden_layers", 12) * encoderLayer(hidden, config.size("intermediate_size", 3072)) +
    2 * layerNorm(hidden)
  );
}

export function clipText(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 512);
  return (
    (config.size("vocab_size", 49408) + config.size("max_position_embeddings", 77)) * hidden +
    config.size("num_hidden_layers", 12) * encoderLayer(hidden, config.size("intermediate_size", 2048)) +
    layerNorm(hidden)
  );
}

/** The attention pool of SigLIP's image tower: a probe, one attention block, one feed-forward block. */
function attentionPool(hidden: number, ffn: number): number {
  return hidden + 4 * linear(hidden, hidden, true) + layerNorm(hidden) + plainMlp(hidden, ffn, true);
}

/** SigLIP's image tower: no class token; with `vision_use_head` an attention pool. */
export function siglipVision(config: ConfigReader, second = false): number {
  const hidden = config.size("hidden_size", 768);
  const ffn = config.size("intermediate_size", 3072);
  const grid = patches(config, { image: 224, patch: 16 });
  const positions = second ? config.size("num_patches", 256) : grid.count;
  return (
    linear(grid.pixels, hidden, true) +
    positions * hidden +
    config.size("num_hidden_layers", 12) * encoderLayer(hidden, ffn) +
    layerNorm(hidden) +
    (config.flag("vision_use_head", true) ? attentionPool(hidden, ffn) : 0)
  );
}

export function siglipText(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 768);
  return (
    (config.size("vocab_size", 32000) + config.size("max_position_embeddings", 64)) * hidden +
    config.size("num_hidden_layers", 12) * encoderLayer(hidden, config.size("intermediate_size", 3072)) +
    layerNorm(hidden) +
    linear(hidden, config.size("projection_size", hidden), true)
  );
}

/** Idefics 2 and 3 and SmolVLM: SigLIP's tower without a pool. */
export function ideficsVision(config: ConfigReader, hiddenDefault: number): number {
  const hidden = config.size("hidden_size", hiddenDefault);
  const grid = patches(config, { image: 224, patch: 32 });
  return (
    linear(grid.pixels, hidden, true) +
    grid.count * hidden +
    config.size("num_hidden_layers", 12) * encoderLayer(hidden, config.size("intermediate_size", 3072)) +
    layerNorm(hidden)
  );
}

/** Pixtral's tower: rotary positions, RMS norms, gated feed-forward, no biases. */
export function pixtralVision(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 1024);
  const heads = config.size("num_attention_heads", 16);
  const headDim = Math.floor(hidden / heads);
  const grid = patches(config, { image: 1024, patch: 16 });
  const layer =
    attention({ hidden, heads, kvHeads: heads, headDim }, { qkv: false, out: false }) +
    gatedMlp(hidden, config.size("intermediate_size", 4096)) +
    2 * hidden;
  return linear(grid.pixels, hidden, false) + hidden + config.size("num_hidden_layers", 24) * layer;
}

/** Pixels of one patch over the frames that Qwen's towers join. */
function framePixels(config: ConfigReader, patch: number): number {
  const side = config.size(["patch_size", "spatial_patch_size"], patch);
  return config.size("in_channels", 3) * config.size("temporal_patch_size", 2) * side * side;
}

/** Joins `spatial_merge_size` squared patches and projects them to the text width. */
function merger(config: ConfigReader, hidden: number, output: number): number {
  const joined = hidden * config.size("spatial_merge_size", 2) ** 2;
  return linear(joined, joined, true) + linear(joined, output, true);
}

export function qwen2Vision(config: ConfigReader): number {
  const hidden = config.size("embed_dim", 1280);
  const ffn = Math.trunc(hidden * config.ratio("mlp_ratio", 4));
  return (
    linear(framePixels(config, 14), hidden, false) +
    config.size("depth", 32) * encoderLayer(hidden, ffn) +
    layerNorm(hidden) +
    merger(config, hidden, config.size("hidden_size", 3584))
  );
}

/** Qwen2.5-VL: RMS norms and a gated feed-forward with biases. */
export function qwen25Vision(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 3584);
  const layer =
    4 * linear(hidden, hidden, true) +
    gatedMlp(hidden, config.size("intermediate_size", 3420), true) +
    2 * hidden;
  return (
    linear(framePixels(config, 14), hidden, false) +
    config.size("depth", 32) * layer +
    hidden +
    merger(config, hidden, config.size("out_hidden_size", 3584))
  );
}

/** Qwen3-VL and Qwen3.5: learned positions, and a merger more for each layer listed in `deepstack_visual_indexes`. */
export function qwen3Vision(config: ConfigReader, deepstack: number): number {
  const hidden = config.size("hidden_size", 1152);
  const output = config.size("out_hidden_size", 3584);
  const joined = hidden * config.size("spatial_merge_size", 2) ** 2;
  const join = merger(config, hidden, output);
  const extra = deepstack === 0 ? 0 : (config.list("deepstack_visual_indexes")?.length ?? deepstack);
  return (
    linear(framePixels(config, 16), hidden, true) +
    config.size("num_position_embeddings", 2304) * hidden +
    config.size("depth", 27) * encoderLayer(hidden, config.size("intermediate_size", 4304)) +
    layerNorm(hidden) +
    join +
    extra * (layerNorm(joined) + join)
  );
}

/** Llama 4's tower with its pixel-shuffle adapter. */
export function llama4Vision(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 768);
  const ffn = config.size("intermediate_size", 5632);
  const grid = patches(config, { image: 448, patch: 14 });
  const input = config.size("projector_input_dim", 4096);
  const output = config.size("projector_output_dim", 4096);
  return (
    hidden +
    (grid.count + 1) * hidden +
    linear(grid.pixels, hidden, false) +
    2 * layerNorm(hidden) +
    config.size("num_hidden_layers", 34) * encoderLayer(hidden, ffn) +
    linear(ffn, input, false) +
    linear(output, output, false)
  );
}

/** Gemma 4's tower: two position tables, norms on both sides of each block and on queries and keys. */
export function gemma4Vision(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 768);
  const heads = config.size("num_attention_heads", 12);
  const headDim = config.size("head_dim", 64);
  const patch = config.size("patch_size", 16);
  const kv = config.size("num_key_value_heads", 12);
  const layer =
    attention({ hidden, heads, kvHeads: kv, headDim }, { qkv: false, out: false }) +
    2 * headDim +
    gatedMlp(hidden, config.size("intermediate_size", 3072)) +
    4 * hidden;
  return (
    2 * config.size("position_embedding_size", 10240) * hidden +
    linear(3 * patch * patch, hidden, false) +
    config.size("num_hidden_layers", 16) * layer
  );
}

/** Llama 3.2 Vision's tower: tiles with positions of their own, gated global layers on top. */
export function mllamaVision(config: ConfigReader): number {
  const hidden = config.size("hidden_size", 1280);
  const tiles = config.size("max_num_tiles", 4);
  const grid = patches(config, { image: 448, patch: 14 });
  const places = grid.count + 1;
  const ratios = (config.list("supported_aspect_ratios")?.length ?? 8) + 1;
  const layer =
    4 * linear(hidden, hidden, false) +
    plainMlp(hidden, config.size("intermediate_size", 5120), true) +
    2 * layerNorm(hidden);
  return (
    hidden +
    linear(grid.pixels, hidden, false) +
    (1 + places * hidden + ratios * tiles * places * hidden) +
    2 * (1 + ratios * tiles * hidden) +
    2 * layerNorm(hidden) +
    config.size("num_hidden_layers", 32) * layer +
    config.size("num_global_layers", 8) * (layer + 2)
  );
}
