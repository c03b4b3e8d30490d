import { ConfigReader } from "../config.ts";
import type { FamilyReader } from "../family.ts";
import { attention, gatedMlp, layerNorm, linear, plainMlp } from "../parts.ts";
import type { DecoderShape, ParamGroup } from "../types.ts";
import { labels, nearest, partsStructure } from "./base.ts";
import { encoderShape } from "./encoder-shape.ts";
import { BARE_NOTE } from "./stack-parts.ts";
import { clipText, clipVision, patches, siglipText, siglipVision } from "./towers.ts";
import { imageStacks, pairStacks } from "./vision-stacks.ts";

const IMAGES = [nearest("gpt2"), "an image encoder: a sequence is the patches of one image"];

/** An image tower as a decoder shape; its vocabulary is one entry, so that no logits are walked. */
function towerShape(
  config: ConfigReader,
  defaults: { hidden: number; layers: number; heads: number; ffn: number },
): DecoderShape {
  return encoderShape(
    {
      layers: config.size("num_hidden_layers", defaults.layers),
      hidden: config.size("hidden_size", defaults.hidden),
      heads: config.size("num_attention_heads", defaults.heads),
      ffn: config.size("intermediate_size", defaults.ffn),
      vocab: 1,
    },
    {
      normPlacement: "pre",
      finalNorm: true,
      embedNorm: false,
      dropout: { attention: false, residual: false, embedding: false },
    },
  );
}

function classifies(config: ConfigReader): boolean {
  return config.architecture().endsWith("ForImageClassification");
}

/** ViT: class token, learned positions; the bare model pools, the classifier does not. DeiT has a second such token. */
export const vit: FamilyReader = {
  types: ["vit", "deit"],
  read(config) {
    const type = config.text("model_type", "vit");
    const distilling = type === "deit" ? 1 : 0;
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const ffn = config.size("intermediate_size", 3072);
    const grid = patches(config, { image: 224, patch: 16 });
    const heads = config.size("num_attention_heads", 12);
    const sizes = { hidden, heads, kvHeads: heads, headDim: Math.floor(hidden / heads) };
    const layer =
      attention(sizes, { qkv: config.flag("qkv_bias", true), out: true }) +
      plainMlp(hidden, ffn, true) +
      2 * layerNorm(hidden);
    const name = config.architecture();
    const bare = name.endsWith("Model");
    const pooled = config.size("pooler_output_size", hidden);
    const groups: ParamGroup[] = [
      { name: "class token", count: (1 + distilling) * hidden },
      { name: "patch embedding", count: linear(grid.pixels, hidden, true) },
      { name: "positions", count: (grid.count + 1 + distilling) * hidden },
      { name: "encoder layers", count: layers * layer },
      { name: "final norm", count: layerNorm(hidden) },
      { name: "pooler", count: bare ? linear(hidden, pooled, true) : 0 },
      { name: "classifier", count: bare ? 0 : linear(hidden, labels(config), true) },
    ];
    const shape = towerShape(config, { hidden: 768, layers: 12, heads: 12, ffn: 3072 });
    if (!bare && !classifies(config))
      return partsStructure(type, groups, shape, { contextTokens: grid.count + 1, assumed: IMAGES });
    const step = imageStacks(
      config,
      { hidden, heads, ffn, layers },
      {
        classToken: true,
        // One more token, whose row of positions counts outside.
        registers: distilling,
        maskToken: false,
        patchBias: true,
        softmaxFull: true,
        patch: { image: 224, patch: 16 },
        activation: "gelu",
      },
      "vit",
    );
    return partsStructure(type, groups, shape, {
      contextTokens: grid.count + 1,
      stacks: step.stacks,
      assumed: step.assumed,
      notes: bare ? [BARE_NOTE] : [],
    });
  },
};

