import { normsPerLayer } from "../model/decoder.ts";
import type { DecoderShape, LayerRun } from "../model/types.ts";
import type { Holdings } from "./holdings.ts";
import type { Context } from "./programs/context.ts";
import { type Layer, layer } from "./programs/layer.ts";
import type { Plan } from "./recipe.ts";

/** Layers that are alike, those of them that are run, and which of these stands for those that are not. */
export interface Run {
  readonly window: number | null;
  readonly between: number;
  readonly layers: readonly Layer[];
  readonly pattern: number;
}

/** The layers that are run, of each kind the first and the last, and the second where the first one is unlike. */
export function runsOf(context: Context, plan: Plan, held: Holdings): Run[] {
  const { ops, shape } = context;
  // With a frozen embedding the first layer's input needs no gradient, so it keeps less than the others.
  const pattern = plan.trainBase || plan.checkpointing ? 0 : 1;
  const runs: Run[] = [];
  const add = ({ layers: count, window, differs }: LayerRun, outputWhole = false) => {
    const own = {
      ...context,
      outputWhole,
      shape: differs === undefined ? shape : { ...shape, ...differs },
    };
    const norms = normsPerLayer(own.shape.normPlacement);
    const from = ops.leaves.length;
    const layers = [layer(own, norms)];
    held.count(from, count);
    while (layers.length < Math.min(count, pattern + 2)) layers.push(layer(own, norms));
    runs.push({ window, between: count - layers.length, layers, pattern });
  };
  const all = shape.windows.filter(({ layers }) => layers > 0);
  if (all.length === 0) all.push({ layers: shape.layers, window: null });
  const last = context.quantiser !== null && endsWithLayer(shape) ? all.pop()! : null;
  for (const run of all) add(run);
  if (last !== null) {
    if (last.layers > 1) add({ ...last, layers: last.layers - 1 });
    add({ ...last, layers: 1 }, true);
  }
  return runs;
}

/**
 * No parameter comes after those of the last layer. transformers leaves the module of a model's last parameter whole:
 * a head or a norm in all others. Source: transformers/quantizers/base.py, `get_keys_to_not_convert`.
 */
function endsWithLayer({ tiedHead, norm }: DecoderShape): boolean {
  return tiedHead && norm === "layer-no-weight";
}
