import { recipeOf } from "../facts/recipe.ts";
import type { JobFacts } from "../facts/types.ts";
import { digest } from "../host/private-files.ts";
import { ok, type Result } from "../lib/result.ts";
import type { LocatedStructure } from "../model/types.ts";
import { defaultSeqLen } from "../sizing/default-length.ts";
import { type Bounds, leastBytes } from "../sizing/least.ts";
import { sizeStructure } from "../sizing/size.ts";
import type { Unsized } from "../sizing/types.ts";
import { type LocateHost, locate, locateHere } from "../sources/locate.ts";
import type { PerCard, Resize } from "../verdict/types.ts";
import type { Keeper } from "./keeper.ts";
import type { SizedJob } from "./size.ts";

/** Finds a job's model and sizes it; a keeper is told, so that the next run need not. */
export async function sizeAnew(
  facts: JobFacts,
  host: LocateHost,
  keeper?: Keeper,
): Promise<Result<SizedJob, Unsized>> {
  const located = await locate(facts.model.value, host);
  if (!located.ok) return located;
  const sized = withDigest(sizeLocated(located.value, facts), located.value);
  return sized.ok && keeper !== undefined
    ? ok(keeper.kept(facts, located.value, boundsOf(located.value), sized.value))
    : sized;
}

function withDigest(
  sized: Result<SizedJob, Unsized>,
  { structure, local }: LocatedStructure,
): Result<SizedJob, Unsized> {
  if (!sized.ok) return sized;
  const structureDigest = digest(JSON.stringify(structure)).slice(0, 16);
  const named = local === true ? { local } : {};
  return ok({ ...sized.value, sizing: { ...sized.value.sizing, structureDigest, ...named } });
}

/** A job whose model needs no network, to size it with a recipe that was never asked for; null without it. */
export function sizeHere(facts: JobFacts, host: LocateHost): SizedJob | null {
  const located = locateHere(facts.model.value, host);
  const sized = located === null ? null : sizeLocated(located, facts);
  return sized?.ok ? sized.value : null;
}

/** Sizes a structure that was found, with the facts of a job. */
export function sizeLocated(located: LocatedStructure, facts: JobFacts): Result<SizedJob, Unsized> {
  const recipe = recipeOf(facts);
  const seqLen = facts.seqLen.value ?? defaultSeqLen(located.structure.contextTokens);
  const sized = sizeStructure(located, recipe, seqLen);
  if (!sized.ok) return sized;
  const bounds = boundsOf(located);
  const resize: Resize = (change, within) => {
    const changed = { ...recipe, ...change };
    if (within !== undefined) {
      const { samples, bytes } = within;
      const least = leastBytes({ ...bounds, recipe: changed, samples, seqLen });
      if (least > bytes) return null;
    }
    const other = sizeStructure(located, changed, seqLen);
    return other.ok ? other.value : null;
  };
  const perCard: PerCard = (change, cards) => {
    const other = sizeStructure(located, { ...recipe, ...change }, seqLen, cards);
    return other.ok ? other.value : null;
  };
  return ok({ sizing: sized.value, resize, perCard });
}

/** What bounds a model's size from below. Encoders score less than all of their tokens, or none. */
export function boundsOf({ structure: { params, decoder, stacks } }: LocatedStructure): Bounds {
  if (stacks !== undefined || decoder === null) return { params, vocab: 0, handedOn: 0 };
  const { layers, hidden, scan } = decoder;
  const vocab = decoder.scores === undefined ? decoder.vocab : 0;
  // Adapters find nothing to adapt in a scan, and what is not trained keeps nothing.
  return { params, vocab, handedOn: scan === undefined ? (layers - 1) * hidden : 0 };
}
