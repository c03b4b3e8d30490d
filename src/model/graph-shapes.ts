import type { Json } from "./config.ts";
import { isObject } from "./config.ts";
import type { KindOf } from "./graph-kinds.ts";
import { kindOfType } from "./graph-kinds.ts";
import { GraphFault, type GraphParams } from "./graph-params.ts";
import type { Shape } from "./graph-types.ts";
import { elements } from "./graph-weights.ts";

/** Tokens that a text is taken to have where a drawn graph does not say; any other length can be asked for. */
const USUAL_LENGTH = 2048;

/**
 * Whether the file's shapes begin with the batch. neurarch-trace 0.1.3 leaves it out; others write it. The first
 * component whose sizes tell the two apart decides, then what the file says it was traced with.
 */
export function withBatch(
  components: readonly Json[],
  inputs: readonly (readonly number[])[],
  description: unknown,
): boolean {
  for (let place = 0; place < components.length; place++) {
    const { type, params, inputShape: own } = components[place]!;
    const before = components[inputs[place]![0] ?? -1];
    const drawn = isObject(before?.params) ? before.params.shape : undefined;
    const inputShape = own ?? before?.outputShape ?? drawn;
    if (!Array.isArray(inputShape) || !isObject(params) || typeof type !== "string") continue;
    const known = kindOfType(type);
    const rank = inputShape.length;
    switch (known?.kind) {
      case "convolution":
      case "max-pool":
      case "average-pool":
        if (rank === known.dimensions! + 2) return true;
        if (rank === known.dimensions! + 1) return false;
        break;
      case "batch-norm":
        if (inputShape[0] === params.numFeatures) return false;
        if (inputShape[1] === params.numFeatures) return true;
        break;
      case "recurrent":
      case "attention":
      case "block":
        if (rank === 3) return true;
        if (rank === 2) return false;
        break;
      case "embedding":
        if (rank === 2) return true;
        break;
    }
  }
  const shapes = components.flatMap(({ inputShape, outputShape }) =>
    [inputShape, outputShape].filter((shape) => Array.isArray(shape)),
  );
  const fed = components.filter(({ type }) => type === "input").map(({ outputShape }) => outputShape);
  const said =
    typeof description === "string" ? /with input ([0-9,]+)/.exec(description.slice(0, 2000)) : null;
  if (said !== null && Array.isArray(fed[0])) return fed[0].join(",") === said[1];
  return shapes.length > 1 && shapes.every((shape) => shape.length > 1 && shape[0] === 1);
}

/** The shape that a component makes of its inputs', where the file does not say; null = it cannot be told. */
export function inferred(
  { kind, dimensions, transposed }: KindOf,
  type: string,
  params: GraphParams,
  inputs: readonly Shape[],
  weights: readonly Shape[],
): Shape | null {
  const [first] = inputs;
  if (first === undefined) return null;
  const last = (features: number) => [...first.slice(0, -1), features];
  switch (kind) {
    case "linear":
      return last(weights[0]![0]!);
    case "embedding":
      return [...first, weights[0]!.at(-1)!];
    case "recurrent":
      return last(params.needed("hiddenSize", "hiddenDim") * (params.flag("bidirectional", false) ? 2 : 1));
    case "mean":
      return [first[0]!];
    case "convolution":
    case "max-pool":
    case "average-pool":
      return slid(kind, dimensions ?? 2, transposed ?? false, params, first);
    case "upsample": {
      const factor = params.rate("scaleFactor") ?? 2;
      return first.map((side, place) => (place === 0 ? side : Math.round(side * factor)));
    }
    case "concatenate":
      return [inputs.reduce((sum, shape) => sum + shape[0]!, 0), ...first.slice(1)];
    case "add":
    case "multiply":
      return inputs.reduce((large, shape) => (elements(shape) > elements(large) ? shape : large));
    case "stack":
      return [inputs.length, ...first];
    case "identity":
      return /^flatten$/i.test(type) ? [elements(first)] : first;
    case "activation":
      return /^glu$/i.test(type) ? last(Math.floor(first.at(-1)! / 2)) : first;
    default:
      return first;
  }
}

/**
 * What a component is fed of a sample where nothing says so: a row of its width, or of a text as many as usual. Null
 * where its size is not a matter of its own, as an image's.
 */
export function lacking({ kind }: KindOf, params: GraphParams): Shape | null {
  const width = params.size(
    "inFeatures",
    "in_features",
    "inputSize",
    "embedDim",
    "hiddenDim",
    "dModel",
    "dim",
  );
  switch (kind) {
    case "embedding":
      return [USUAL_LENGTH];
    case "linear":
      return width === null ? null : [width];
    case "recurrent":
    case "attention":
    case "block":
    case "feed-forward":
    case "gated-feed-forward":
    case "experts":
      return width === null ? null : [USUAL_LENGTH, width];
    default:
      return null;
  }
}

/** Sides after a window has slid over them. */
function slid(
  kind: KindOf["kind"],
  dimensions: number,
  transposed: boolean,
  params: GraphParams,
  input: Shape,
): Shape {
  if (input.length !== dimensions + 1)
    throw new GraphFault(
      `${params.where} is fed ${input.length} dimensions a sample, not the ${dimensions + 1} it runs over`,
    );
  const channels =
    kind === "convolution" ? params.needed("outChannels", "out_channels", "embedDim") : input[0]!;
  const fixed = params.has("outputSize") ? params.sides("outputSize", dimensions, 1) : null;
  if (fixed !== null) return [channels, ...fixed];
  const patch = params.has("patchSize");
  const kernel = params.sides(patch ? "patchSize" : "kernelSize", dimensions, 1);
  const same = params.text("padding") === "same";
  const stride = params.has("stride") ? params.sides("stride", dimensions, 1) : null;
  const padding = params.sides("padding", dimensions, 0);
  const dilation = params.sides("dilation", dimensions, 1);
  const extra = params.sides("outputPadding", dimensions, 0);
  const sides = input.slice(1).map((side, place) => {
    const step = Math.max(1, stride?.[place] ?? (kind === "convolution" && !patch ? 1 : kernel[place]!));
    const reach = dilation[place]! * (kernel[place]! - 1);
    const out = transposed
      ? (side - 1) * step - 2 * padding[place]! + reach + extra[place]! + 1
      : same
        ? Math.ceil(side / step)
        : Math.floor((side + 2 * padding[place]! - reach - 1) / step) + 1;
    if (out < 1) throw new GraphFault(`${params.where} is wider than the ${side} elements that it is fed`);
    return out;
  });
  return [channels, ...sides];
}

/** A shape with its traced tokens replaced by others; lengths that follow from them by convolutions keep their ratio. */
export function atTokens(
  shape: Shape,
  traced: number | null,
  tokens: number,
  derived: readonly number[] = [],
): Shape {
  if (traced === null || traced === tokens || shape.length < 2) return shape;
  const last = shape.length - 1;
  // Scores: tokens by tokens.
  if (last > 1 && shape[last] === traced && shape[last - 1] === traced)
    return shape.map((side, place) => (place >= last - 1 ? tokens : side));
  let axis = shape[0] === traced ? 0 : -1;
  for (let place = 1; axis < 0 && place < shape.length - 1; place++)
    if (shape[place] === traced) axis = place;
  if (axis < 0 && shape.at(-1) === traced) axis = shape.length - 1;
  if (axis >= 0) return shape.map((side, place) => (place === axis ? tokens : side));
  if (!derived.includes(shape[last]!)) return shape;
  return shape.map((side, place) =>
    place === last ? Math.max(1, Math.round((side * tokens) / traced)) : side,
  );
}
