import type { GraphLayer, Shape } from "../../model/graph-types.ts";
import { elements } from "../../model/graph-weights.ts";
import type { Kind } from "../memory.ts";
import { HALF } from "../ops.ts";
import { activate } from "../programs/feed-forward.ts";
import { normalize } from "../programs/norms.ts";
import type { Plan } from "../recipe.ts";
import { replaced } from "../stacks/kernels.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { attentionLayer, type Heads, transformerLayer } from "./attention.ts";
import type { GraphOps } from "./ops.ts";
import { recurrent } from "./recurrent.ts";

/** A layer with its parameters and the elements of a sample that it is fed and returns. */
export interface Call {
  readonly layer: GraphLayer;
  readonly leaves: readonly Leaf[];
  readonly input: Shape;
  readonly output: Shape;
  readonly plan: Plan;
  readonly headSize: number | null;
}

/** What a layer's memory is told under. */
export function purposeOf({ kind, className, type }: GraphLayer): Kind {
  if (/norm$/.test(kind)) return "norms";
  if (kind === "attention" || kind === "rotary" || /atten/i.test(className ?? type)) return "attention";
  if (kind === "embedding" || kind === "positions") return "embedding";
  return kind === "add" || kind === "dropout" ? "residual" : "feed-forward";
}

/** Runs one layer on its input, which is borrowed; the result is owned by the caller. */
export function forward(ops: GraphOps, x: Tensor, call: Call): Tensor {
  const { layer, leaves, output } = call;
  const { kind, sizes } = layer;
  const per = elements(output);
  const [weight = null, bias = null] = leaves;
  switch (kind) {
    case "linear":
      return ops.linear(x, weight!, bias, layer.weights[0]![0]!);
    case "convolution":
      return weight === null ? ops.remade(x, per) : ops.convolution(x, weight, bias, per);
    case "max-pool":
      return ops.maxPool(x, per);
    case "average-pool":
      return ops.averagePool(x, per);
    case "mean":
    case "upsample":
      return ops.remade(x, per);
    case "recurrent":
      return recurrent(ops, x, call);
    case "batch-norm":
      return ops.batchNorm(x, weight, bias, sizes.features ?? output[0] ?? 1);
    case "layer-norm":
      return ops.layerNorm(x, sizes.features!, weight, bias);
    case "rms-norm":
      return ops.rmsNorm(x, sizes.features!, weight);
    case "rms-written":
      return normalize(ops, x, rmsNormOf(call));
    case "group-norm":
      return ops.groupNorm(x, weight, bias, sizes.groups!);
    case "instance-norm":
      return ops.batchNorm(x, weight, bias, 0, sizes.features!);
    case "attention":
      return attentionLayer(ops, x, call, headsOf(call));
    case "block":
      return transformerLayer(ops, x, call, headsOf(call));
    case "feed-forward":
    case "gated-feed-forward":
    case "experts":
      return fed(ops, x, call);
    case "activation":
      return activated(ops, x, call);
    case "dropout":
      return sizes.rate! > 0 ? ops.dropout(x) : ops.alias(x);
    case "softmax":
      return replaced(ops, ops.raised(x), (t) => ops.softmax(t, t.width));
    case "positions":
      return withPositions(ops, x, weight);
    case "custom":
      return custom(ops, x, leaves, per, call.input);
    default:
      return ops.alias(x);
  }
}

/** Rounds of heads where a component does not say: the graph's own, else 64 numbers a head. */
export function headsOf({ layer, headSize, input }: Call): Heads {
  const { heads = 0, keyHeads = 0, size = 0, queries, keys } = layer.sizes;
  const width = input.at(-1)!;
  if (heads > 0) return { heads, keyHeads, size };
  const usual = headSize ?? (width % 64 === 0 ? 64 : width);
  return {
    heads: Math.max(1, (queries ?? width) / usual),
    keyHeads: Math.max(1, (keys ?? width) / usual),
    size: usual,
  };
}

/** Of transformers' classes gemma's multiply by one more than the weight, olmo's cast back late. */
function rmsNormOf({ layer, leaves, output }: Call) {
  const name = layer.className ?? "";
  const type = /^gemma/i.test(name) ? "rms-plus-one" : /^olmo/i.test(name) ? "rms-late" : "rms";
  return { type, features: output.at(-1)!, weight: leaves[0]!, bias: null } as const;
}

