import type { Recipe } from "../facts/types.ts";
import type { LocatedStructure } from "../model/types.ts";
import type { StepResult } from "./step.ts";
import type { Moment, Sizing } from "./types.ts";

/** What a walked step comes to, beside where the structure was found. */
export interface Walked {
  readonly step: StepResult;
  /** The recipe as it was walked. */
  readonly recipe: Recipe;
  readonly seqLen: number;
  readonly floorBytes: number;
  readonly moments: readonly Moment[];
  /** What had to be assumed beyond what the structure says itself. */
  readonly assumed: readonly string[];
  readonly notes: readonly string[];
  readonly cautions: readonly string[];
}

/** A built-in sizing of a structure, whatever runner walked its step. */
export function assembled({ structure, model, revision, from }: LocatedStructure, walked: Walked): Sizing {
  const { step, recipe, seqLen, floorBytes, moments, notes, cautions } = walked;
  return {
    model,
    family: structure.family,
    source: "builtin",
    revision,
    structureFrom: from,
    params: structure.params,
    trainableParams: step.trainable,
    activeParams: structure.activeParams,
    recipe,
    seqLen,
    floorBytes,
    stateBytes: step.weightBytes + step.gradientBytes + step.optimizerBytes,
    moments,
    assumed: [...structure.assumed, ...walked.assumed],
    notes,
    cautions,
  };
}
