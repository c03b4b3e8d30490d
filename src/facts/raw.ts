import { type FactSpec, specOfEnv, specOfFlag, specOfLabel } from "./keys.ts";
import type { Origin } from "./types.ts";

/** A value as someone wrote it, before it is read. */
export interface RawFact {
  /** The name as written: `batch`, `NEURARCH_BATCH`, `neurarch-batch`. */
  readonly name: string;
  readonly value: string;
  readonly from: Origin;
  /**
   * Why the value cannot be read, when whoever found it already knows ("differs between candidates", "has no
   * value"), as the predicate of a sentence that begins with where the value stands.
   */
  readonly fault?: string;
  /** What to do about it, where that is not to write another value. */
  readonly remedy?: string;
}

/** The fact a raw value belongs to, by the spelling of the place it was found in; null when it is none of ours. */
export function specOfRaw(raw: RawFact): FactSpec | null {
  switch (raw.from.kind) {
    case "env":
      return specOfEnv(raw.name);
    case "label":
      return specOfLabel(raw.name);
    default:
      return specOfFlag(raw.name);
  }
}
