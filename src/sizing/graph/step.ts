import { atTokens } from "../../model/graph-shapes.ts";
import { isPositions } from "../../model/graph-text.ts";
import type { GraphLayer, GraphModel, Shape } from "../../model/graph-types.ts";
import { elements } from "../../model/graph-weights.ts";
import { Envelope } from "../envelope.ts";
import { Holdings } from "../holdings.ts";
import type { Plan } from "../recipe.ts";
import type { StepResult } from "../step.ts";
import type { Tensor } from "../tape.ts";
import { fedWith, type Handed } from "./between.ts";
import { callsOf } from "./calls.ts";
import { forward, purposeOf } from "./layers.ts";
import { labelBytes, loss, lossOf } from "./loss.ts";
import { bufferBytes, leavesOf } from "./modules.ts";
import { GraphOps } from "./ops.ts";

const INT64 = 8;

/** A walked step, with what was taken to stand between the layers that a trace shows. */
export interface GraphStep extends StepResult {
  readonly between: readonly string[];
  readonly lossKind: ReturnType<typeof lossOf>;
}

/**
 * One training step of a graph as its modules run: forward in the graph's order, loss, backward, clipping, optimizer
 * step. Pure. `tokens` is the length of a text where the graph has a free one.
 */
export function graphStep(model: GraphModel, plan: Plan, tokens: number): GraphStep {
  const { layers } = model;
  const envelope = new Envelope();
  const ops = new GraphOps(envelope, tokens, plan.autocast);
  ops.fp16 = plan.fp16;
  ops.gradientCards = plan.gradientCards;
  const held = new Holdings(ops, plan);
  const leaves = leavesOf(ops, model, plan);
  held.count(0, 1);
  held.account();
  ops.shift("weights", bufferBytes(layers, plan.weightWidth), 0);
  const sized = (shape: Shape) => atTokens(shape, model.tokens, tokens, model.lengths);
  const results = resultsOf(layers);
  const output = sized(results.length > 0 ? layers[results[0]!]!.outShape : []);
  const lossKind = lossOf(output, model.tokens === null ? null : tokens);
  ops.shift(
    "inputs",
    0,
    fedBytes(model, plan, sized, tokens) + labelBytes(lossKind, output, plan.weightWidth),
  );

  const begin = ops.mark();
  const between = new Set<string>();
  const waiting = consumersOf(layers);
  const endings = callsOf(layers, waiting);
  const made: (Tensor | null)[] = [];
  const rotated = layers.some(({ kind }) => kind === "rotary");
  const transformer = layers.some(({ kind }) => kind === "layer-norm");
  layers.forEach((layer, place) => {
    if (layer.kind === "input" || layer.kind === "output") {
      made.push(null);
      return;
    }
    const own = { ...layer, outShape: sized(layer.outShape) };
    const result = ops.within(purposeOf(layer), () => run(own, place));
    made.push(result);
    for (const from of layer.inputs) release(from);
    if (waiting[place] === 0) release(place, true);
    for (const from of endings[place] ?? []) release(from);
  });

  function run(layer: GraphLayer, place: number): Tensor {
    const input = sized(layer.inShape ?? layer.outShape);
    const handed = layer.inputs.flatMap((from): Handed[] => {
      const before = layers[from]!;
      const shape = sized(before.outShape);
      const tensor =
        made[from] ?? (before.kind === "input" ? ops.fed(elements(shape), plan.weightWidth) : null);
      return tensor === null ? [] : [{ layer: before, tensor, shape }];
    });
    const { outShape: out } = layer;
    if (layer.kind === "embedding") return lookedUp(layer, place, out);
    if (layer.kind === "rotary") return ops.tensor(2 * elements(out), 0, plan.weightWidth);
    if (layer.kind === "add" || layer.kind === "multiply") return merged(layer, handed);
    if (layer.kind === "concatenate" || layer.kind === "stack") return joined(handed, elements(out));
    const around = {
      layer,
      input,
      plan,
      headSize: model.headSize,
      rotated,
      transformer,
      told: (what: string) => between.add(what),
    };
    const x = fedWith(ops, handed, around);
    const y = forward(ops, x, {
      layer,
      leaves: leaves[place]!,
      input,
      output: out,
      plan,
      headSize: model.headSize,
    });
    ops.drop(x);
    return y;
  }

  /** One after another; where that is more than what comes out, each was reduced on the way. */
  function joined(handed: readonly Handed[], wanted: number): Tensor {
    const have = handed.reduce((sum, { tensor }) => sum + tensor.per, 0);
    const parts = handed.map(({ tensor }) =>
      have > wanted ? ops.selected(tensor, Math.round((tensor.per / have) * wanted)) : ops.alias(tensor),
    );
    const whole = ops.concatenation(parts, Math.min(have, wanted));
    ops.dropAll(parts);
    return whole;
  }

  function lookedUp(layer: GraphLayer, place: number, out: Shape): Tensor {
    const table = leaves[place]![0]!;
    const width = layer.weights[0]![1]!;
    if (isPositions(layer))
      return ops.lookup(table, width, model.tokens === null ? elements(out) / width : tokens, false);
    return ops.lookup(table, width, elements(out) / width, true);
  }

  function merged(layer: GraphLayer, handed: readonly Handed[]): Tensor {
    // A permuted branch is a view whose gradient is put in order again.
    const parts = handed.map(({ tensor, shape }) =>
      shape.length > 2 && shape[0] !== layer.outShape[0] ? ops.reordered(tensor) : ops.alias(tensor),
    );
    const [first, ...others] = parts.sort((a, b) => b.per - a.per);
    if (first === undefined) return ops.tensor(0, elements(layer.outShape), plan.weightWidth);
    let sum = first;
    for (const tensor of others) {
      const next = layer.kind === "add" ? ops.addition(sum, tensor) : ops.product(sum, tensor);
      ops.drop(sum, tensor);
      sum = next;
    }
    return sum;
  }

  function release(place: number, unused = false): void {
    const tensor = made[place];
    if (!unused) waiting[place]! -= 1;
    if (waiting[place]! > 0 || tensor === null || tensor === undefined || results.includes(place)) return;
    ops.drop(tensor);
    made[place] = null;
  }

  const tail = ops.mark();
  ops.phase = "end-of-forward";
  const scores = results.flatMap((place) => made[place] ?? []);
  const losses = ops.within("head", () => {
    const [first] = scores;
    return first === undefined ? null : loss(ops, first, lossKind);
  });
  ops.endAutocast();
  ops.dropAll(scores);

  ops.phase = "loss";
  if (losses !== null) {
    ops.seed(losses, ops.tensor(1, 0, losses.width));
    ops.drop(losses);
  }
  ops.backward(tail);
  ops.phase = "backward";
  ops.backward(begin);
  ops.phase = "optimizer-step";
  ops.shift("backward", held.updateBytes(), 0);
  ops.offer();
  return {
    peaks: envelope.hull(),
    // Images and sound weigh so much that they tell beside the state.
    optimizerStep: { fixed: ops.fixed, per: ops.per, phase: ops.phase, byKind: ops.snapshot() },
    params: held.params,
    trainable: held.trainable,
    weightBytes: held.weightBytes,
    gradientBytes: held.gradientBytes,
    optimizerBytes: held.optimizerBytes(),
    between: [...between],
    lossKind,
  };
}

