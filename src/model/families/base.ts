import { GateError } from "../../lib/errors.ts";
import type { ConfigReader } from "../config.ts";
import { decoderGroups } from "../decoder.ts";
import { countParams, type StructureExtras } from "../family.ts";
import type { DecoderShape, LayerRun, ParamGroup, ScoresShape, Structure } from "../types.ts";
import { baseShape } from "./shapes.ts";

/** What is said of every family whose activations were not walked for themselves. */
export function nearest(family: string): string {
  return `activations by the nearest family (${family})`;
}

/** What a family's config class takes where a key is absent. */
export interface ShapeDefaults {
  readonly hidden: number;
  readonly layers: number;
  readonly vocab: number;
  /** A number, or four times `hidden`. */
  readonly ffn: number | "4h";
  readonly heads: number;
  /** `heads` = as many as query heads. */
  readonly kvHeads: number | "heads";
  /** `split` = hidden / heads. */
  readonly headDim: number | "split";
  readonly tied: boolean;
  /** The class's window of attention, where it has one. */
  readonly window?: number;
  /** One layer in so many attends to everything, the others within the window. */
  readonly fullEvery?: number;
  /** `use_sliding_window` is off unless the file turns it on (the Qwen families). */
  readonly windowOff?: boolean;
}

const KEYS = {
  vocab: ["vocab_size", "padded_vocab_size"],
  hidden: ["hidden_size", "n_embd", "d_model", "n_embed"],
  layers: ["num_hidden_layers", "n_layer", "num_layers", "n_layers"],
  heads: ["num_attention_heads", "n_head", "num_heads", "n_heads"],
  ffn: ["intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"],
} as const;

/** Context keys in the order in which families write them; rotary scaling never multiplies them again. */
export function contextTokens(config: ConfigReader): number | null {
  return config.sizeOrNull(["max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length"]);
}

/** Size of one head: `head_dim` where the config states it, else an equal part of the hidden size. */
export function headSize(config: ConfigReader, hidden: number, heads: number): number {
  const stated = config.sizeOrNull("head_dim");
  if (stated !== null) return stated;
  if (heads > hidden) {
    throw new GateError(
      "config-invalid",
      `\`num_attention_heads\` is ${heads}, more than the hidden size ${hidden}`,
      "Check that it is the model's own config.json.",
    );
  }
  return Math.floor(hidden / heads);
}

/** Key and value heads: an explicit null means "as many as query heads", absence the default of the class. */
export function kvHeads(config: ConfigReader, heads: number, fallback: number | "heads"): number {
  if (fallback === "heads" || config.isNull("num_key_value_heads")) {
    return config.sizeOrNull("num_key_value_heads") ?? heads;
  }
  return config.size("num_key_value_heads", fallback);
}

/** A decoder's shape from the usual keys; `traits` says in what the family departs from llama. */
export function readShape(
  config: ConfigReader,
  defaults: ShapeDefaults,
  traits: Partial<DecoderShape> = {},
): DecoderShape {
  const hidden = config.size(KEYS.hidden, defaults.hidden);
  const layers = config.size(KEYS.layers, defaults.layers);
  const heads = config.size(KEYS.heads, defaults.heads);
  const headDim =
    defaults.headDim === "split" || config.isNull("head_dim")
      ? headSize(config, hidden, heads)
      : config.size("head_dim", defaults.headDim);
  const sizes = {
    layers,
    hidden,
    heads,
    kvHeads: kvHeads(config, heads, defaults.kvHeads),
    headDim,
    ffn: config.size(KEYS.ffn, defaults.ffn === "4h" ? 4 * hidden : defaults.ffn),
    vocab: config.size(KEYS.vocab, defaults.vocab),
  };
  return {
    ...baseShape(sizes),
    tiedHead: config.flag("tie_word_embeddings", defaults.tied),
    rotary: config.number("partial_rotary_factor", 1),
    windows: slidingWindows(config, layers, defaults),
    ...traits,
  };
}

/** How many layers attend within a window: `layer_types`, else the pattern keys of older files or the class's. */
function slidingWindows(
  config: ConfigReader,
  layers: number,
  defaults: ShapeDefaults,
): DecoderShape["windows"] {
  const stated = config.sizeOrNull("sliding_window");
  const window = config.isNull("sliding_window") ? null : (stated ?? defaults.window ?? null);
  if (window === null || !config.flag("use_sliding_window", defaults.windowOff !== true))
    return [{ layers, window: null }];
  const types = config.list("layer_types");
  const every = config.number(
    ["sliding_window_pattern", "_sliding_window_pattern"],
    defaults.fullEvery ?? Number.POSITIVE_INFINITY,
  );
  const full =
    types === null
      ? Math.floor(layers / Math.max(1, every))
      : layers - Math.min(layers, types.filter((type) => type === "sliding_attention").length);
  const runs = [
    { layers: full, window: null },
    { layers: layers - full, window },
  ];
  return runs.filter((run) => run.layers > 0);
}

/** A kind of layer under a name of its own. */
export interface NamedKind extends Omit<LayerRun, "layers"> {
  readonly name: string;
}

/**
 * Layers of several kinds as runs: at both ends as they stand, until each kind has come, and those between by kind.
 * Which kind stands first and last decides what else lives while it runs back.
 */
