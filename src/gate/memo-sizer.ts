import { recipeOf } from "../facts/recipe.ts";
import { nowMs } from "../host/clock.ts";
import { ok, type Result } from "../lib/result.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";
import { Memo } from "./memo.ts";
import type { SizedJob, SizeJob } from "./size.ts";

/** How long a server takes a size as current: a config at a path may be written anew. */
const SIZE_LIFE_MS = 60_000;
/** The same for a job that could not be sized: what was missing may be there at the next try. */
const MISS_LIFE_MS = 10_000;

/**
 * A sizer that works each job out once and gives the same answer to all that ask within a minute, also while it is
 * still worked out. For processes that stay.
 */
export function memoSizer(size: SizeJob, most = 2_000): SizeJob {
  const sized = new Memo<Promise<Result<SizedJob, Unsized>>>(most, SIZE_LIFE_MS);
  const missed = new Memo<Promise<Result<SizedJob, Unsized>>>(most, MISS_LIFE_MS);
  return (facts) => {
    const key = JSON.stringify([facts.model.value, facts.seqLen.value, recipeOf(facts)]);
    const atMs = nowMs();
    const known = sized.get(key, atMs) ?? missed.get(key, atMs);
    if (known !== undefined) return known;
    const working = size(facts).then((result) => {
      if (result.ok) return ok(remembering(result.value));
      missed.set(key, Promise.resolve(result), nowMs());
      sized.drop(key);
      return result;
    });
    working.catch(() => sized.drop(key));
    return sized.set(key, working, atMs);
  };
}

/** Other recipes are walked once; that a request is too small for one is told again each time. */
function remembering({ sizing, resize, perCard }: SizedJob): SizedJob {
  const known = new Map<string, Sizing | null>();
  return {
    sizing,
    ...(perCard && {
      perCard: (change, cards) => {
        const key = `${cards} ${JSON.stringify(change)}`;
        const found = known.get(key);
        if (found !== undefined) return found;
        const other = perCard(change, cards);
        known.set(key, other);
        return other;
      },
    }),
    resize: (change, within) => {
      const key = JSON.stringify(change);
      const found = known.get(key);
      if (found !== undefined) return found;
      const other = resize(change, within);
      if (other !== null || within === undefined) known.set(key, other);
      return other;
    },
  };
}
