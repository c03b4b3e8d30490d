/** Parameters of the building blocks that the families share. Counts of elements, as `nn.Module`s declare them. */

export function linear(inputs: number, outputs: number, bias: boolean): number {
  return inputs * outputs + (bias ? outputs : 0);
}

/** LayerNorm with weight and bias. */
export function layerNorm(width: number): number {
  return 2 * width;
}

/** Which of an attention block's matrices have a bias. */
export interface AttentionBias {
  readonly qkv: boolean;
  readonly out: boolean;
}

export interface AttentionSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** q, k, v and output projections. */
export function attention(sizes: AttentionSizes, bias: AttentionBias): number {
  const queries = sizes.heads * sizes.headDim;
  const keys = sizes.kvHeads * sizes.headDim;
  return linear(sizes.hidden, queries + 2 * keys, bias.qkv) + linear(queries, sizes.hidden, bias.out);
}

/** Gate, up and down projections. */
export function gatedMlp(hidden: number, width: number, bias = false): number {
  return 2 * linear(hidden, width, bias) + linear(width, hidden, bias);
}

/** Two matrices around an activation. */
export function plainMlp(hidden: number, width: number, bias = false): number {
  return linear(hidden, width, bias) + linear(width, hidden, bias);
}

/**
 * A layer of the classic encoder (BERT, ViT, CLIP): full attention with biases, plain feed-forward with biases,
 * two LayerNorms.
 */
export function encoderLayer(hidden: number, ffn: number): number {
  return 4 * linear(hidden, hidden, true) + plainMlp(hidden, ffn, true) + 2 * layerNorm(hidden);
}
