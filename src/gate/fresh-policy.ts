import { monotonicMs } from "../host/clock.ts";
import { makePolicy, type PolicyOf } from "./policy.ts";
import type { Settings } from "./settings.ts";

/** How long a server takes a policy file as it read it, and the day as it was. */
const LIFE_MS = 5_000;

/** The site's policy file for a process that stays: read anew every few seconds, so that a waiver counts when it is written. */
export function freshPolicy(settings: Settings, env: Readonly<Record<string, string | undefined>>): PolicyOf {
  let current: PolicyOf | null = null;
  let atMs = 0;
  return (workdir) => {
    if (current === null || monotonicMs() - atMs > LIFE_MS) {
      current = makePolicy(settings, { cwd: "/", env, file: null, siteOnly: true });
      atMs = monotonicMs();
    }
    return current(workdir);
  };
}
