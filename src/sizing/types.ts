import type { Recipe } from "../facts/types.ts";

/** Bytes as a line in the number of samples: `fixedBytes + perSampleBytes * samples`. */
export interface Line {
  readonly fixedBytes: number;
  readonly perSampleBytes: number;
}

/** One summand of a moment: its bytes and, in words, how they come about. */
export interface Term extends Line {
  readonly name: string;
  readonly formula: string;
}

/** A point of the training step at which memory may be highest. */
export interface Moment extends Line {
  /** `optimizer-step`, `end-of-backward`, `loss`, `end-of-forward`, `recompute`, ... */
  readonly name: string;
  /** In words, for people: "the loss, all activations and logits live". */
  readonly what: string;
  readonly terms: readonly Term[];
}

/**
 * The training peak of one job as several lines in the batch; the peak is the largest of them.
 * An external source gives a single line.
 */
export interface Sizing {
  readonly model: string;
  readonly family: string | null;
  /** `client`: built in, at the client's side, and sent along with the task; nobody here has seen the model. */
  readonly source: "builtin" | "cli" | "hosted" | "client";
  readonly revision: string | null;
  /** What tells equal structures under other names; absent where the size was not made for a verdict. */
  readonly structureDigest?: string;
  /** The model was named by a path, so another machine may not find it. */
  readonly local?: boolean;
  /** Where the structure was found: path, cache, catalogue, ...; null for external sources. */
  readonly structureFrom: string | null;
  readonly params: number | null;
  readonly trainableParams: number | null;
  readonly activeParams: number | null;
  /** The recipe as sized; differs from the asked one only where that is said in `notes`. */
  readonly recipe: Recipe;
  /** Tokens per sample. */
  readonly seqLen: number;
  /** A sample is as large as the graph was traced with; `seqLen` changes nothing. */
  readonly asTraced?: boolean;
  /** The largest moment that does not depend on the batch. */
  readonly floorBytes: number;
  /** Weights, gradients and optimizer state. */
  readonly stateBytes: number;
  readonly moments: readonly Moment[];
  /** What was assumed, a sentence each; empty = everything measured for this family and recipe. */
  readonly assumed: readonly string[];
  readonly notes: readonly string[];
  /** Of `notes` those that a user has to hear whatever the verdict: the run itself will fail, or may hold more. */
  readonly cautions?: readonly string[];
}

/** A job that cannot be sized: a machine reason and one sentence. */
export interface Unsized {
  readonly reason:
    | "recipe-not-sized"
    | "family-not-sized"
    | "model-not-found"
    | "model-unreachable"
    | "config-invalid"
    | "sizing-failed";
  readonly message: string;
}