/** What is fed a sample: ids where a table looks them up, else numbers as wide as the weights. */
function fedBytes(
  { layers }: GraphModel,
  plan: Plan,
  sized: (shape: Shape) => Shape,
  tokens: number,
): number {
  let bytes = 0;
  layers.forEach((layer, place) => {
    if (layer.kind !== "input") return;
    const ids = layers.some(({ kind, inputs }) => kind === "embedding" && inputs.includes(place));
    const shape = layer.outShape.length === 1 && ids ? [tokens] : sized(layer.outShape);
    bytes += elements(shape) * (ids ? INT64 : plan.weightWidth);
  });
  return bytes;
}

/** How many layers each result goes to. */
function consumersOf(layers: readonly GraphLayer[]): number[] {
  const counts = layers.map(() => 0);
  for (const { inputs, kind } of layers) if (kind !== "output") for (const from of inputs) counts[from]! += 1;
  return counts;
}

/** What the graph returns: what its output is fed with, else what nothing else is. */
function resultsOf(layers: readonly GraphLayer[]): number[] {
  const out = layers.find(({ kind }) => kind === "output");
  if (out !== undefined && out.inputs.length > 0) return [...out.inputs];
  const fed = new Set(layers.flatMap(({ inputs }) => inputs));
  const ends = layers
    .map((_, place) => place)
    .filter((place) => !fed.has(place) && layers[place]!.kind !== "rotary");
  return ends.slice(-1);
}
