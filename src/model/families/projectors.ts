import { ConfigReader } from "../config.ts";
import { attention, gatedMlp, linear } from "../parts.ts";
import type { Structure } from "../types.ts";
import { type Multimodal, NONE } from "./multimodal.ts";
import { clipVision, pixtralVision, siglipVision } from "./towers.ts";

/** Width of the text model as its section states it, or as its reader took it. */
export function width(structure: Structure): number {
  return structure.decoder?.hidden ?? 0;
}

/** Layers whose features are joined before the projector. */
export function featureLayers(config: ConfigReader): number {
  return Math.max(1, config.list("vision_feature_layer")?.length ?? 1);
}

/** A tower by its `model_type`; CLIP is LLaVA's default. */
export function towerOf(
  vision: ConfigReader,
  fallback: string,
): { readonly count: number; readonly hidden: number } {
  const type = vision.text("model_type", fallback);
  if (type.startsWith("siglip"))
    return { count: siglipVision(vision), hidden: vision.size("hidden_size", 768) };
  if (type === "pixtral") return { count: pixtralVision(vision), hidden: vision.size("hidden_size", 1024) };
  return { count: clipVision(vision), hidden: vision.size("hidden_size", 768) };
}

/** The tower LLaVA takes where the file has no vision section at all (`configuration_llava.py`). */
const LLAVA_TOWER = new ConfigReader({
  model_type: "clip_vision_model",
  hidden_size: 1024,
  intermediate_size: 4096,
  patch_size: 14,
  image_size: 336,
  num_hidden_layers: 24,
  num_attention_heads: 16,
});

/** LLaVA: a projector of two layers, from LLaVA-NeXT on a vector that ends a line of patches. */
export function llavaBeside(newline: boolean): Multimodal["beside"] {
  return ({ config, vision, structure }) => {
    const tower = towerOf(vision === NONE ? LLAVA_TOWER : vision, "clip_vision_model");
    const text = width(structure);
    const bias = config.flag("multimodal_projector_bias", true);
    return [
      { name: "vision tower", count: tower.count },
      {
        name: "projector",
        count: linear(tower.hidden * featureLayers(config), text, bias) + linear(text, text, bias),
      },
      { name: "newline vector", count: newline ? text : 0 },
    ];
  };
}

/** Qwen: the tower holds its own merger. */
export function qwenBeside(count: (vision: ConfigReader) => number): Multimodal["beside"] {
  return ({ vision }) => [{ name: "vision tower and merger", count: count(vision) }];
}

/** Idefics 2: a gated projection to the text width, then a perceiver that resamples to a few latents. */
export function perceiver(config: ConfigReader, hidden: number): number {
  const section = config.only("perceiver_config") ?? NONE;
  const heads = section.size("resampler_n_heads", 16);
  const headDim = section.size("resampler_head_dim", 96);
  const kvHeads = section.size("num_key_value_heads", 4);
  const layer =
    3 * hidden +
    attention({ hidden, heads, kvHeads, headDim }, { qkv: false, out: false }) +
    gatedMlp(hidden, 4 * hidden);
  return (
    section.size("resampler_n_latents", 64) * hidden + section.size("resampler_depth", 3) * layer + hidden
  );
}
