import type { RawFact } from "./raw.ts";
import { specOfRaw } from "./raw.ts";

/** Values from several places, weakest first, so that the last one of a fact holds; ready for `readFacts`. */
export interface Combined {
  readonly raw: readonly RawFact[];
  readonly notes: readonly string[];
}

/**
 * A SkyPilot task's facts: its `envs`, per fact falling back to the resource labels; command-line flags lie over
 * both, per fact.
 */
export function combineSkypilot(sources: {
  readonly envs: readonly RawFact[];
  readonly labels: readonly RawFact[];
  readonly flags?: readonly RawFact[];
}): Combined {
  // An empty model names none, so it does not hide a label that does.
  const envs = sources.envs.filter((fact) => !(isModel(fact) && fact.value.trim() === ""));
  return { raw: overlay(overlay(sources.labels, envs), sources.flags ?? []), notes: [] };
}

/**
 * A Slurm job's facts: its `#NEURARCH` lines when they name a model, else, as a whole, the environment. The two
 * are never mixed fact by fact: a variable exported for another job would change this one. Command-line flags lie
 * over either, per fact; a model given as a flag completes the lines of the script.
 */
export function combineSlurm(sources: {
  readonly directives: readonly RawFact[];
  readonly env: readonly RawFact[];
  readonly flags?: readonly RawFact[];
}): Combined {
  const flags = sources.flags ?? [];
  const known = sources.directives.filter((fact) => specOfRaw(fact) !== null);
  const unknown = sources.directives.filter((fact) => specOfRaw(fact) === null);
  if (known.length === 0) return { raw: [...unknown, ...overlay(sources.env, flags)], notes: [] };
  if (known.some(isModel) || flags.some(isModel))
    return { raw: overlay(sources.directives, flags), notes: [] };
  const instead = sources.env.some((fact) => isModel(fact) && fact.value.trim() !== "");
  return {
    raw: [...unknown, ...overlay(sources.env, flags)],
    notes: [
      instead
        ? "The #NEURARCH lines name no model, so the NEURARCH_* environment is used in their place"
        : "The #NEURARCH lines name no model (model=...), so the job is not judged",
    ],
  };
}

function isModel(fact: RawFact): boolean {
  return specOfRaw(fact)?.key === "model";
}

/** `over` on top of `base`: a fact that `over` gives is dropped from `base`, with whatever was wrong with it. */
function overlay(base: readonly RawFact[], over: readonly RawFact[]): RawFact[] {
  const given = new Set(over.map((fact) => specOfRaw(fact)?.key).filter((key) => key !== undefined));
  return [
    ...base.filter((fact) => {
      const key = specOfRaw(fact)?.key;
      return key === undefined || !given.has(key);
    }),
    ...over,
  ];
}