export function layerRuns(layers: number, kindOf: (layer: number) => NamedKind): LayerRun[] {
  const kinds: NamedKind[] = [];
  for (let layer = 0; layer < layers; layer++) kinds.push(kindOf(layer));
  const distinct = new Set(kinds.map(({ name }) => name)).size;
  const seen = new Set<string>();
  let head = 0;
  while (head < layers && seen.size < distinct) seen.add(kinds[head++]!.name);
  seen.clear();
  let tail = layers;
  while (tail > head && seen.size < distinct) seen.add(kinds[--tail]!.name);
  if (seen.size < distinct) tail = layers;
  const middle = Map.groupBy(kinds.slice(head, tail), ({ name }) => name);
  const runs: (LayerRun & { layers: number; readonly name: string })[] = [];
  for (const kind of [...kinds.slice(0, head), ...[...middle.values()].flat(), ...kinds.slice(tail)]) {
    const last = runs.at(-1);
    if (last?.name === kind.name) last.layers += 1;
    else runs.push({ ...kind, layers: 1 });
  }
  return runs.map(({ name: _, ...run }) => run);
}

/**
 * The head that an architecture's name stands for: `lm` scores the vocabulary, a bare `*Model` has none, a
 * classifier has one row a label, and a span has a begin and an end.
 */
export function headKind(architecture: string): "lm" | "none" | "samples" | "tokens" | "span" {
  if (architecture.endsWith("ForSequenceClassification")) return "samples";
  if (architecture.endsWith("ForTokenClassification")) return "tokens";
  if (architecture.endsWith("ForQuestionAnswering")) return "span";
  return /(?<!LMHead|DoubleHeads|Reward)Model$/.test(architecture) ? "none" : "lm";
}

/** Labels of a classifier: `num_labels` decides, then `id2label`, then Hugging Face's two. */
export function labels(config: ConfigReader): number {
  if (config.has("num_labels")) return config.size("num_labels");
  const map = config.raw_("id2label")?.value;
  if (typeof map === "object" && map !== null && !Array.isArray(map)) {
    const count = Object.keys(map).length;
    if (count > 0) return count;
  }
  return 2;
}

/** The shape without a vocabulary head and what stands in its place, as the architecture's name asks. */
export function headed(
  config: ConfigReader,
  shape: DecoderShape,
): { readonly shape: DecoderShape; readonly outside: ParamGroup[]; readonly notes: string[] } {
  const architecture = config.architecture();
  const kind = headKind(architecture);
  if (kind === "lm") return { shape, outside: [], notes: [] };
  const bare = { ...shape, tiedHead: true, bias: { ...shape.bias, head: false } };
  const name = architecture.slice(0, 80);
  if (kind === "none") {
    const scores = { of: "nothing", labels: 0, bias: false, dropout: false } as const;
    return { shape: { ...bare, scores }, outside: [], notes: [`${name}: no output head is counted`] };
  }
  const scores = scoresOf(config, kind);
  const { labels: count } = scores;
  return {
    shape: { ...bare, scores },
    outside: [{ name: "classifier", count: shape.embedWidth * count + (scores.bias ? count : 0) }],
    notes: [`${name}: a classifier of ${count} labels instead of the vocabulary head`],
  };
}

/** `GenericFor...` of transformers' modeling_layers.py; falcon, gpt2 and others write the same. */
function scoresOf(config: ConfigReader, kind: "samples" | "tokens" | "span"): ScoresShape {
  if (kind === "samples") return { of: "samples", labels: labels(config), bias: false, dropout: false };
  if (kind === "span") return { of: "tokens", labels: 2, bias: true, dropout: false };
  const rate = config.number(["classifier_dropout", "hidden_dropout"], 0.1);
  return { of: "tokens", labels: labels(config), bias: true, dropout: rate > 0 };
}

/** A decoder-only structure with the head its architecture asks for instead of the one it was read with. */
export function withHead(config: ConfigReader, structure: Structure): Structure {
  const { decoder } = structure;
  if (decoder === null || headKind(config.architecture()) === "lm") return structure;
  const head = headed(config, decoder);
  const inside = decoderGroups(decoder).length;
  const groups = [...decoderGroups(head.shape), ...structure.groups.slice(inside), ...head.outside];
  const params = countParams(groups);
  return {
    ...structure,
    params,
    activeParams: structure.activeParams - structure.params + params,
    groups,
    decoder: head.shape,
    paramsOutside: structure.paramsOutside + countParams(head.outside),
    notes: [...structure.notes, ...head.notes],
  };
}

/**
 * The structure of a model whose parts are counted one by one, with the decoder nearest to it for its
 * activations. `paramsOutside` makes up the difference, so it is below zero where layers share weights.
 */
export function partsStructure(
  family: string,
  groups: readonly ParamGroup[],
  decoder: DecoderShape | null,
  extras: StructureExtras = {},
): Structure {
  const params = countParams(groups);
  return {
    family,
    params,
    activeParams: extras.activeParams ?? params,
    groups: groups.filter((group) => group.count > 0),
    decoder,
    paramsOutside:
      extras.paramsOutside ?? params - (decoder === null ? 0 : countParams(decoderGroups(decoder))),
    contextTokens: extras.contextTokens ?? null,
    ...(extras.stacks === undefined ? {} : { stacks: extras.stacks }),
    assumed: extras.assumed ?? [],
    notes: extras.notes ?? [],
  };
}
