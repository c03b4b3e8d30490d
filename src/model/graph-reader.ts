import { shown } from "../lib/shown.ts";
import { grouped } from "../lib/units.ts";
import { isObject, type Json } from "./config.ts";
import { type KindOf, kindOfClass, kindOfType } from "./graph-kinds.ts";
import { Absent, GraphFault, GraphParams, told } from "./graph-params.ts";
import { inferred, lacking } from "./graph-shapes.ts";
import type { GraphLayer, Shape } from "./graph-types.ts";
import { countOf, elements, type Weighed, weighed } from "./graph-weights.ts";

/** Thrown for a component that is valid but unknown. */
export class Unknown extends Error {}

/** Parameters and elements of a sample beyond which a file is taken to be damaged. */
export const MOST_ELEMENTS = 1e14;

const CUSTOM: KindOf = { kind: "custom" };

/** Reads the components of a graph, in order. Throws `GraphFault` and `Unknown`. */
export class GraphReader {
  readonly notes: string[] = [];
  /** A text whose length the graph does not state was taken to be of the usual one. */
  nominal = false;
  private readonly generic = new Set<string>();
  private readonly read: GraphLayer[] = [];
  private readonly byName = new Map<string, number>();

  constructor(
    private readonly components: readonly Json[],
    private readonly inputs: readonly (readonly number[])[],
    private readonly batched: boolean,
  ) {}

  layers(): readonly GraphLayer[] {
    this.components.forEach((component, place) => {
      this.read.push(this.layer(component, place));
    });
    this.refuseLostExperts();
    return this.read;
  }

  assumed(): string[] {
    if (this.generic.size === 0) return [];
    const names = [...this.generic];
    const some = names.slice(0, 3).join(", ");
    const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
    return [
      `What ${some}${more} do${names.length === 1 ? "es" : ""} inside is not in the graph; each is counted by its recorded parameters and taken to keep its input and results that follow from their number.`,
    ];
  }

  /**
   * Experts hold their matrices as parameters of a module that has parts, which a trace descends into: it then shows
   * their activation and their router alone, and most of the model would be missing.
   */
  private refuseLostExperts(): void {
    const inside = this.read.filter(({ scope }) => /(^|\.)experts$/.test(scope ?? ""));
    const [one] = inside;
    if (one === undefined || inside.some(({ weights }) => weights.length > 0)) return;
    throw new Unknown(
      `component ${told(one.id)} belongs to experts whose parameters are not in the graph; name the model's config or Hugging Face id`,
    );
  }

  private layer(component: Json, place: number): GraphLayer {
    const id = String(component.id);
    const type = typeof component.type === "string" ? component.type : "";
    if (type === "") throw new GraphFault(`component ${told(id)} has no type`);
    const values = isObject(component.params) ? component.params : {};
    const params = new GraphParams(values, `component ${told(id)} (${shown(type)})`);
    const feeding = this.inputs[place]!;
    const given = this.shape(component, "inputShape", params);
    const before = this.read[feeding[0] ?? -1];
    const fed = given ?? (before === undefined || before.outShape.length === 0 ? null : before.outShape);
    const stated = this.shape(component, "outputShape", params);
    const className = params.text("className");
    const count = params.size("paramCount");
    const named = kindOfType(type);
    // A drawn graph may leave out what it is fed; the first layer's own width then tells it.
    const inShape = fed ?? (named === null || before?.kind === "embedding" ? null : lacking(named, params));
    if (fed === null && inShape !== null && inShape.length > 1) this.nominal = true;
    const guess =
      named ??
      kindOfClass(className ?? type, count ?? 0, inShape?.at(-1) ?? 0, stated?.at(-1) ?? 0) ??
      this.unknown(type, className, count, params);
    if (guess.kind === "input") {
      const shape = stated ?? this.shape(values, "shape", params) ?? drawnInput(params);
      return this.made(id, type, guess, className, feeding, null, shape, [], {}, component);
    }
    const { known, weights, sizes } = this.weightsOf(guess, type, params, count, inShape, stated);
    const shapes = feeding.map((from) => this.read[from]!.outShape).filter((one) => one.length > 0);
    if (shapes.length === 0 && inShape !== null) shapes.push(inShape);
    const outShape = stated ?? inferred(known, type, params, shapes, weights) ?? inShape;
    if (outShape === null && known.kind !== "output" && known.kind !== "positions")
      throw new Unknown(
        `${params.where} is fed by nothing and has no shape; give the graph an input with a shape, or trace the module`,
      );
    if (outShape !== null && !(elements(outShape) <= MOST_ELEMENTS))
      throw new GraphFault(`${params.where} returns ${told(outShape)}, more than a device can hold`);
    const rate = known.kind === "dropout" ? (params.rate("p") ?? params.rate("rate") ?? 0.5) : 0;
    const own = known.kind === "dropout" ? { rate } : sizes;
    return this.made(id, type, known, className, feeding, inShape, outShape ?? [], weights, own, component);
  }

