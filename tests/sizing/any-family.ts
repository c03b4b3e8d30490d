/** A model's sizes, by whatever name its family gives them. */
export interface Sizes {
  readonly family: string;
  readonly layers: number;
  readonly heads: number;
  readonly headDim: number;
  readonly vocab: number;
}

/** One config with the key names of all dense families at once. */
export function anyFamilyConfig({ family, layers, heads, headDim, vocab }: Sizes) {
  const hidden = heads * headDim;
  return {
    model_type: family,
    vocab_size: vocab,
    hidden_size: hidden,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    intermediate_size: 3 * hidden,
    n_embd: hidden,
    n_layer: layers,
    n_head: heads,
    ffn_dim: 3 * hidden,
    sliding_window: null,
    max_position_embeddings: 8192,
    n_positions: 8192,
  };
}
