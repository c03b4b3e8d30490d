import type { ConfigReader } from "../config.ts";
import type { DecoderShape } from "../types.ts";

/** The sizes every decoder has. */
export interface Sizes {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ffn: number;
  readonly vocab: number;
}

/** A Llama-like decoder of the given sizes; families lay what differs over it. */
export function baseShape(sizes: Sizes): DecoderShape {
  return {
    ...sizes,
    embedWidth: sizes.hidden,
    positionRows: 0,
    tiedHead: false,
    norm: "rms",
    normPlacement: "pre",
    finalNorm: true,
    embedNorm: false,
    qkNorm: "none",
    fusedQkv: false,
    mlp: "gated",
    activation: "silu",
    bias: { qkv: false, out: false, mlp: false, head: false },
    rotary: 1,
    alibi: false,
    dropout: { attention: false, residual: false, embedding: false },
    windows: [{ layers: sizes.layers, window: null }],
    multipliers: { embedding: false, attention: false, residual: false, logits: false },
    softcap: { attention: false, logits: false },
  };
}

/** Sizes under the keys of Llama's config, with a family's class defaults. */
export function usualSizes(
  config: ConfigReader,
  defaults: {
    readonly vocab: number;
    readonly hidden: number;
    readonly ffn: number;
    readonly layers: number;
    readonly heads: number;
    readonly kvHeads?: number;
    readonly headDim?: number;
  },
): Sizes {
  const hidden = config.size("hidden_size", defaults.hidden);
  const heads = config.size("num_attention_heads", defaults.heads);
  return {
    layers: config.size("num_hidden_layers", defaults.layers),
    hidden,
    heads,
    kvHeads: config.size("num_key_value_heads", defaults.kvHeads ?? heads),
    headDim: config.size("head_dim", defaults.headDim ?? Math.floor(hidden / heads)),
    ffn: config.size("intermediate_size", defaults.ffn),
    vocab: config.size("vocab_size", defaults.vocab),
  };
}

/** Whether a dropout probability under `key` is on. */
export function drops(config: ConfigReader, key: string, fallback: number): boolean {
  return config.number(key, fallback) > 0;
}

/** The rotated part of each head: a key of its own in older files, one of `rope_parameters` since transformers 5. */
export function rotaryFraction(config: ConfigReader, fallback: number, keys: readonly string[] = []): number {
  const nested = config.only("rope_parameters")?.number("partial_rotary_factor", fallback) ?? fallback;
  return config.number([...keys, "partial_rotary_factor"], nested);
}

/** Names of transformers' `ACT2FN` by how they run; an unknown one is taken as one kernel, and that is said. */
const ACTIVATIONS: Readonly<Record<string, DecoderShape["activation"]>> = {
  silu: "silu",
  swish: "silu",
  gelu: "gelu",
  gelu_pytorch_tanh: "gelu-tanh",
  gelu_new: "gelu-new",
  gelu_fast: "gelu-fast",
  gelu_python: "gelu-erf",
  relu: "relu",
  relu2: "relu2",
};

export function activationOf(
  config: ConfigReader,
  key: string | readonly string[],
  fallback: string,
): { readonly activation: DecoderShape["activation"]; readonly assumed: readonly string[] } {
  const name = config.text(key, fallback);
  const known = ACTIVATIONS[name];
  if (known !== undefined) return { activation: known, assumed: [] };
  return {
    activation: "gelu",
    assumed: [`The activation ${JSON.stringify(name.slice(0, 40))} is sized as one kernel, like gelu.`],
  };
}

/**
 * Attention windows from `layer_types` where the config lists them, else from `window` for the layers from
 * `firstWindowed` on.
 */
export function windowsOf(
  config: ConfigReader,
  layers: number,
  window: number | null,
  firstWindowed: number,
): DecoderShape["windows"] {
  if (window === null) return [{ layers, window: null }];
  const types = config.list("layer_types");
  const windowed =
    types !== null
      ? types.slice(0, layers).filter((type) => type === "sliding_attention").length
      : Math.max(0, layers - firstWindowed);
  return [
    { layers: layers - windowed, window: null },
    { layers: windowed, window },
  ].filter((run) => run.layers > 0);
}
