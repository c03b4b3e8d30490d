import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { FACT_SPECS, specOfFlag } from "./keys.ts";
import type { Fact, FactKey } from "./types.ts";
import { readValue } from "./values.ts";

/** A site's `[defaults]`: fact -> value as text, `precision` -> `bf16`. */
export type SiteDefaults = Readonly<Record<string, string>>;

/**
 * Reads a site's usual values. Only facts beyond the core six may have one: a site cannot know a job's model,
 * batch or length.
 * Throws `GateError("settings-invalid")` naming the key and what to write.
 */
export function siteFacts(defaults: SiteDefaults): ReadonlyMap<FactKey, Fact<unknown>> {
  const facts = new Map<FactKey, Fact<unknown>>();
  for (const [name, text] of Object.entries(defaults)) {
    const spec = specOfFlag(name);
    if (spec === null || spec.core) {
      const known = FACT_SPECS.filter((candidate) => !candidate.core).map((candidate) => candidate.flag);
      const near = spec === null ? nearest(name, known) : null;
      throw new GateError(
        "settings-invalid",
        spec === null
          ? `[defaults] has the unknown key \`${shown(name)}\``
          : `[defaults] sets \`${spec.flag}\`, which only a job can tell`,
        near === null ? `It may set ${known.join(", ")}.` : `Did you mean \`${near}\`?`,
      );
    }
    const read = readValue(spec, text);
    if (!read.ok) {
      throw new GateError(
        "settings-invalid",
        `\`${spec.flag}\` in [defaults], "${shown(text)}", ${read.error.fault}`,
        `Write ${spec.flag} = "${read.error.write}", say.`,
      );
    }
    facts.set(spec.key, { value: read.value, from: { kind: "site", name: spec.flag } });
  }
  return facts;
}
