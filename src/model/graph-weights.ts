import type { KindOf } from "./graph-kinds.ts";
import { GraphFault, type GraphParams } from "./graph-params.ts";
import type { Shape } from "./graph-types.ts";

/** The parameter tensors of a component, and the widths and counts that its program needs. */
export interface Weighed {
  readonly weights: readonly Shape[];
  readonly sizes: Readonly<Record<string, number>>;
}

const WIDTH = ["embedDim", "hiddenDim", "embeddingDim", "dModel", "hiddenSize", "inputDim", "dim"] as const;
const INNER = ["ffDim", "dFF", "ffnDim", "innerDim", "intermediateSize", "intermediateDim"] as const;
const KEY_HEADS = ["numKVHeads", "numKvHeads", "kvHeads", "numKeyValueHeads"] as const;
/** Recurrent layers beyond which a file is taken to be damaged. */
const MOST_LAYERS = 10_000;

export function elements(shape: Shape): number {
  let all = 1;
  for (const side of shape) all *= side;
  return all;
}

export function countOf(weights: readonly Shape[]): number {
  let all = 0;
  for (const shape of weights) all += elements(shape);
  return all;
}

/** Parameters as PyTorch's modules have them. Throws `GraphFault` where a size is missing or senseless. */
export function weighed(
  { kind, dimensions, transposed, gates }: KindOf,
  type: string,
  params: GraphParams,
  inShape: Shape | null,
  outShape: Shape | null,
  count: number | null = null,
): Weighed {
  const lastIn = inShape?.at(-1) ?? null;
  const width = () => params.size(...WIDTH) ?? lastIn ?? params.needed(WIDTH[0]);
  switch (kind) {
    case "linear": {
      const head = /^lm_?head$/i.test(type);
      const inputs = params.size("inFeatures", "in_features", ...(head ? WIDTH : [])) ?? lastIn;
      const outputs =
        params.size("outFeatures", "out_features", "vocabSize", "numClasses", "units") ?? outShape?.at(-1);
      if (inputs === null || inputs === undefined)
        return { weights: [[params.needed("inFeatures")]], sizes: {} };
      if (outputs === undefined) return { weights: [[params.needed("outFeatures")]], sizes: {} };
      return { weights: withBias([outputs, inputs], params.flag("bias", !head)), sizes: {} };
    }
    case "convolution":
      return convolution(params, dimensions ?? 2, transposed ?? false);
    case "embedding": {
      const rows = params.needed("vocabSize", "numEmbeddings");
      return { weights: [[rows, params.needed("embeddingDim", "embedDim", "hiddenDim", "dim")]], sizes: {} };
    }
    case "positions": {
      const rows = params.size("maxLen", "maxLength", "maxSeqLen", "maxPositions", "numEmbeddings");
      const learned = params.flag("learned", params.flag("learnable", false));
      return { weights: learned && rows !== null ? [[rows, width()]] : [], sizes: { rows: rows ?? 0 } };
    }
    case "recurrent":
      return recurrent(params, gates ?? 1);
    case "batch-norm": {
      const features = params.needed("numFeatures");
      return { weights: [[features], [features]], sizes: { features } };
    }
    case "layer-norm":
    case "rms-norm": {
      const features = params.product("normalizedShape") ?? params.size("numFeatures", ...WIDTH) ?? lastIn;
      if (features === null) return { weights: [[params.needed("normalizedShape")]], sizes: {} };
      const bias = kind === "layer-norm" && params.flag("bias", true);
      return { weights: bias ? [[features], [features]] : [[features]], sizes: { features } };
    }
    case "group-norm": {
      const features = params.needed("numChannels", "numFeatures");
      return {
        weights: [[features], [features]],
        sizes: { features, groups: params.size("numGroups") ?? 1 },
      };
    }
    case "instance-norm": {
      const features = params.size("numFeatures") ?? inShape?.[0] ?? 1;
      return { weights: params.flag("affine", false) ? [[features], [features]] : [], sizes: { features } };
    }
    case "attention":
      return attention(params, type, width(), count);
    case "block": {
      const wide = width();
      // Of a module that a trace cut off, the count tells the width that its sizes leave out.
      const rest = count === null ? null : (count - 4 * wide * (wide + 1) - 5 * wide) / (2 * wide + 1);
      const inner =
        params.size(...INNER) ?? (rest !== null && rest > 0 && Number.isInteger(rest) ? rest : 4 * wide);
      const own = attention(params, "multiHeadAttention", wide);
      const weights = [
        ...own.weights,
        [inner, wide],
        [inner],
        [wide, inner],
        [wide],
        ...new Array<Shape>(4).fill([wide]),
      ];
      return { weights, sizes: { ...own.sizes, inner } };
    }
    case "feed-forward":
    case "gated-feed-forward": {
      const wide = lastIn ?? width();
      const given = params.size(...INNER) ?? (params.has("embedDim") ? params.size("hiddenDim") : null);
      const inner = given ?? 4 * wide;
      if (kind === "gated-feed-forward")
        return {
          weights: [
            [inner, wide],
            [inner, wide],
            [wide, inner],
          ],
          sizes: { inner },
        };
      return { weights: [[inner, wide], [inner], [wide, inner], [wide]], sizes: { inner } };
    }
    case "experts": {
      const wide = lastIn ?? width();
      const experts = params.needed("numExperts", "experts");
      const chosen = params.size("topK", "top_k", "numExpertsPerToken") ?? 2;
      const inner = params.size(...INNER, "expertDim") ?? 4 * wide;
      const weights = [
        [experts, wide],
        [experts, 2 * inner, wide],
        [experts, wide, inner],
      ];
      return { weights, sizes: { inner, experts, chosen } };
    }
    case "activation":
      // PReLU alone has parameters.
      return /^prelu$/i.test(type)
        ? { weights: [[params.size("numParameters") ?? 1]], sizes: {} }
        : { weights: [], sizes: {} };
    default:
      return { weights: [], sizes: {} };
  }
}