  private made(
    id: string,
    type: string,
    { kind, activation }: KindOf,
    className: string | null,
    inputs: readonly number[],
    inShape: Shape | null,
    outShape: Shape,
    weights: readonly Shape[],
    sizes: Readonly<Record<string, number>>,
    component: Json,
  ): GraphLayer {
    // neurarch-trace names a module's second call `name#2`.
    const name = typeof component.name === "string" ? component.name : id;
    const again = /^(.*)#\d+$/.exec(name);
    const first = again === null ? undefined : this.byName.get(again[1]!);
    const sharedWith = first !== undefined && this.read[first]!.type === type ? first : null;
    this.byName.set(name, this.read.length);
    return {
      id,
      type,
      kind,
      className,
      scope: typeof component.scope === "string" ? component.scope : null,
      inputs,
      inShape,
      outShape,
      weights,
      sharedWith,
      activation: activation ?? null,
      sizes,
    };
  }

  /** Parameters by sizes; where the file records another count, or lacks a size, by that count alone. */
  private weightsOf(
    known: KindOf,
    type: string,
    params: GraphParams,
    count: number | null,
    inShape: Shape | null,
    outShape: Shape | null,
  ): Weighed & { readonly known: KindOf } {
    if (count === null) return { known, ...weighed(known, type, params, inShape, outShape) };
    const alone = () => {
      if (known.kind !== "custom") this.generic.add(shown(params.text("className") ?? type));
      return { known: CUSTOM, weights: count === 0 ? [] : [[count]], sizes: {} };
    };
    if (known.kind === "custom") return alone();
    const lastOut = outShape?.at(-1) ?? 0;
    if (known.kind === "rms-written" || (known.kind === "layer-norm" && !params.has("normalizedShape"))) {
      const sizes = { features: lastOut };
      if (count === lastOut) return { known, weights: [[count]], sizes };
      return count === 2 * lastOut ? { known, weights: [[lastOut], [lastOut]], sizes } : alone();
    }
    if (known.kind === "embedding" && !params.has("vocabSize") && lastOut > 0 && count % lastOut === 0)
      return { known, weights: [[count / lastOut, lastOut]], sizes: {} };
    try {
      const made = weighed(known, type, params, inShape, outShape, count);
      const total = countOf(made.weights);
      if (total === count) return { known, ...made };
      if (!params.has("className"))
        this.notes.push(
          `${params.where} records ${grouped(count)} parameters where its sizes give ${grouped(total)}; the recorded count is taken.`,
        );
    } catch (error) {
      if (!(error instanceof Absent)) throw error;
    }
    return alone();
  }

  private unknown(type: string, className: string | null, count: number | null, params: GraphParams): KindOf {
    if (count === null)
      throw new Unknown(
        `${params.where} is of a type that is not known here and records no paramCount; add its paramCount, or trace the module with neurarch-trace`,
      );
    this.generic.add(shown(className ?? type));
    return CUSTOM;
  }

  private shape(of: Json, key: string, params: GraphParams): Shape | null {
    const value = of[key];
    if (!Array.isArray(value)) return null;
    // A batch may be written as open: null, -1, "batch".
    const open = value.length > 0 && !(typeof value[0] === "number" && value[0] !== -1);
    if (open) return new GraphParams({ [key]: value.slice(1) }, params.where).shape(key)!;
    const sides = new GraphParams(of, params.where).shape(key)!;
    return this.batched && sides.length > 0 ? sides.slice(1) : sides;
  }
}

/** What a drawn input says of itself without a list. */
function drawnInput(params: GraphParams): Shape {
  const length = params.size("seqLen", "seqLength", "sequenceLength", "maxLength");
  if (length !== null) return [length];
  const [channels, height, width] = [params.size("channels"), params.size("height"), params.size("width")];
  if (channels !== null && height !== null && width !== null) return [channels, height, width];
  const features = params.size("features", "size", "dim");
  return features === null ? [] : [features];
}
