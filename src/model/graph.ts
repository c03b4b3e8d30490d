import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { grouped } from "../lib/units.ts";
import { isObject, type Json } from "./config.ts";
import { ordered } from "./graph-order.ts";
import { GraphFault } from "./graph-params.ts";
import { GraphReader, MOST_ELEMENTS, Unknown } from "./graph-reader.ts";
import { withBatch } from "./graph-shapes.ts";
import { contextOf, headSizeOf, tiedHead, tokensOf } from "./graph-text.ts";
import type { GraphLayer, GraphModel } from "./graph-types.ts";
import { countOf, elements } from "./graph-weights.ts";
import type { ParamGroup, Structure } from "./types.ts";

/** A graph that cannot be used: a part of a sentence without a stop, and whether it is no graph or one not known. */
export interface GraphRefusal {
  readonly reason: "config-invalid" | "family-not-sized";
  readonly message: string;
}

const MOST_COMPONENTS = 20_000;

/**
 * Reads a `.neurarch.json` graph (neurarch-trace's, or a drawn one), also one wrapped in `{model: ...}` or
 * `{graph: ...}`. Counts are those of PyTorch's modules with the sizes that the graph states, and where it states a
 * count beside them, that count. What a graph cannot tell is in `assumed`, a sentence each.
 */
export function readGraph(raw: unknown): Result<Structure, GraphRefusal> {
  try {
    return ok(structureOf(raw));
  } catch (error) {
    if (error instanceof GraphFault)
      return fail({ reason: "config-invalid", message: shown(error.message, 300) });
    if (error instanceof Unknown)
      return fail({ reason: "family-not-sized", message: shown(error.message, 300) });
    throw error;
  }
}

/** The graph itself, in or out of `{model: ...}` or `{graph: ...}`; null where there is none. */
export function unwrapped(raw: unknown): Json | null {
  if (!isObject(raw)) return null;
  return (
    [raw, raw.model, raw.graph].filter(isObject).find(({ components }) => Array.isArray(components)) ?? null
  );
}

function structureOf(raw: unknown): Structure {
  if (!isObject(raw)) throw new GraphFault("it is not a graph: an object with components was expected");
  const graph = unwrapped(raw);
  if (graph === null) throw new GraphFault("the graph has no list of `components`");
  const list = graph.components as unknown[];
  if (list.length === 0) throw new GraphFault("the graph has no components");
  if (list.length > MOST_COMPONENTS)
    throw new GraphFault(
      `the graph has ${grouped(list.length)} components, more than ${grouped(MOST_COMPONENTS)}; trace it with --depth`,
    );
  const components = list.map((component, place): Json => {
    if (!isObject(component)) throw new GraphFault(`component ${place + 1} of the graph is not an object`);
    return component;
  });
  const { components: inOrder, inputs, chained } = ordered(components, graph.connections);
  const reader = new GraphReader(inOrder, inputs, withBatch(inOrder, inputs, graph.description));
  const layers = reader.layers();
  if (!layers.some(({ kind, weights }) => kind !== "input" && kind !== "output" && weights.length > 0))
    throw new GraphFault("no component of the graph has parameters, so there is nothing to train");
  const tokens = tokensOf(layers, reader.nominal);
  const tied = tiedHead(layers);
  const model: GraphModel = {
    layers,
    tokens: tokens.length,
    lengths: tokens.derived,
    tied: tied.pair,
    headSize: headSizeOf(layers),
  };
  const groups = groupsOf(layers);
  const shared = tied.pair === null ? 0 : elements(layers[tied.pair.table]!.weights[0]!);
  const params = groups.reduce((sum, { count }) => sum + count, 0) - shared;
  if (!(params <= MOST_ELEMENTS)) throw new GraphFault(`the components add up to ${params} parameters`);
  const recorded = recordedCount(graph);
  const notes = [...reader.notes, ...tokens.notes];
  if (recorded !== null && recorded !== params)
    notes.push(
      `The graph records ${grouped(recorded)} parameters, its components add up to ${grouped(params)}; these are sized.`,
    );
  return {
    family: "graph",
    params,
    activeParams: params - idleOf(layers),
    groups: shared === 0 ? groups : [...groups, { name: "shared with the output layer", count: -shared }],
    decoder: null,
    graph: model,
    paramsOutside: 0,
    contextTokens: tokens.length === null ? null : contextOf(layers),
    assumed: [
      ...(chained ? ["The graph connects nothing; its components are taken one after another."] : []),
      ...reader.assumed(),
      ...tied.assumed,
    ],
    notes,
  };
}

/** Parameters by the type of their component. */
function groupsOf(layers: readonly GraphLayer[]): ParamGroup[] {
  const counts = new Map<string, number>();
  for (const { type, className, weights, sharedWith } of layers) {
    const count = sharedWith === null ? countOf(weights) : 0;
    if (count === 0) continue;
    const name = type === "customModule" && className !== null ? shown(className) : shown(type);
    counts.set(name, (counts.get(name) ?? 0) + count);
  }
  return [...counts].map(([name, count]) => ({ name, count }));
}

/** Parameters of experts that a token does not meet. */
function idleOf(layers: readonly GraphLayer[]): number {
  let idle = 0;
  for (const { kind, weights, sizes } of layers) {
    if (kind !== "experts" || weights.length < 3) continue;
    const share = 1 - Math.min(1, sizes.chosen! / sizes.experts!);
    idle += Math.round((elements(weights[1]!) + elements(weights[2]!)) * share);
  }
  return idle;
}

/** A count of all parameters that the file itself carries. */
function recordedCount(graph: Json): number | null {
  const places = [graph, graph.metadata, graph.meta, graph.stats].filter(isObject);
  for (const place of places)
    for (const key of ["paramCount", "totalParams", "params", "parameters"]) {
      const value = place[key];
      if (typeof value === "number" && Number.isInteger(value) && value > 0) return value;
    }
  return null;
}
