import { isObject, type Json } from "./config.ts";
import { GraphFault, told } from "./graph-params.ts";

/** Components in an order in which they can run, and for each the places in that order of what feeds it. */
export interface Ordered {
  readonly components: readonly Json[];
  readonly inputs: readonly (readonly number[])[];
  /** The file connects nothing, so the components were taken one after another. */
  readonly chained: boolean;
}

/** Orders components along their connections. Throws `GraphFault` on a cycle and on ids that do not fit. */
export function ordered(components: readonly Json[], connections: unknown): Ordered {
  const places = new Map<string, number>();
  components.forEach((component, place) => {
    const { id } = component;
    if (typeof id !== "string" && typeof id !== "number")
      throw new GraphFault(`component ${place + 1} of ${components.length} has no id`);
    if (places.has(String(id))) throw new GraphFault(`two components have the id ${told(id)}`);
    places.set(String(id), place);
  });
  const feeding = components.map(() => new Set<number>());
  const placed = (id: unknown, what: string): number => {
    const place = typeof id === "string" || typeof id === "number" ? places.get(String(id)) : undefined;
    if (place === undefined) throw new GraphFault(`${what} ${told(id)}, which is no component`);
    return place;
  };
  if (Array.isArray(connections) && connections.length > 0) {
    connections.forEach((connection, index) => {
      if (!isObject(connection)) throw new GraphFault(`connection ${index + 1} is not an object`);
      const { from = connection.source, to = connection.target } = connection;
      const target = placed(to, `connection ${index + 1} goes to`);
      feeding[target]!.add(placed(from, `connection ${index + 1} comes from`));
    });
  } else {
    components.forEach(({ id, inputs }, place) => {
      if (!Array.isArray(inputs)) return;
      for (const input of inputs) feeding[place]!.add(placed(input, `component ${told(id)} is fed by`));
    });
  }
  const chained = components.length > 1 && feeding.every((from) => from.size === 0);
  if (chained) for (let place = 1; place < feeding.length; place++) feeding[place]!.add(place - 1);
  const order = sorted(feeding);
  if (order.length < components.length) {
    const done = new Set(order);
    const one = components.find((_, place) => !done.has(place))!;
    throw new GraphFault(
      `the connections run in a circle, which component ${told(one.id)} is part of or waits for`,
    );
  }
  const newPlace = new Array<number>(order.length);
  order.forEach((place, index) => {
    newPlace[place] = index;
  });
  return {
    chained,
    components: order.map((place) => components[place]!),
    inputs: order.map((place) => [...feeding[place]!].map((from) => newPlace[from]!)),
  };
}

/** Places in an order of running that stays near the file's; shorter than `feeding` where there is a cycle. */
function sorted(feeding: readonly ReadonlySet<number>[]): number[] {
  if (feeding.every((from, place) => [...from].every((one) => one < place)))
    return feeding.map((_, place) => place);
  const waits = feeding.map((from) => from.size);
  const fed: number[][] = feeding.map(() => []);
  feeding.forEach((from, place) => {
    for (const one of from) fed[one]!.push(place);
  });
  const order: number[] = [];
  const ready: number[] = [];
  for (let place = feeding.length - 1; place >= 0; place--) if (waits[place] === 0) ready.push(place);
  while (ready.length > 0) {
    const place = ready.pop()!;
    order.push(place);
    for (let index = fed[place]!.length - 1; index >= 0; index--) {
      const next = fed[place]![index]!;
      waits[next]! -= 1;
      if (waits[next] === 0) ready.push(next);
    }
  }
  return order;
}
