import type { Leaf, Tensor } from "../tape.ts";
import type { Call } from "./layers.ts";
import type { GraphOps } from "./ops.ts";

/**
 * Widths that a cell keeps a token: gates of the input, of the state and of both, and its states before and after.
 * Source: derivatives.yaml, `_thnn_fused_lstm_cell`, `_thnn_fused_gru_cell`, `tanh`.
 */
const KEPT: Readonly<Record<number, number>> = { 4: 14, 3: 12, 1: 1 };

/**
 * A recurrent net, layer by layer and direction by direction. PyTorch's own cells are sized, which keep what
 * cuDNN's reserve does or more; under autocast all weights are cast once, as cuDNN has it.
 */
export function recurrent(ops: GraphOps, x: Tensor, { layer, leaves, output }: Call): Tensor {
  const { hidden = 1, layers = 1, directions = 1, gates = 1 } = layer.sizes;
  const [tokens] = output.length > 1 ? [output.slice(0, -1).reduce((all, side) => all * side, 1)] : [1];
  const biased = leaves.length >= 4 * layers * directions;
  const each = biased ? 4 : 2;
  let input = ops.lowered(x);
  for (let place = 0; place < layers; place++) {
    const from = place * directions * each;
    const own = leaves.slice(from, from + directions * each);
    const next = cells(ops, input, own, { tokens: tokens!, hidden, directions, gates });
    ops.drop(input);
    input = next;
  }
  return input;
}

interface Cells {
  readonly tokens: number;
  readonly hidden: number;
  readonly directions: number;
  readonly gates: number;
}

function cells(
  ops: GraphOps,
  x: Tensor,
  leaves: readonly Leaf[],
  { tokens, hidden, directions, gates }: Cells,
): Tensor {
  const casts = leaves.map((leaf) => ops.operand(leaf));
  const states = ops.tensor(0, tokens * hidden * directions * (KEPT[gates] ?? gates + 1), x.width);
  const out = ops.tensor(0, tokens * hidden * directions, x.width);
  const needs = ops.needsGrad(x);
  const result = ops.record(
    out,
    [x, ...casts],
    [
      x.storage,
      states.storage,
      ...casts.map((cast, index) => (cast === leaves[index] ? null : cast.storage)),
    ],
    () => {
      const grads = [needs ? ops.like(x) : null, ...leaves.map((leaf) => ops.like(leaf, x.width))];
      // What a token adds to the gradient of a matrix, before and after the sum.
      const largest = Math.max(...leaves.map((leaf) => leaf.fixed));
      ops.workspace(largest * x.width, 0);
      return grads;
    },
  );
  leaves.forEach((leaf, index) => {
    ops.released(leaf, casts[index]!);
  });
  ops.drop(states);
  return result;
}
