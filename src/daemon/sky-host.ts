import { environmentValues } from "../bridge/environment-file.ts";
import { Redactor, redact } from "../bridge/redaction.ts";
import type { Campaign } from "../bridge/types.ts";
import { join } from "../host/paths.ts";
import { makeSky } from "./sky.ts";
import type { Sky } from "./types.ts";

/** The sky command line of a run, its texts masked of `secrets` and of whatever looks like a credential. */
export function skyOf(
  program: string,
  stateDir: string,
  env: Readonly<Record<string, string | undefined>>,
  secrets: readonly string[],
  hidden: readonly string[] = [],
): Sky {
  return makeSky({
    program,
    calls: join(stateDir, "calls"),
    changes: join(stateDir, "changes"),
    env: skyEnvironment(env, hidden),
    cwd: stateDir,
    redact: (text) => redact(text, secrets),
    redactor: () => new Redactor(secrets),
  });
}

/** The values that evaluations of a campaign are given. */
export function secretsOf(
  campaign: Campaign,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return Object.values(environmentValues(campaign.environment, env).values);
}

/** What sky and ssh work with, even where a campaign hands it to its evaluations as well. */
const NEEDED =
  /^(?:HOME|PATH|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|SSH_AUTH_SOCK|SKYPILOT_\w+|\w+_proxy|\w+_PROXY)$/;

/**
 * The environment that sky is given: ours, without the variables that are for the evaluations alone (`hidden`) and
 * without what is meant for this program.
 */
export function skyEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  hidden: readonly string[],
): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => NEEDED.test(name) || !(hidden.includes(name) || name.startsWith("NEURARCH_")),
    ),
  );
}
