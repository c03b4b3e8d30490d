import { normsPerLayer } from "../model/decoder.ts";
import type { DecoderShape, LayerRun } from "../model/types.ts";
import { checkpointedLayer } from "./checkpoint.ts";
import type { Gathering } from "./gathered.ts";
import type { Holdings } from "./holdings.ts";
import { replaced } from "./programs/attention.ts";
import type { Context } from "./programs/context.ts";
import { forwardLayer, type Layer, layer } from "./programs/layer.ts";
import type { Masks, Surroundings } from "./programs/surroundings.ts";
import type { Plan } from "./recipe.ts";
import type { StackOps } from "./stacks/ops.ts";
import type { Kept, Stretch } from "./stacks/run.ts";
import type { Leaf, Tensor } from "./tape.ts";

/** The programs of towers: evaluated at first use, and at once. */
export function towers() {
  return require("./towers/tower.ts") as typeof import("./towers/tower.ts");
}

/** Layers that are alike, those of them that are run, and which of these stands for those that are not. */
export interface Run {
  readonly window: number | null;
  readonly between: number;
  readonly layers: readonly Layer[];
  /** The parameters of each of them. */
  readonly leaves: readonly (readonly Leaf[])[];
  readonly pattern: number;
}

/** The layers that are run, of each kind the first and the last, and the second where the first one is unlike. */
export function runsOf(context: Context, plan: Plan, held: Holdings, alone: number): Run[] {
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
    const layers: Layer[] = [];
    const leaves: Leaf[][] = [];
    while (layers.length < Math.min(count, pattern + 2)) {
      const from = ops.leaves.length;
      layers.push(layer(own, norms));
      leaves.push(ops.leaves.slice(from));
      if (layers.length === 1) held.count(from, count);
    }
    runs.push({ window, between: count - layers.length, layers, leaves, pattern });
  };
  const pieces: LayerRun[] = [];
  let left = alone;
  for (const run of shape.windows) {
    let { layers } = run;
    // Layers whose output is added to stand alone.
    for (; left > 0 && layers > 0; left--, layers--) pieces.push({ ...run, layers: 1 });
    if (layers > 0) pieces.push({ ...run, layers });
  }
  if (pieces.length === 0) pieces.push({ layers: shape.layers, window: null });
  const last = context.quantiser !== null && endsWithLayer(shape) ? pieces.pop()! : null;
  for (const piece of pieces) add(piece);
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
function endsWithLayer({ tiedHead, norm, scores }: DecoderShape): boolean {
  return tiedHead && norm === "layer-no-weight" && !scores?.labels;
}

/** What layers are run with beside their input. */
export interface BesideLayers {
  readonly rotary: Surroundings["rotary"];
  readonly masks: Masks;
  /** Where parameters are in host memory. */
  readonly gathering: Gathering | null;
  /** What a tower adds to the first layers' outputs. */
  readonly deep: readonly Tensor[];
}

/** All layers; `embedded` is borrowed, since the model's own name for it lives on. */
export function forwardLayers(
  { ops, shape }: Context,
  plan: Plan,
  runs: readonly Run[],
  embedded: Tensor,
  { rotary, masks, gathering, deep }: BesideLayers,
  stretches: Stretch[],
  kept: Kept,
): Tensor {
  let hidden = ops.alias(embedded);
  for (const run of runs) {
    const { window, between, layers, leaves, pattern } = run;
    const around: Surroundings = { rotary, ...masks.of(window) };
    for (let index = 0; index < layers.length; index++) {
      const one = layers[index]!;
      const live = ops.snapshot();
      const casts = ops.castCount();
      gathering?.enterLayer(leaves[index]!);
      stretches.push({ mark: ops.mark(), between: index === layers.length - 1 ? between : 0 });
      const next = plan.checkpointing
        ? checkpointedLayer(ops, hidden, one, around)
        : forwardLayer(ops, hidden, one, around);
      const excluded = ops.endLayer(shape.callsKernelDirectly ?? shape.probabilitiesOutlive ?? false);
      ops.drop(hidden);
      // An input that only the embedding's name keeps alive would have died in a later layer.
      if (hidden.storage === embedded.storage && hidden.storage.refs === 1) excluded.push(next.storage);
      hidden = next;
      gathering?.leaveLayer();
      if (index !== pattern || between === 0) continue;
      ops.repeat(gathering?.level(live) ?? live, between, excluded);
      kept.cachedBetween += ops.castsHeldByCache(casts) * between;
    }
    const features = deep[runs.indexOf(run)];
    if (features !== undefined)
      hidden = replaced(ops, hidden, (t) => towers().injected(ops as StackOps, t, features));
  }
  ops.endLayer(false);
  return hidden;
}
