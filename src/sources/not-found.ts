import { fail } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { nearestInCatalogue } from "../model/catalogue.ts";
import type { Unsized } from "../sizing/types.ts";

/** A failure that the hub may know better: its message is made when the hub does not. */
export interface NotHere extends Unsized {
  readonly missing?: Missing;
}

export interface Missing {
  /** The hub id that was found nowhere on this machine, and the name it was asked by. */
  readonly id: string;
  readonly name: string;
  /** Where it was looked for, in a few words each. */
  readonly looked: readonly string[];
}

type Failure = { readonly ok: false; readonly error: NotHere };

export function notHere(missing: Missing): Failure {
  return fail({ reason: "model-not-found", message: "", missing });
}

/** What the hub said, with what may have been meant; where it was not asked, where else was looked. */
export function stillMissing(
  { name, looked }: Missing,
  said: (Unsized & { notAsked?: string }) | null,
): Failure {
  if (said === null) return notFound(name, looked);
  if (said.notAsked !== undefined) return notFound(name, [...looked, said.notAsked]);
  return fail({ reason: said.reason, message: `${said.message}${meantBy(name)}` });
}

/** Says what was looked at, what may have been meant, and what would make it work. */
export function notFound(model: string, looked: readonly string[]): Failure {
  const name = shown(model, 200);
  return fail({
    reason: "model-not-found",
    message: `No config was found for ${name === "" ? "the model" : name}: ${looked.join("; ")}.${meantBy(model)} Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue.`,
  });
}

function meantBy(model: string): string {
  const near = nearestInCatalogue(model);
  return near === null ? "" : ` Did you mean ${near}?`;
}
