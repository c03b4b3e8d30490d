import { fail, ok, type Result } from "../lib/result.ts";
import { isObject, type Json } from "./config.ts";

/** What a `.neurarch.json` graph tells without being sized. */
export interface Graph {
  readonly name: string | null;
  readonly components: number;
  readonly params: number;
}

function amount(params: Json, key: string, fallback = 0): number {
  const value = params[key];
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : fallback;
}

/** A kernel as a number or a list, to the power of the convolution's dimensions. */
function kernelArea(params: Json, dimensions: number): number {
  const kernel = params.kernelSize;
  if (!Array.isArray(kernel)) return amount(params, "kernelSize", 1) ** dimensions;
  return kernel.reduce((area: number, side) => area * (typeof side === "number" ? side : 1), 1);
}

function product(value: unknown): number {
  if (typeof value === "number") return value;
  if (!Array.isArray(value)) return 0;
  return value.reduce((all: number, side) => all * (typeof side === "number" ? side : 1), 1);
}

function convolution(params: Json, dimensions: number): number {
  const outputs = amount(params, "outChannels");
  const groups = Math.max(1, amount(params, "groups", 1));
  const weights = (amount(params, "inChannels") * outputs * kernelArea(params, dimensions)) / groups;
  return weights + (params.bias === false ? 0 : outputs);
}

/** Gated recurrent layers: input and recurrent matrices with two biases each, for every direction and layer. */
function recurrent(params: Json, gates: number): number {
  const hidden = amount(params, "hiddenSize");
  const directions = params.bidirectional === true ? 2 : 1;
  const layers = Math.min(10_000, amount(params, "numLayers", 1));
  const layer = (inputs: number) => gates * hidden * (inputs + hidden + 2) * directions;
  return layer(amount(params, "inputSize")) + (layers - 1) * layer(hidden * directions);
}

/** Parameters of one component by its type; `paramCount` counts where the graph states it. */
function componentParams(type: string, params: Json): number {
  if (typeof params.paramCount === "number") return amount(params, "paramCount");
  const hidden = amount(params, "hiddenDim") || amount(params, "embedDim");
  switch (type) {
    case "linear":
    case "lmHead": {
      const outputs = amount(params, "outFeatures") || amount(params, "vocabSize");
      const inputs = amount(params, "inFeatures") || hidden;
      return inputs * outputs + (params.bias === false || type === "lmHead" ? 0 : outputs);
    }
    case "conv1d":
      return convolution(params, 1);
    case "conv2d":
    case "transposeConv2d":
    case "patchEmbed":
      return convolution(params, 2);
    case "conv3d":
      return convolution(params, 3);
    case "embedding":
      return amount(params, "vocabSize") * amount(params, "embeddingDim");
    case "lstm":
      return recurrent(params, 4);
    case "gru":
      return recurrent(params, 3);
    case "rnn":
      return recurrent(params, 1);
    case "batchNorm":
      return 2 * amount(params, "numFeatures");
    case "layerNorm":
      return 2 * product(params.normalizedShape);
    case "rmsNorm":
      return product(params.normalizedShape);
    case "groupNorm":
      return 2 * (amount(params, "numChannels") || amount(params, "numFeatures"));
    case "multiHeadAttention":
    case "selfAttention":
      return 4 * hidden * (hidden + 1);
    case "transformerBlock": {
      const ffn = amount(params, "ffDim");
      return 4 * hidden * (hidden + 1) + 2 * hidden * ffn + ffn + hidden + 4 * hidden;
    }
    default:
      return 0;
  }
}

/** Reads a graph, also one wrapped in `{model: ...}` or `{graph: ...}`. The error is one sentence without a stop. */
export function readGraph(raw: unknown): Result<Graph, string> {
  if (!isObject(raw)) return fail("it is not a graph: an object with components was expected");
  const graph = [raw.model, raw.graph].find(isObject) ?? raw;
  const list = graph.components;
  if (!Array.isArray(list)) return fail("the graph has no list of `components`");
  let params = 0;
  for (const component of list) {
    if (!isObject(component)) return fail("a component of the graph is not an object");
    const type = typeof component.type === "string" ? component.type : "";
    params += componentParams(type, isObject(component.params) ? component.params : {});
  }
  return ok({ name: typeof graph.name === "string" ? graph.name : null, components: list.length, params });
}
