import { digest } from "../host/private-files.ts";
import type { Bounds } from "../sizing/least.ts";
import type { Moment, Sizing } from "../sizing/types.ts";
import { readCache, writeCache } from "./cache.ts";
import type { Identity } from "./identity.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Sizings of one model at one length by recipe, and what a quick bound on others takes. */
export interface KeptSizings {
  readonly bounds: Bounds;
  /** By recipe as JSON; null = this recipe has no size. */
  readonly byRecipe: Readonly<Record<string, Sizing | null>>;
}

/** A moment as it is kept: name, what, fixed bytes, bytes a sample, and of the fixed ones the optimizer state. */
type KeptMoment = readonly [string, string, number, number, number];
type KeptSizing = Omit<Sizing, "moments"> & { readonly moments: readonly KeptMoment[] };

/**
 * The key of a model at a length (null = the job names none) in our own cache: all that its sizes depend on but the
 * recipe, this very program included.
 */
export function sizingKey(identity: Identity, seqLen: number | null, program: string): string {
  return digest(JSON.stringify([program, identity, seqLen]));
}

/** What is kept under a key; null for none and for what is no entry of ours. */
export function readKept(env: Environment, key: string): KeptSizings | null {
  const value = readCache(env, "size", key)?.value as
    | { bounds?: Partial<Bounds> | null; byRecipe?: Record<string, KeptSizing | null> }
    | null
    | undefined;
  const { params, vocab, handedOn } = value?.bounds ?? {};
  if (typeof params !== "number" || typeof vocab !== "number" || typeof handedOn !== "number") return null;
  const { byRecipe } = value!;
  if (typeof byRecipe !== "object" || byRecipe === null) return null;
  const sizings: Record<string, Sizing | null> = {};
  for (const recipe in byRecipe) {
    const kept = byRecipe[recipe];
    if (kept === undefined) continue;
    if (kept !== null && !Array.isArray(kept.moments)) return null;
    sizings[recipe] = kept && { ...kept, moments: kept.moments.map(unpacked) };
  }
  return { bounds: { params, vocab, handedOn }, byRecipe: sizings };
}

/** Keeps sizings under a key. What cannot be kept is computed again next time. */
export function writeKept(env: Environment, key: string, { bounds, byRecipe }: KeptSizings): void {
  const packedUp: Record<string, KeptSizing | null> = {};
  for (const [recipe, sizing] of Object.entries(byRecipe)) {
    packedUp[recipe] = sizing && { ...sizing, moments: sizing.moments.map(packed) };
  }
  writeCache(env, "size", key, { bounds, byRecipe: packedUp });
}

const OPTIMIZER = "optimizer";

function packed({ name, what, fixedBytes, perSampleBytes, terms }: Moment): KeptMoment {
  const state = terms.find((term) => term.name === OPTIMIZER);
  return [name, what, fixedBytes, perSampleBytes, state?.fixedBytes ?? 0];
}

/** Of the terms only the optimizer state comes back, the one that a verdict asks for: a kept sizing explains nothing. */
function unpacked([name, what, fixedBytes, perSampleBytes, optimizerBytes]: KeptMoment): Moment {
  const state = { name: OPTIMIZER, formula: "", fixedBytes: optimizerBytes, perSampleBytes: 0 };
  return { name, what, fixedBytes, perSampleBytes, terms: [state] };
}
