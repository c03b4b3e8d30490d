import type { ConfigReader } from "../config.ts";
import type { PatchInput, Stack, StackBlock, StackRun } from "../stacks.ts";
import type { Tower } from "../tower-types.ts";
import { drops } from "./shapes.ts";
import { alike, bertBlock, encoder, PLAIN_ATTENTION, stackActivation } from "./stack-parts.ts";
import { imageValues, patches } from "./towers.ts";

/** A tower whose layers are walked, or null where its activation or its layout was never measured. */
export type TowerReader = (parts: {
  readonly config: ConfigReader;
  readonly vision: ConfigReader;
  readonly text: ConfigReader;
  readonly textWidth: number;
}) => Tower | null;

interface EncoderTraits {
  readonly hidden: number;
  readonly layers: number;
  readonly ffn: number;
  readonly heads: number;
  readonly image: number;
  readonly patch: number;
  readonly activation: string;
}

/** CLIP's and SigLIP's encoders, and those made like the latter. */
function encoderStack(
  vision: ConfigReader,
  traits: EncoderTraits,
  kind: "clip" | "siglip" | "idefics",
  more: { readonly runs?: (layers: number) => readonly StackRun[]; readonly tiles?: number } = {},
): Stack | null {
  const clip = kind === "clip";
  const hidden = vision.size("hidden_size", traits.hidden);
  const layers = vision.size("num_hidden_layers", traits.layers);
  const { activation, assumed } = stackActivation(vision, "hidden_act", traits.activation);
  if (assumed.length > 0) return null;
  const block: StackBlock = bertBlock(
    {
      hidden,
      heads: vision.size("num_attention_heads", traits.heads),
      ffn: vision.size("intermediate_size", traits.ffn),
    },
    {
      placement: "pre",
      attention: { ...PLAIN_ATTENTION, softmaxFull: true },
      activation,
      adapted: { inputs: true, output: true },
      dropout: {
        attention: drops(vision, "attention_dropout", 0),
        attended: false,
        fed: false,
        inner: false,
      },
    },
  );
  const grid = patches(vision, traits);
  const tiles = more.tiles ?? 1;
  const input: PatchInput = {
    kind: "patches",
    patches: grid.count,
    pixels: grid.pixels,
    image: tiles * imageValues(vision, traits),
    bias: !clip,
    classToken: clip,
    registers: 0,
    maskToken: false,
    norm: clip ? "layer" : null,
    dropout: false,
    ...(tiles === 1 ? {} : { tiles, gathered: true }),
    ...(kind === "idefics" ? { positions: "looked-up" as const, gathered: true } : {}),
  };
  return encoder(input, block, more.runs?.(layers) ?? alike(layers), {
    finalNorm: clip ? null : "layer",
  });
}

const CLIP = {
  hidden: 768,
  layers: 12,
  ffn: 3072,
  heads: 12,
  image: 224,
  patch: 32,
  activation: "quick_gelu",
};
const SIGLIP = { ...CLIP, patch: 16, activation: "gelu_pytorch_tanh" };

/** Patches to a side; null where the image is not square or is cut unevenly. */
function squareSide({ input }: Stack): number | null {
  const side = Math.sqrt(input.kind === "patches" ? input.patches : 0);
  return Number.isInteger(side) ? side : null;
}

/** What towers of one size have. */
export const FIXED = {
  joinedSide: null,
  windowSide: null,
  deepstack: null,
  tokenBytes: 0,
  noFlash: false,
} as const;

function sizeWords(vision: ConfigReader, fallback: number): string {
  const side = vision.size("image_size", fallback);
  return `of ${side} x ${side} pixels`;
}

const INT64 = 8;

/** Gemma 3 and PaliGemma: SigLIP, whose tokens see each other both ways. */
export const gemma3Tower: TowerReader = ({ config, vision }) => {
  const stack = siglip(vision);
  const side = stack === null ? null : squareSide(stack);
  const tokens = config.size("mm_tokens_per_image", 256);
  if (stack === null || side === null || !Number.isInteger(side / Math.sqrt(tokens))) return null;
  return {
    ...FIXED,
    stack,
    tokens,
    taken: null,
    projector: { kind: "pooled" },
    masksText: true,
    tokenBytes: INT64,
    noFlash: true,
    image: sizeWords(vision, 224),
  };
};

export const paligemmaTower: TowerReader = ({ config, vision }) => {
  const stack = siglip(vision);
  if (stack === null || stack.input.kind !== "patches") return null;
  return {
    ...FIXED,
    stack,
    tokens: stack.input.patches,
    taken: null,
    projector: { kind: "linear", width: config.size("projection_dim", 2048) },
    masksText: true,
    tokenBytes: INT64,
    noFlash: true,
    image: sizeWords(vision, 224),
  };
};

