import type { DecoderShape } from "../../model/types.ts";
import type { Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced, split } from "./attention.ts";
import { type Context, type Projection, project, projection, rare } from "./context.ts";

export interface FeedForward {
  readonly shape: DecoderShape;
  readonly inputs: readonly Projection[];
  readonly output: Projection;
  /** Learned scalars of the activation (xIELU). */
  readonly scalars: readonly Leaf[];
}

const NO_SCALARS: readonly Leaf[] = [];

export function feedForward(context: Context): FeedForward {
  const { shape } = context;
  const adapter = shape.adaptsExperts ? null : context.feedForward;
  const make = (from: number, to: number) => projection(context, from, to, shape.bias.mlp, adapter);
  const { hidden, ffn } = shape;
  const inputs =
    shape.mlp === "gated"
      ? [make(hidden, ffn), make(hidden, ffn)]
      : [make(hidden, shape.mlp === "plain" ? ffn : 2 * ffn)];
  const { ops, weightWidth, trainBase } = context;
  const scalar = () => ops.leaf(1, weightWidth, trainBase);
  const scalars = shape.activation === "xielu" ? [scalar(), scalar()] : NO_SCALARS;
  const output = context.outputWhole
    ? projection({ ...context, quantiser: null }, ffn, hidden, shape.bias.mlp, adapter)
    : make(ffn, hidden);
  return { shape, inputs, output, scalars };
}

export function forwardFeed(ops: Ops, x: Tensor, block: FeedForward): Tensor {
  const { output } = block;
  return ops.within("feed-forward", () => {
    const inner = widened(ops, x, block);
    const out = project(ops, inner, output);
    ops.drop(inner);
    return out;
  });
}

function widened(ops: Ops, x: Tensor, { shape, inputs, scalars }: FeedForward): Tensor {
  if (shape.mlp === "plain")
    return replaced(ops, project(ops, x, inputs[0]!), (t) => activate(ops, t, shape.activation, scalars));
  if (shape.mlp === "gated") {
    const active = replaced(ops, project(ops, x, inputs[0]!), (t) => activate(ops, t, shape.activation));
    const up = project(ops, x, inputs[1]!);
    const product = ops.product(active, up);
    ops.drop(active, up);
    return product;
  }
  const both = project(ops, x, inputs[0]!);
  const [gate, up] = split(ops, both, [0.5, 0.5]) as [Tensor, Tensor];
  ops.drop(both);
  const active = activate(ops, gate, shape.activation);
  const product = ops.product(up, active);
  ops.drop(active, gate, up);
  return product;
}

/** An activation; `gelu-new` and `gelu-fast` are lines of Python, most others are kernels. */
export function activate(
  ops: Ops,
  x: Tensor,
  activation: DecoderShape["activation"],
  scalars: readonly Leaf[] = NO_SCALARS,
): Tensor {
  switch (activation) {
    case "silu":
      return ops.silu(x);
    case "gelu":
    case "gelu-tanh":
      return ops.gelu(x);
    case "relu":
      return ops.relu(x);
    case "relu2":
      return replaced(ops, ops.relu(x), (t) => ops.power(t));
    case "gelu-new":
      return geluNew(ops, x);
    case "gelu-fast":
      return rare().geluFast(ops, x);
    case "gelu-erf":
      return rare().geluErf(ops, x);
    case "gelu-function":
      return rare().geluFunction(ops, x);
    case "xielu":
      return rare().xielu(ops, x, scalars);
  }
}

/** `0.5 * x * (1 + tanh(c * (x + 0.044715 * x ** 3)))`. */
function geluNew(ops: Ops, x: Tensor): Tensor {
  const halved = ops.scaled(x);
  const cubed = replaced(ops, ops.power(x), (t) => ops.scaled(t));
  const inner = ops.addition(cubed, x);
  ops.drop(cubed);
  const angle = replaced(ops, inner, (t) => ops.scaled(t));
  const tanh = replaced(ops, angle, (t) => ops.tanh(t));
  const shifted = ops.shifted(tanh);
  ops.drop(tanh);
  const out = ops.product(halved, shifted);
  ops.drop(halved, shifted);
  return out;
}
