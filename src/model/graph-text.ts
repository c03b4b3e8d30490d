import type { GraphLayer, GraphModel } from "./graph-types.ts";

/** Whether a table is one of positions: by its name, or since it is looked up once for all samples. */
export function isPositions({ kind, id, inShape, outShape }: GraphLayer): boolean {
  if (kind !== "embedding") return false;
  return (
    /(^|[._])(wpe|pos|position|positions)|position_?emb|pos_?emb|embed_?positions/i.test(id) ||
    (inShape?.length === 0 && outShape.length === 1)
  );
}

/** Whether a layer looks words up by ids that the model is fed. */
export function isWords(layer: GraphLayer): boolean {
  return (
    layer.kind === "embedding" && !isPositions(layer) && layer.inShape !== null && layer.inShape.length === 1
  );
}

/**
 * Tokens of a sample as traced where another length can be run too. A layer that takes all tokens of a sample as its
 * features fixes the length.
 */
export function tokensOf(
  layers: readonly GraphLayer[],
  nominal: boolean,
): {
  readonly length: number | null;
  /** Lengths that follow from it. */
  readonly derived: readonly number[];
  readonly notes: readonly string[];
} {
  let length: number | null = null;
  for (const layer of layers)
    if ((isWords(layer) || (nominal && layer.inputs.length === 0)) && layer.outShape.length === 2)
      length = Math.max(length ?? 0, layer.outShape[0]!);
  const fixed = (note: string) => ({ length: null, derived: [], notes: [note] });
  if (length === null || length < 2)
    return fixed("The graph is fed no text, so the sequence length is not used.");
  const derived = derivedFrom(layers, length);
  const isLength = (side: number | undefined) => side === length || derived.includes(side ?? 0);
  for (const { kind, weights, inputs, inShape, id } of layers) {
    if (kind !== "linear" || weights[0]?.length !== 2) continue;
    const before = inputs.length === 1 ? layers[inputs[0]!]! : null;
    const flattened =
      before !== null &&
      before.kind === "identity" &&
      before.outShape.length === 1 &&
      (before.inShape?.length ?? 0) > 1 &&
      (before.inShape![0] === length || isLength(before.inShape!.at(-1)));
    const across = weights[0][1] === length && inShape?.at(-1) === length && inShape[0] !== length;
    if (flattened || across)
      return fixed(
        `${id} takes all ${length} traced tokens as its features, so a sample is sized with these.`,
      );
  }
  return { length, derived, notes: [] };
}

/** Lengths that convolutions and pools over tokens return. */
function derivedFrom(layers: readonly GraphLayer[], length: number): number[] {
  const derived = new Set<number>();
  for (const { kind, inShape, outShape } of layers) {
    if (!/^(convolution|max-pool|average-pool)$/.test(kind) || inShape?.length !== 2 || outShape.length !== 2)
      continue;
    const [before, after] = [inShape[1]!, outShape[1]!];
    if ((before === length || derived.has(before)) && after !== length && after > 1) derived.add(after);
  }
  return [...derived];
}

/** Learned positions, beyond which no text runs; null without a table of them. */
export function contextOf(layers: readonly GraphLayer[]): number | null {
  let rows: number | null = null;
  for (const layer of layers)
    if (isPositions(layer)) rows = Math.min(rows ?? layer.weights[0]![0]!, layer.weights[0]![0]!);
  return rows;
}

/** The width of a head where a rotation's angles or a norm of heads tells it. */
export function headSizeOf(layers: readonly GraphLayer[]): number | null {
  for (const { kind, outShape, className } of layers) {
    if (kind === "rotary" && outShape.length === 2) return outShape[1]!;
    if (kind === "rms-written" && outShape.length === 3 && className !== null) return outShape[2]!;
  }
  return null;
}

/** Names of tables and output layers that families tie; a graph does not record it. */
const TIED: readonly (readonly [RegExp, RegExp])[] = [
  [/(^|[._])wte$/, /lm_?head$/],
  [/(^|[._])shared$/, /lm_?head$/],
  [/word_embeddings?$/, /decoder$|vocab_projector$|lm_?head$|predictions?$/],
];

/** Whether the output layer shares the table of words, by the names that usual families have. */
export function tiedHead(layers: readonly GraphLayer[]): {
  readonly pair: GraphModel["tied"];
  readonly assumed: readonly string[];
} {
  const table = layers.findIndex(isWords);
  const [rows, width] = layers[table]?.weights[0] ?? [];
  let head = -1;
  layers.forEach(({ kind, weights, sharedWith }, place) => {
    const matrix = weights[0];
    if (kind === "linear" && sharedWith === null && matrix?.[0] === rows && matrix?.[1] === width)
      head = place;
  });
  if (table < 0 || head < 0) return { pair: null, assumed: [] };
  const ids = [layers[table]!.id, layers[head]!.id] as const;
  const gemma = layers.some(({ className }) => /^(Gemma|Opt)/i.test(className ?? ""));
  const positioned = /embed_tokens$/.test(ids[0]) && layers.some(({ id }) => /embed_positions$/.test(id));
  const tied = gemma || positioned || TIED.some(([of, to]) => of.test(ids[0]) && to.test(ids[1]));
  return {
    pair: tied ? { head, table } : null,
    assumed: [
      tied
        ? "The output layer is taken to share the table of words, as models with these names do; a graph does not record it."
        : "The output layer is taken to have a matrix of its own; a graph does not record whether it shares the table of words.",
    ],
  };
}