/** A pool head would run beside what is taken, and was never measured. */
function siglip(vision: ConfigReader): Stack | null {
  const known = vision.text("model_type", "siglip_vision_model") === "siglip_vision_model";
  return !known || vision.flag("vision_use_head", true) ? null : encoderStack(vision, SIGLIP, "siglip");
}

/** LLaVA 1.5, and LLaVA-NeXT whose image is seen as a whole and in two tiles, one of them padding. */
export function llavaTower(next: boolean): TowerReader {
  return ({ config, vision }) => {
    if (vision.text("model_type", "clip_vision_model") !== "clip_vision_model") return null;
    const listed = config.list("vision_feature_layer");
    const asked = listed ?? [config.number("vision_feature_layer", -2)];
    const layers = vision.size("num_hidden_layers", CLIP.layers);
    const taken = asked.map((one) => (typeof one === "number" && one < 0 ? layers + 1 + one : Number(one)));
    // States count from the embedding's on.
    if (taken.some((at) => !Number.isInteger(at) || at < 1 || at > layers)) return null;
    const ends = [...new Set([...taken, layers])].sort((a, b) => a - b);
    const tiles = next ? 3 : 1;
    const seen = patches(vision, CLIP).count + 1;
    const runs = ends.map(
      (end, index): StackRun => ({
        layers: end - (ends[index - 1] ?? 0),
        shared: false,
        window: null,
        normed: true,
        ...(next ? { chunk: seen } : {}),
      }),
    );
    const stack = encoderStack(vision, CLIP, "clip", { runs: () => runs, tiles });
    const side = stack === null ? null : squareSide(stack);
    const { activation, assumed } = stackActivation(config, "projector_hidden_act", "gelu");
    const skipsClass = config.text("vision_feature_select_strategy", "default") === "default";
    if (stack === null || side === null || assumed.length > 0 || (next && !skipsClass)) return null;
    return {
      ...FIXED,
      stack,
      tokens: next ? 2 * side ** 2 + side : side ** 2 + (skipsClass ? 0 : 1),
      taken: taken.map((at) => ends.indexOf(at)),
      projector: {
        kind: "perceptron",
        skipsClass,
        bias: config.flag("multimodal_projector_bias", true),
        activation,
        layers: taken.length,
        newline: next,
      },
      masksText: false,
      image: `${sizeWords(vision, 224)}${next ? " in three tiles" : ""}`,
    };
  };
}

const IDEFICS = { ...SIGLIP, hidden: 1152, heads: 16, patch: 32 };

export const idefics3Tower: TowerReader = ({ config, vision }) => {
  const stack = encoderStack(vision, IDEFICS, "idefics");
  const side = stack === null ? null : squareSide(stack);
  const factor = config.size("scale_factor", 2);
  if (stack === null || side === null || side % factor !== 0) return null;
  return {
    ...FIXED,
    stack,
    tokens: (side / factor) ** 2,
    taken: null,
    projector: { kind: "shuffle", factor },
    masksText: false,
    image: `${sizeWords(vision, 224)}, not split`,
  };
};

/** Llama 4: CLIP's layout with complex rotary positions; the image is one tile. */
export const llama4Tower: TowerReader = ({ vision }) => {
  const traits = { image: 448, patch: 14 };
  const hidden = vision.size("hidden_size", 768);
  const ffn = vision.size("intermediate_size", 5632);
  const inner = vision.size("projector_input_dim", 4096);
  const factor = 1 / vision.number("pixel_shuffle_ratio", 0.5);
  const grid = patches(vision, traits);
  const runs =
    hidden * factor ** 2 === ffn &&
    inner === vision.size("projector_output_dim", 4096) &&
    inner === vision.size("vision_output_dim", 7680) &&
    Number.isInteger(Math.sqrt(grid.count) / factor);
  if (!runs) return null;
  const block = bertBlock(
    { hidden, heads: vision.size("num_attention_heads", 16), ffn },
    {
      placement: "pre",
      attention: { ...PLAIN_ATTENTION, rotary: "complex" },
      adapted: { inputs: true, output: true },
      dropout: {
        attention: drops(vision, "attention_dropout", 0),
        attended: false,
        fed: false,
        inner: false,
      },
    },
  );
  const input: PatchInput = {
    kind: "patches",
    patches: grid.count,
    pixels: grid.pixels,
    image: imageValues(vision, traits),
    bias: false,
    classToken: true,
    registers: 0,
    maskToken: false,
    norm: "layer",
    dropout: false,
    unfolded: true,
  };
  return {
    ...FIXED,
    stack: encoder(input, block, alike(vision.size("num_hidden_layers", 34)), { finalNorm: "layer" }),
    tokens: grid.count / factor ** 2,
    taken: null,
    projector: { kind: "adapter", factor, inner },
    masksText: false,
    image: `${sizeWords(vision, traits.image)}, one tile`,
  };
};
