import { FACT_SPECS } from "./keys.ts";
import type { RawFact } from "./raw.ts";

/** The facts among command-line flags (names without `--`); flags that are no facts are left to their readers. */
export function flagFacts(flags: Readonly<Record<string, string | undefined>>): RawFact[] {
  return FACT_SPECS.flatMap((spec) => {
    const value = Object.hasOwn(flags, spec.flag) ? flags[spec.flag] : undefined;
    return value === undefined
      ? []
      : [{ name: spec.flag, value, from: { kind: "flag", name: `--${spec.flag}` } as const }];
  });
}