/** DINOv2: a mask token, two scale vectors a layer, SwiGLU in the giant. */
export const dinov2: FamilyReader = {
  types: ["dinov2", "dinov2_with_registers"],
  read(config) {
    const type = config.text("model_type", "dinov2");
    const hidden = config.size("hidden_size");
    const layers = config.size("num_hidden_layers");
    const wide = Math.trunc(hidden * config.ratio("mlp_ratio", 4));
    const swiglu = config.flag("use_swiglu_ffn", false);
    const ffn = swiglu ? Math.floor((Math.trunc((wide * 2) / 3) + 7) / 8) * 8 : wide;
    const registers = type === "dinov2" ? 0 : config.sizeOrZero("num_register_tokens", 4);
    const grid = patches(config, { image: 224, patch: type === "dinov2" ? 14 : 16 });
    const heads = config.size("num_attention_heads", 12);
    const sizes = { hidden, heads, kvHeads: heads, headDim: Math.floor(hidden / heads) };
    const layer =
      attention(sizes, { qkv: config.flag("qkv_bias", true), out: true }) +
      (swiglu ? gatedMlp(hidden, ffn, true) : plainMlp(hidden, ffn, true)) +
      2 * layerNorm(hidden) +
      2 * hidden;
    const classes = config.architecture().endsWith("ForImageClassification")
      ? linear(2 * hidden, labels(config), true)
      : 0;
    const mask = type !== "dinov2" || config.flag("use_mask_token", true) ? hidden : 0;
    const groups: ParamGroup[] = [
      { name: "class and mask tokens", count: hidden + mask },
      { name: "register tokens", count: registers * hidden },
      { name: "patch embedding", count: linear(grid.pixels, hidden, true) },
      { name: "positions", count: (grid.count + 1) * hidden },
      { name: "encoder layers", count: layers * layer },
      { name: "final norm", count: layerNorm(hidden) },
      { name: "classifier", count: classes },
    ];
    const shape = {
      ...towerShape(config, { hidden: 768, layers: 12, heads: 12, ffn }),
      ffn,
      mlp: swiglu ? ("gated-fused" as const) : ("plain" as const),
    };
    const contextTokens = grid.count + 1 + registers;
    const bare = config.architecture().endsWith("Model");
    if (!bare && !classifies(config))
      return partsStructure(type, groups, shape, { contextTokens, assumed: IMAGES });
    const step = imageStacks(
      config,
      { hidden, heads, ffn, layers },
      {
        classToken: true,
        registers,
        maskToken: mask > 0,
        patchBias: true,
        softmaxFull: false,
        patch: { image: 224, patch: type === "dinov2" ? 14 : 16 },
        activation: "gelu",
      },
      "dinov2",
    );
    return partsStructure(type, groups, shape, {
      contextTokens,
      stacks: step.stacks,
      assumed: step.assumed,
      notes: bare ? [BARE_NOTE] : [],
    });
  },
};

const NONE = new ConfigReader({});
const CLIP_TOWER = { hidden: 768, layers: 12, heads: 12, ffn: 3072 };
const CLIP_TEXT = { hidden: 512, layers: 12, heads: 8, ffn: 2048 };

/** CLIP: two towers, two projections without bias, one temperature. */
export const clip: FamilyReader = {
  types: ["clip"],
  read(config) {
    const text = config.only("text_config") ?? NONE;
    const image = config.only("vision_config") ?? NONE;
    const projection = config.size("projection_dim", 512);
    const groups: ParamGroup[] = [
      { name: "text tower", count: clipText(text) },
      { name: "vision tower", count: clipVision(image) },
      {
        name: "projections",
        count: (text.size("hidden_size", 512) + image.size("hidden_size", 768)) * projection,
      },
      { name: "temperature", count: 1 },
    ];
    const step = pairStacks(config, text, image, "clip");
    return partsStructure("clip", groups, towerShape(image, CLIP_TOWER), {
      contextTokens: text.size("max_position_embeddings", 77),
      stacks: step.stacks,
      assumed: step.assumed,
    });
  },
};

/** One tower of CLIP or SigLIP as a model of its own. */
function tower(
  types: readonly string[],
  count: (config: ConfigReader) => number,
  text: boolean,
): FamilyReader {
  return {
    types,
    read(config) {
      const hidden = config.size("hidden_size", text ? 512 : 768);
      const projected = config.architecture().endsWith("WithProjection");
      const projection = projected ? hidden * config.size("projection_dim", 512) : 0;
      const context = text
        ? config.size("max_position_embeddings", 77)
        : patches(config, { image: 224, patch: 32 }).count + 1;
      return partsStructure(
        config.text("model_type", types[0] ?? ""),
        [
          { name: "tower", count: count(config) },
          { name: "projection", count: projection },
        ],
        towerShape(config, text ? CLIP_TEXT : CLIP_TOWER),
        { contextTokens: context, assumed: IMAGES },
      );
    },
  };
}

/** SigLIP: the text tower projects, the image tower pools; a scale and a bias. */
export const siglip: FamilyReader = {
  types: ["siglip", "siglip2"],
  read(config) {
    const second = config.text("model_type", "siglip") === "siglip2";
    const text = config.only("text_config") ?? NONE;
    const image = config.only("vision_config") ?? NONE;
    const groups: ParamGroup[] = [
      { name: "text tower", count: siglipText(text) },
      { name: "vision tower", count: siglipVision(image, second) },
      { name: "scale and bias", count: 2 },
    ];
    const contextTokens = text.size("max_position_embeddings", 64);
    const shape = towerShape(image, CLIP_TOWER);
    // SigLIP 2 is fed patches of images of any shape, and a tower may come without a pool.
    if (second || !image.flag("vision_use_head", true))
      return partsStructure(second ? "siglip2" : "siglip", groups, shape, {
        contextTokens,
        assumed: [...IMAGES, "the text tower's activations are not counted"],
      });
    const step = pairStacks(config, text, image, "siglip");
    return partsStructure("siglip", groups, shape, {
      contextTokens,
      stacks: step.stacks,
      assumed: step.assumed,
    });
  },
};

export const VISION: readonly FamilyReader[] = [
  vit,
  dinov2,
  clip,
  siglip,
  tower(["clip_vision_model"], clipVision, false),
  tower(["clip_text_model"], clipText, true),
  tower(["siglip_vision_model"], (config) => siglipVision(config), false),
];
