import type { GraphLayer } from "../../model/graph-types.ts";

/** The layers of a module, from the first to the last that runs, and what it is called with. */
interface Span {
  readonly first: number;
  last: number;
  layers: number;
  readonly held: Set<number>;
}

/** Modules on the way to a layer, outermost first. */
function scopesOf({ scope }: GraphLayer): string[] {
  const scopes: string[] = [];
  if (scope === null || scope.length > 1000) return scopes;
  for (let at = scope.indexOf("."); at >= 0; at = scope.indexOf(".", at + 1)) scopes.push(scope.slice(0, at));
  scopes.push(scope);
  return scopes;
}

/**
 * What a module is called with lives until it returns, since its caller holds the arguments. Returns what each layer
 * lets go as the last one of a module, and adds these holds to the consumers.
 */
export function callsOf(layers: readonly GraphLayer[], waiting: number[]): (number[] | undefined)[] {
  const spans = new Map<string, Span>();
  layers.forEach((layer, place) => {
    for (const scope of scopesOf(layer)) {
      const span = spans.get(scope) ?? { first: place, last: place, layers: 0, held: new Set<number>() };
      span.last = place;
      span.layers += 1;
      for (const from of layer.inputs) if (from < span.first) span.held.add(from);
      spans.set(scope, span);
    }
  });
  const endings: (number[] | undefined)[] = [];
  for (const { first, last, layers: inside, held } of spans.values()) {
    // A list of modules is no call: others run between its parts.
    if (inside < last - first + 1) continue;
    for (const from of held) waiting[from]! += 1;
    endings[last] = [...(endings[last] ?? []), ...held];
  }
  return endings;
}
