import { recipeOf } from "../facts/recipe.ts";
import type { JobFacts } from "../facts/types.ts";
import { programIdentity } from "../host/program.ts";
import type { LocatedStructure } from "../model/types.ts";
import { type Bounds, leastBytes } from "../sizing/least.ts";
import type { Sizing } from "../sizing/types.ts";
import { type Identity, identityOf } from "../sources/identity.ts";
import { readKept, sizingKey, writeKept } from "../sources/kept-sizing.ts";
import type { SizedJob } from "./size.ts";

type Resizing = Pick<SizedJob, "resize" | "perCard">;

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What is known of one model at one length, and whether it says more than what is written down. */
interface Book {
  readonly key: string;
  readonly bounds: Bounds;
  /** By recipe as JSON, and before it the number of cards where the size is that of one of several. */
  readonly byRecipe: Record<string, Sizing | null>;
  grown: boolean;
}

/**
 * Sizes kept from one run to the next, so that a loop of submits reads and sizes a model once. Sizes that are found
 * equal those computed anew in everything but their terms.
 */
export class Keeper {
  readonly #books = new Map<string, Book>();

  /** `program` tells one build from another: a size is as good as the code that computed it. */
  constructor(
    private readonly place: Place,
    private readonly program: string | null = programIdentity(),
  ) {}

  /** The job's size as an earlier run left it; null when it has to be computed. */
  find(facts: JobFacts): SizedJob | null {
    const identity = identityOf(facts.model.value, this.place);
    const key = identity === null ? null : this.#keyOf(identity, facts);
    if (identity === null || key === null) return null;
    const kept = readKept(this.place.env, key);
    if (kept === null) return null;
    const book: Book = { key, ...kept, byRecipe: { ...kept.byRecipe }, grown: false };
    const sizing = book.byRecipe[JSON.stringify(recipeOf(facts))];
    if (sizing === undefined || sizing === null) return null;
    this.#books.set(key, book);
    return { sizing, ...this.#resizing(facts, sizing.seqLen, book, null) };
  }

  /** Notes a size that was computed, and those of the recipes it will be asked for; gives back what notes them. */
  kept(facts: JobFacts, located: LocatedStructure, bounds: Bounds, sized: SizedJob): SizedJob {
    const identity = identityOf(facts.model.value, this.place);
    // What answered was not what the identity says: an adapter's base, the hub, a broken copy passed over.
    const key = identity?.source === located.source ? this.#keyOf(identity, facts) : null;
    if (identity === null || key === null) return sized;
    const before = this.#books.get(key) ?? readKept(this.place.env, key);
    const byRecipe = { ...before?.byRecipe, [JSON.stringify(recipeOf(facts))]: sized.sizing };
    const book: Book = { key, bounds, byRecipe, grown: true };
    this.#books.set(key, book);
    return { ...sized, ...this.#resizing(facts, sized.sizing.seqLen, book, sized) };
  }

  /** Writes down what is new. After the answer is out: nobody waits for it. */
  flush(): void {
    for (const book of this.#books.values()) if (book.grown) writeKept(this.place.env, book.key, book);
  }

  #keyOf(identity: Identity, facts: JobFacts): string | null {
    return this.program === null ? null : sizingKey(identity, facts.seqLen.value, this.program);
  }

  #resizing(facts: JobFacts, seqLen: number, book: Book, computed: SizedJob | null): Resizing {
    const { bounds, byRecipe } = book;
    let sizes = computed;
    const once = (name: string, size: (job: SizedJob) => Sizing | null): Sizing | null => {
      const known = byRecipe[name];
      if (known !== undefined) return known;
      sizes ??= (require("./size-anew.ts") as typeof import("./size-anew.ts")).sizeHere(facts, this.place);
      if (sizes === null) return null;
      const other = size(sizes);
      byRecipe[name] = other;
      book.grown = true;
      return other;
    };
    return {
      resize: (change, within) => {
        const recipe = { ...recipeOf(facts), ...change };
        if (within !== undefined) {
          const { samples, bytes } = within;
          if (leastBytes({ ...bounds, recipe, samples, seqLen }) > bytes) return null;
        }
        return once(JSON.stringify(recipe), (job) => job.resize(change));
      },
      perCard: (change, cards) => {
        const recipe = { ...recipeOf(facts), ...change };
        return once(`${cards} ${JSON.stringify(recipe)}`, (job) => job.perCard?.(change, cards) ?? null);
      },
    };
  }
}
