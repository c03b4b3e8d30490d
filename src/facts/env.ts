import { FACT_SPECS } from "./keys.ts";
import type { RawFact } from "./raw.ts";

/**
 * The facts in an environment: a SkyPilot task's `envs`, or that of a Slurm submit. Only our own names are
 * looked up, so `NEURARCH_MODE`, `NEURARCH_API_KEY` and any other variable stay unseen.
 */
export function envFacts(env: Readonly<Record<string, string | undefined>>): RawFact[] {
  return FACT_SPECS.flatMap((spec) => {
    const value = Object.hasOwn(env, spec.env) ? env[spec.env] : undefined;
    return value === undefined
      ? []
      : [{ name: spec.env, value, from: { kind: "env", name: spec.env } as const }];
  });
}
