import type { GraphLayer, Shape } from "../../model/graph-types.ts";
import { elements } from "../../model/graph-weights.ts";
import { split } from "../programs/attention.ts";
import { matrices } from "../programs/kernels.ts";
import type { Plan } from "../recipe.ts";
import { replaced } from "../stacks/kernels.ts";
import type { Tensor } from "../tape.ts";
import { attend, attendFused, type Heads } from "./attention.ts";
import type { GraphOps } from "./ops.ts";

/** A result of a layer as another is handed it. */
export interface Handed {
  readonly layer: GraphLayer;
  readonly tensor: Tensor;
  readonly shape: Shape;
}

/** What a layer is called in. */
export interface Place {
  readonly layer: GraphLayer;
  /** What it is fed of a sample. */
  readonly input: Shape;
  readonly plan: Plan;
  readonly headSize: number | null;
  /** Angles of positions that queries and keys are rotated by. */
  readonly rotated: boolean;
  /** The graph has layer norms: a matrix that widens and one behind it have a GELU between them. */
  readonly transformer: boolean;
  /** Tells what was taken to stand between two layers. */
  readonly told: (what: string) => void;
}

/**
 * What a layer is fed, owned by the caller. A trace shows modules and not the functions between them; these follow
 * from what shapes change on the way: attention between three projections and a fourth, a product of two branches, a
 * gate's two halves, a selection, a class token and positions, a permutation.
 */
export function fedWith(ops: GraphOps, handed: readonly Handed[], place: Place): Tensor {
  const { layer, input } = place;
  const wanted = elements(input);
  const [first] = handed;
  if (first === undefined) return ops.tensor(0, wanted, place.plan.weightWidth);
  const matrix = layer.kind === "linear";
  if (matrix && handed.length >= 2 && handed.length <= 3) {
    const heads = headsBetween(handed, input, place);
    if (heads !== null) {
      place.told("attention");
      return attended(ops, handed, heads, place);
    }
  }
  const scores =
    isSquare(input) && /^(softmax|dropout|custom)$/.test(layer.kind) ? scored(ops, handed, place) : null;
  if (scores !== null) return scores;
  if (handed.length === 1) return fromOne(ops, first, place);
  const square = handed.find(({ shape }) => isSquare(shape));
  if (handed.length === 2 && square !== undefined && layer.kind === "linear") {
    // Weights of attention with the values; the heads are put in order by token again.
    const weights = square;
    const values = handed[0] === square ? handed[1]! : handed[0]!;
    place.told("a product of matrices");
    const whole = values.tensor.per;
    const v = whole > wanted ? ops.selected(values.tensor, wanted) : ops.alias(values.tensor);
    const product = matrices(ops, weights.tensor, v, wanted, false, true);
    ops.drop(v);
    return replaced(ops, product, (t) => ops.copy(t));
  }
  // Whatever is not a sum or a concatenation, which a trace shows, is taken for a product.
  let made = ops.alias(first.tensor);
  for (const { tensor } of handed.slice(1)) {
    const [large, small] =
      tensor.per + tensor.fixed > made.per + made.fixed ? [tensor, made] : [made, tensor];
    const product = ops.product(large, small);
    ops.drop(made);
    made = product;
  }
  return resized(ops, made, wanted);
}

/** A row of scores for each token: a matrix of tokens by tokens, of one head or more. */
function isSquare(shape: Shape): boolean {
  return shape.length > 2 && shape.at(-1) === shape.at(-2);
}

/** Scores of queries with keys, which a softmax or the dropout behind one is called on; null where nothing makes them. */
function scored(ops: GraphOps, handed: readonly Handed[], place: Place): Tensor | null {
  const wanted = elements(place.input);
  if (handed.some(({ layer }) => layer.kind !== "linear") || handed.length > 2) return null;
  place.told("scores of queries with keys");
  const [one, two] = handed as [Handed, Handed | undefined];
  const parts = two === undefined ? split(ops, one.tensor, [1 / 3, 1 / 3, 1 / 3]) : null;
  const q = parts === null ? ops.alias(one.tensor) : parts[0]!;
  const k = parts === null ? ops.alias(two!.tensor) : parts[1]!;
  if (parts !== null) ops.drop(parts[2]!);
  return ops.within("scores", () => {
    let scores = matrices(ops, q, k, wanted, true, true);
    ops.drop(q, k);
    scores = replaced(ops, scores, (t) => ops.scaled(t));
    // Dropout stands behind a softmax that is a function.
    if (place.layer.kind !== "dropout") return scores;
    const raised = replaced(ops, scores, (t) => ops.raised(t));
    return replaced(ops, raised, (t) => ops.softmax(t, t.width));
  });
}