function activated(ops: GraphOps, x: Tensor, { layer, leaves, output }: Call): Tensor {
  switch (layer.activation) {
    case "sigmoid":
      return ops.sigmoid(x);
    case "tanh":
      return ops.tanh(x);
    case "glu":
      return ops.record(ops.shaped(x, elements(output), x.width), [x], [x.storage], () => [ops.like(x)]);
    case "prelu": {
      // Lowered weights under autocast, and a gradient for each element before it is summed.
      const weight = leaves[0]!;
      return ops.record(ops.like(x), [x, weight], [x.storage], () => [ops.like(x), ops.like(x)]);
    }
    case "mish":
      return ops.record(ops.like(x), [x], [x.storage], () => {
        const result = ops.like(x);
        // Without a kernel of its own it goes back in steps.
        ops.workspace(7 * result.storage.fixed, 7 * result.storage.per);
        return [result];
      });
    case "written-swish": {
      const gate = ops.sigmoid(x);
      const out = ops.product(x, gate);
      ops.drop(gate);
      return out;
    }
    case "quick-gelu": {
      const gate = replaced(ops, ops.scaled(x), (t) => ops.sigmoid(t));
      const out = ops.product(x, gate);
      ops.drop(gate);
      return out;
    }
    case "relu":
    case "silu":
    case "gelu":
    case "gelu-new":
    case "relu2":
      return activate(ops, x, layer.activation);
    default:
      return ops.keepsInput(x);
  }
}

/** Two matrices with an activation between, or three where one of two wide ones is a gate. */
function fed(ops: GraphOps, x: Tensor, call: Call): Tensor {
  const { layer, leaves, output } = call;
  const { inner, chosen = 1 } = layer.sizes;
  if (inner === undefined || leaves.length < 3) return custom(ops, x, leaves, elements(output), call.input);
  const gated = layer.kind !== "feed-forward";
  const rows = x.per / output.at(-1)!;
  const routed = layer.kind === "experts" ? ops.remade(x, x.per * chosen) : ops.alias(x);
  const wide = (weight: Leaf, bias: Leaf | null, times: number) =>
    ops.convolution(routed, weight, bias, times * rows * chosen * inner);
  let middle: Tensor;
  if (!gated) middle = replaced(ops, wide(leaves[0]!, leaves[1]!, 1), (t) => ops.gelu(t));
  else {
    const experts = layer.kind === "experts";
    const gate = wide(experts ? leaves[1]! : leaves[0]!, null, 1);
    const active = replaced(ops, gate, (t) => ops.silu(t));
    const up = experts ? ops.remade(routed, rows * chosen * inner) : wide(leaves[1]!, null, 1);
    middle = ops.product(active, up);
    ops.drop(active, up);
  }
  const last = gated ? leaves[2]! : leaves[2]!;
  const out = replaced(ops, middle, (t) =>
    ops.convolution(t, last, gated ? null : leaves[3]!, x.per * chosen),
  );
  ops.drop(routed);
  return chosen === 1 ? out : replaced(ops, out, (t) => ops.remade(t, x.per));
}

function withPositions(ops: GraphOps, x: Tensor, table: Leaf | null): Tensor {
  if (x.per === 0) return ops.alias(x);
  return ops.record(ops.like(x, Math.max(x.width, table?.width ?? 0)), [x, table], [], (grad) => [
    ops.view(grad, grad.fixed, grad.per),
    table === null ? null : ops.like(table, grad.width),
  ]);
}

/** A module of which nothing is known: it keeps what it is fed and more by its parameters, which get gradients. */
function custom(ops: GraphOps, x: Tensor, leaves: readonly Leaf[], per: number, input: Shape): Tensor {
  const inputs = [x, ...leaves];
  const width = Math.max(x.width, ...leaves.map((leaf) => leaf.width));
  const kept = ops.tensor(0, keptInside(x, leaves, per, input), ops.autocast ? HALF : width);
  const out = ops.record(ops.shaped(x, per, width), inputs, [x.storage, kept.storage], () =>
    inputs.map((one) => ops.like(one)),
  );
  ops.drop(kept);
  return out;
}

/**
 * Numbers a sample that layers inside an unknown module may keep beside its input. A transformer's layer keeps about
 * two for each row of its matrices and token; a block of convolutions a few times what it returns. A few parameters a
 * channel are a scale or a norm.
 */
function keptInside(x: Tensor, leaves: readonly Leaf[], per: number, input: Shape): number {
  const count = leaves.reduce((sum, leaf) => sum + leaf.fixed, 0);
  const channels = input.length > 2 ? input[0]! : (input.at(-1) ?? 1);
  if (count <= 8 * channels) return 0;
  if (input.length > 2) return 4 * Math.max(x.per, per);
  return Math.round(2 * (x.per / channels) * (count / channels));
}
