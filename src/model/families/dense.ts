import type { ConfigReader } from "../config.ts";
import { decoderStructure, type FamilyReader } from "../family.ts";
import type { DecoderShape, ParamGroup } from "../types.ts";
import { contextTokens, headed, nearest, readShape, type ShapeDefaults } from "./base.ts";

/** How a dense family differs from llama. */
interface Dense {
  readonly types: readonly string[];
  readonly defaults: ShapeDefaults;
  readonly traits?: (config: ConfigReader) => Partial<DecoderShape>;
  /** Parameters that the shape does not hold. */
  readonly outside?: (shape: DecoderShape, config: ConfigReader) => ParamGroup[];
  readonly nearest?: string;
  /** In what layers without a window differ from those with one. */
  readonly fullDiffers?: Partial<DecoderShape>;
  /**
   * Whether the shape was compared with measured training steps (both precisions, LoRA, checkpointing, eager
   * attention) and agreed; false for what the comparison left out.
   */
  readonly measured?: (config: ConfigReader) => boolean;
}

/** A reader for a dense family that differs from llama in its defaults and a few traits. */
export function dense(family: Dense): FamilyReader {
  return {
    types: family.types,
    read(config) {
      const read = readShape(config, family.defaults, family.traits?.(config));
      const { fullDiffers: differs } = family;
      // The last layer is one without a window: its like come last.
      const windows =
        differs === undefined
          ? read.windows
          : read.windows.map((run) => (run.window === null ? { ...run, differs } : run)).toReversed();
      const head = headed(config, { ...read, windows });
      return decoderStructure(config.text("model_type", family.types[0] ?? ""), head.shape, {
        contextTokens: contextTokens(config),
        outside: [...(family.outside?.(head.shape, config) ?? []), ...head.outside],
        assumed: family.measured?.(config) === true ? [] : [nearest(family.nearest ?? "llama")],
        notes: head.notes,
      });
    },
  };
}

export const MHA = { kvHeads: "heads", headDim: "split" } as const;
export const NO_BIAS = { qkv: false, out: false, mlp: false, head: false } as const;

/** `attention_bias` puts a bias on all four matrices. */
export function attentionBias(config: ConfigReader, fallback = false): DecoderShape["bias"] {
  const bias = config.flag("attention_bias", fallback);
  return { ...NO_BIAS, qkv: bias, out: bias };
}

/** Llama with `attention_bias` and `mlp_bias` (`configuration_llama.py` and its descendants). */
export function llamaBias(config: ConfigReader): DecoderShape["bias"] {
  return { ...attentionBias(config), mlp: config.flag("mlp_bias", false) };
}