/** Three projections, or one of queries and one of keys and values, whose result is as wide as the queries. */
function headsBetween(handed: readonly Handed[], input: Shape, place: Place): Heads | null {
  const width = input.at(-1)!;
  const wide = handed.map(({ tensor }) => tensor.per);
  const rows = elements(input) / width;
  if (wide.some((per) => per === 0 || per % rows > 0)) return null;
  const [queries, keys, values] = wide.map((per) => per / rows);
  if (handed.length === 2 || queries !== width || keys !== values || width % keys! > 0) return null;
  if (!handed.every(({ layer }) => layer.kind === "linear" || /norm|rms|rotary|identity/.test(layer.kind)))
    return null;
  const size = sizeOf(keys!, place.headSize);
  return { heads: width / size, keyHeads: keys! / size, size };
}

/** Numbers of a head: as the graph tells, else 64 where the width is a multiple of it. */
function sizeOf(width: number, known: number | null): number {
  if (known !== null && width % known === 0) return known;
  return width % 64 === 0 ? 64 : width % 32 === 0 ? 32 : width;
}

function attended(ops: GraphOps, handed: readonly Handed[], heads: Heads, place: Place): Tensor {
  const [q, k, v] = handed.map(({ tensor }) => tensor) as [Tensor, Tensor, Tensor];
  return attend(ops, q, k, v, heads, place.plan, { turns: place.rotated });
}

function fromOne(ops: GraphOps, { tensor, shape, layer: before }: Handed, place: Place): Tensor {
  const { layer, input, plan } = place;
  const wanted = elements(input);
  const have = tensor.per + tensor.fixed;
  const last = shape.at(-1)!;
  const width = input.at(-1)!;
  const sameRows =
    shape.length === input.length && shape.slice(0, -1).every((side, at) => side === input[at]);
  if (wanted < have && sameRows && layer.kind === "linear" && before.kind === "linear") {
    if (last === 2 * width) {
      place.told("a gate");
      const active = replaced(ops, ops.selected(tensor, wanted), (t) => ops.silu(t));
      const up = ops.selected(tensor, wanted);
      const product = ops.product(active, up);
      ops.drop(active, up);
      return product;
    }
    const keys = (last - width) / 2;
    if (keys > 0 && Number.isInteger(keys) && width % keys === 0) {
      place.told("attention");
      const size = sizeOf(keys, place.headSize);
      const heads = { heads: width / size, keyHeads: keys / size, size };
      return attendFused(ops, tensor, heads, plan, { turns: place.rotated });
    }
  }
  const widening = before.kind === "linear" && layer.kind === "linear" && before.inShape !== null;
  if (widening && wanted === have && sameRows && place.transformer && before.inShape!.at(-1)! < last) {
    place.told("a GELU");
    return ops.gelu(tensor);
  }
  if (wanted > have && shape.length > 1) {
    place.told("tokens and positions beside the patches");
    // Parameters of the model itself, in their own dtype.
    const width = Math.max(tensor.width, plan.weightWidth);
    const joined = ops.record(ops.tensor(0, wanted, width), [tensor], [], (grad) => [
      ops.view(grad, tensor.fixed, tensor.per),
    ]);
    return replaced(ops, joined, (t) => ops.shifted(t));
  }
  const permuted =
    wanted === have &&
    shape.length > 1 &&
    input.length > 1 &&
    width !== last &&
    /^(linear|layer-norm|rms-norm)$/.test(layer.kind);
  if (permuted && before.kind !== "identity") return ops.remade(tensor, wanted);
  return resized(ops, ops.alias(tensor), wanted);
}

/** As many elements as the next layer wants: fewer are selected, more are made. */
function resized(ops: GraphOps, x: Tensor, wanted: number): Tensor {
  const have = x.per + x.fixed;
  if (have === wanted) return x;
  return replaced(ops, x, (t) => (wanted < have ? ops.selected(t, wanted) : ops.remade(t, wanted)));
}
