import { shown } from "../lib/shown.ts";
import { FACT_SPECS } from "./keys.ts";
import type { RawFact } from "./raw.ts";

/**
 * The facts in SkyPilot resource labels, one map a candidate. A job is one job whichever candidate it gets, so a
 * label that differs between candidates cannot be read. One that only some candidates have counts for all:
 * SkyPilot merges the labels of `any_of` and `ordered` itself.
 */
export function labelFacts(candidates: readonly Readonly<Record<string, string | undefined>>[]): RawFact[] {
  return FACT_SPECS.flatMap((spec) => {
    const values = new Set<string>();
    for (const labels of candidates) {
      for (const [name, value] of Object.entries(labels)) {
        if (value !== undefined && name.trim().toLowerCase() === spec.label) values.add(value.trim());
      }
    }
    const [first, second] = values;
    if (first === undefined) return [];
    const fact: RawFact = { name: spec.label, value: first, from: { kind: "label", name: spec.label } };
    if (second === undefined) return [fact];
    return [
      {
        ...fact,
        fault: `differs between candidates (another has "${shown(second)}")`,
        remedy: "give every candidate the same",
      },
    ];
  });
}
