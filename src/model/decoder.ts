import type { DecoderShape, ParamGroup } from "./types.ts";

/** Parameters of one norm over `width` elements. */
export function normParams(norm: DecoderShape["norm"], width: number): number {
  if (norm === "layer" || norm === "layer-lowered") return 2 * width;
  return norm === "layer-no-weight" || norm === "rms-bare" ? 0 : width;
}

/** Norms of a layer beside those on queries and keys. */
export function normsPerLayer(placement: DecoderShape["normPlacement"]): number {
  if (placement === "sandwich") return 4;
  return placement === "parallel-one" || placement === "alone" ? 1 : 2;
}

/** Parameters of a norm on queries and keys; these never have a bias. */
export function qkNormParams(shape: DecoderShape): number {
  if (shape.qkNorm === "none" || shape.qkNormBare) return 0;
  const heads = shape.qkNorm === "full" ? shape.heads + shape.kvHeads : 2;
  return heads * shape.headDim;
}

/**
 * The exact parameter count of a decoder, by part and summed over its layers. A tied head counts once, with
 * the embedding. Formulas: one line a matrix, as the model's `nn.Module`s declare them.
 */
export function decoderGroups(shape: DecoderShape): ParamGroup[] {
  const { layers, hidden, heads, kvHeads, headDim, ffn, vocab, embedWidth, bias } = shape;
  const queries = heads * headDim;
  const keys = kvHeads * headDim;
  const attention =
    hidden * (queries + 2 * keys) +
    queries * hidden +
    (bias.qkv ? queries + 2 * keys : 0) +
    (bias.out ? hidden : 0) +
    qkNormParams(shape);
  const inWidths = shape.mlp === "plain" ? ffn : 2 * ffn;
  const mlp = hidden * inWidths + ffn * hidden + (bias.mlp ? inWidths + hidden : 0);
  const scalars = shape.activation === "xielu" ? 2 : 0;
  const norms = normsPerLayer(shape.normPlacement) * normParams(shape.norm, hidden);
  const groups: ParamGroup[] = [
    { name: "token embedding", count: vocab * embedWidth },
    { name: "position table", count: shape.positionRows * hidden },
    { name: "embedding projections", count: embedWidth === hidden ? 0 : 2 * embedWidth * hidden },
    { name: "embedding norm", count: shape.embedNorm ? normParams(shape.norm, hidden) : 0 },
    { name: "attention", count: layers * attention },
    { name: "feed-forward", count: layers * mlp },
    { name: "activation scalars", count: layers * scalars },
    { name: "layer norms", count: layers * norms },
    { name: "final norm", count: shape.finalNorm ? normParams(shape.norm, hidden) : 0 },
    { name: "output head", count: (shape.tiedHead ? 0 : vocab * embedWidth) + (bias.head ? vocab : 0) },
  ];
  return groups.filter((group) => group.count > 0);
}
