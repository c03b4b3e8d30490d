import type { ConfigReader } from "../config.ts";
import type { PatchInput, StackBlock, StackHead, StackModel } from "../stacks.ts";
import { labels } from "./base.ts";
import { drops } from "./shapes.ts";
import {
  alike,
  type BlockSizes,
  bertBlock,
  encoder,
  NO_LIMITS,
  PLAIN_ATTENTION,
  stackActivation,
  textInput,
} from "./stack-parts.ts";
import { imageValues, patches } from "./towers.ts";

/** What tells the image families apart, beside their sizes. */
export interface ImageTraits {
  readonly classToken: boolean;
  readonly registers: number;
  readonly maskToken: boolean;
  readonly patchBias: boolean;
  /** Softmax of eager attention in fp32 and back. */
  readonly softmaxFull: boolean;
  readonly patch: { readonly image: number; readonly patch: number };
  readonly activation: string;
}

function patchInput(config: ConfigReader, traits: ImageTraits, more: Partial<PatchInput> = {}): PatchInput {
  const grid = patches(config, traits.patch);
  return {
    kind: "patches",
    patches: grid.count,
    pixels: grid.pixels,
    image: imageValues(config, traits.patch),
    bias: traits.patchBias,
    classToken: traits.classToken,
    registers: traits.registers,
    maskToken: traits.maskToken,
    norm: null,
    dropout: false,
    ...more,
  };
}

/** A layer with norms before each part, named as most image towers name it. */
function towerBlock(
  config: ConfigReader,
  sizes: BlockSizes,
  traits: Pick<ImageTraits, "softmaxFull" | "activation">,
  more: Partial<StackBlock> = {},
): { readonly block: StackBlock; readonly assumed: readonly string[] } {
  const { activation, assumed } = stackActivation(config, "hidden_act", traits.activation);
  const block = bertBlock(sizes, {
    placement: "pre",
    attention: { ...PLAIN_ATTENTION, softmaxFull: traits.softmaxFull },
    activation,
    adapted: { inputs: true, output: true },
    ...more,
  });
  return { block, assumed };
}

/** ViT and DINOv2: an image encoder with a classifier over its class token, or none. */
export function imageStacks(
  config: ConfigReader,
  sizes: BlockSizes & { readonly layers: number },
  traits: ImageTraits,
  kind: "vit" | "dinov2",
): { readonly stacks: StackModel; readonly assumed: readonly string[] } {
  const dino = kind === "dinov2";
  const dropout = drops(config, "hidden_dropout_prob", 0);
  const bias = config.flag("qkv_bias", true);
  const swiglu = dino && config.flag("use_swiglu_ffn", false);
  const { block, assumed } = towerBlock(
    config,
    { hidden: sizes.hidden, heads: sizes.heads, ffn: sizes.ffn },
    traits,
    {
      biases: { query: bias, key: bias, value: bias, out: true, mlp: true },
      dropout: {
        attention: drops(config, "attention_probs_dropout_prob", 0),
        attended: !dino && dropout,
        fed: !dino && dropout,
        inner: false,
      },
      layerScale: dino,
      dropPath: dino && drops(config, "drop_path_rate", 0),
      ...(swiglu ? { mlp: "gated", activation: "silu" } : {}),
    },
  );
  const bare: StackHead = dino
    ? { kind: "bare", pooler: null, returnsFirst: true }
    : {
        kind: "bare",
        pooler: { width: config.size("pooler_output_size", sizes.hidden) },
        returnsFirst: false,
      };
  const head: StackHead = config.architecture().endsWith("Model")
    ? bare
    : {
        kind: "pooled",
        pool: dino ? "first-and-mean" : "first",
        dropoutBefore: false,
        dense: null,
        dropout: false,
        classes: labels(config),
        adapted: false,
      };
  const stack = encoder(patchInput(config, traits, { dropout }), block, alike(sizes.layers), {
    finalNorm: "layer",
  });
  return { stacks: { stacks: [stack], head, limits: { ...NO_LIMITS, lengthless: true } }, assumed };
}

/** Sizes of a tower where its section leaves them out. */
interface TowerDefaults {
  readonly hidden: number;
  readonly layers: number;
  readonly heads: number;
  readonly ffn: number;
}

function towerSizes(config: ConfigReader, defaults: TowerDefaults) {
  return {
    layers: config.size("num_hidden_layers", defaults.layers),
    hidden: config.size("hidden_size", defaults.hidden),
    heads: config.size("num_attention_heads", defaults.heads),
    ffn: config.size("intermediate_size", defaults.ffn),
  };
}

/** CLIP and SigLIP: an image tower, then a text tower, and a loss that compares what they return. */
export function pairStacks(
  config: ConfigReader,
  text: ConfigReader,
  image: ConfigReader,
  kind: "clip" | "siglip",
): { readonly stacks: StackModel; readonly assumed: readonly string[] } {
  const clip = kind === "clip";
  const traits: ImageTraits = {
    classToken: clip,
    registers: 0,
    maskToken: false,
    patchBias: !clip,
    softmaxFull: true,
    patch: { image: 224, patch: clip ? 32 : 16 },
    activation: clip ? "quick_gelu" : "gelu_pytorch_tanh",
  };
  const seen = towerSizes(image, { hidden: 768, layers: 12, heads: 12, ffn: 3072 });
  const read = towerSizes(
    text,
    clip
      ? { hidden: 512, layers: 12, heads: 8, ffn: 2048 }
      : { hidden: 768, layers: 12, heads: 12, ffn: 3072 },
  );
  const attended = (section: ConfigReader) => ({
    dropout: { attention: drops(section, "attention_dropout", 0), attended: false, fed: false, inner: false },
  });
  const { layers: imageLayers, ...imageSizes } = seen;
  const { layers: textLayers, ...textSizes } = read;
  const imageBlock = towerBlock(image, imageSizes, traits, attended(image));
  const textBlock = towerBlock(text, textSizes, traits, attended(text));
  const longest = text.size("max_position_embeddings", clip ? 77 : 64);
  const words = textInput(text.size("vocab_size", clip ? 49408 : 32000), read.hidden, {
    positions: { rows: longest, perSample: false, reserved: 0 },
    longest,
  });
  const pictures = patchInput(image, traits, clip ? { norm: "layer" } : {});
  const width = clip ? config.size("projection_dim", 512) : text.size("projection_size", read.hidden);
  const stacks: StackModel = {
    stacks: [
      encoder(pictures, imageBlock.block, alike(imageLayers), { finalNorm: clip ? null : "layer" }),
      encoder(words, textBlock.block, alike(textLayers), { finalNorm: "layer", causal: clip }),
    ],
    head: {
      kind: "contrastive",
      width,
      textBias: !clip,
      image: clip ? "class" : "attention-pool",
      scalars: clip ? 1 : 2,
    },
    limits: { ...NO_LIMITS, unmeasured: clip ? [] : ["lora"] },
  };
  return { stacks, assumed: [...imageBlock.assumed, ...textBlock.assumed] };
}