function withBias(matrix: Shape, bias: boolean): Shape[] {
  return bias ? [matrix, [matrix[0]!]] : [matrix];
}

function convolution(params: GraphParams, dimensions: number, transposed: boolean): Weighed {
  const inputs = params.size("inChannels", "in_channels", "inChans") ?? 3;
  const outputs = params.needed("outChannels", "out_channels", "embedDim");
  const patch = params.has("patchSize");
  const kernel = params.sides(patch ? "patchSize" : "kernelSize", dimensions, patch ? 16 : 1);
  const groups = Math.max(1, params.size("groups") ?? 1);
  if (inputs % groups > 0 || outputs % groups > 0)
    throw new GraphFault(`${params.where} has ${groups} groups, which its channels cannot be shared over`);
  const matrix = transposed ? [inputs, outputs / groups] : [outputs, inputs / groups];
  const bias = params.flag("bias", true) ? [[outputs]] : [];
  return { weights: [[...matrix, ...kernel], ...bias], sizes: { outputs } };
}

function recurrent(params: GraphParams, gates: number): Weighed {
  const hidden = params.needed("hiddenSize", "hiddenDim");
  const inputs = params.needed("inputSize", "inputDim");
  const layers = params.size("numLayers") ?? 1;
  if (layers > MOST_LAYERS || layers < 1)
    throw new GraphFault(`${params.where} has ${layers} layers, not 1 to ${MOST_LAYERS}`);
  const directions = params.flag("bidirectional", false) ? 2 : 1;
  const biases = params.flag("bias", true) ? [[gates * hidden], [gates * hidden]] : [];
  const weights: Shape[] = [];
  for (let layer = 0; layer < layers; layer++) {
    const width = layer === 0 ? inputs : hidden * directions;
    for (let direction = 0; direction < directions; direction++)
      weights.push([gates * hidden, width], [gates * hidden, hidden], ...biases);
  }
  return { weights, sizes: { hidden, layers, directions, gates } };
}

function attention(params: GraphParams, type: string, width: number, count: number | null = null): Weighed {
  const heads = params.size("numHeads", "heads", "nHeads", "numQueryHeads", "num_heads") ?? 0;
  const grouped = /group|multiquery/i.test(type);
  const keyHeads =
    params.size(...KEY_HEADS) ?? keyHeadsBy(count, width, heads) ?? (/multiquery/i.test(type) ? 1 : heads);
  if (heads > 0 && (keyHeads < 1 || heads % keyHeads > 0))
    throw new GraphFault(`${params.where} shares ${keyHeads} heads of keys among ${heads} heads`);
  const size = params.size("headDim") ?? (heads > 0 ? width / heads : 0);
  if (!Number.isInteger(size))
    throw new GraphFault(`${params.where} has a width of ${width}, which ${heads} heads cannot share`);
  const queries = heads > 0 ? heads * size : width;
  const keys = heads > 0 ? keyHeads * size : width;
  const plain = 2 * width * queries + 2 * width * keys;
  const bias = params.flag("bias", count === null ? !grouped : count !== plain);
  const inputs = withBias([queries + 2 * keys, width], bias);
  const sizes = { heads, keyHeads, size, queries, keys };
  return { weights: [...inputs, ...withBias([width, queries], bias)], sizes };
}

/** Heads of keys that a count of matrices without biases tells; null where it tells none. */
function keyHeadsBy(count: number | null, width: number, heads: number): number | null {
  if (count === null || heads === 0 || width % heads > 0) return null;
  const keys = (count / width - 2 * width) / 2;
  const found = keys / (width / heads);
  return Number.isInteger(found) && found >= 1 && heads % found === 0 ? found : null;
}
