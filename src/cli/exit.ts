import type { ErrorCode } from "../lib/errors.ts";
import type { Decision } from "../verdict/types.ts";

/**
 * How the program ends. One meaning each, the same in every command:
 * 0 done or allowed, 1 refused, 2 usage, 3 not judged, 4 an input or settings file cannot be used,
 * 5 a needed source cannot be reached, 10 a warning under `--fail-on warn`, 70 a bug of ours.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 10 | 70 | ForeignCode;

/** The exit code of a command that we ran for the user, or 130 where the user interrupted. */
export type ForeignCode = number & { readonly of: "another program" };

export function foreignCode(code: number): ForeignCode {
  return code as ForeignCode;
}

const OF_ERROR: Record<ErrorCode, ExitCode> = {
  usage: 2,
  "input-unreadable": 4,
  "input-invalid": 4,
  "config-invalid": 4,
  "settings-invalid": 4,
  unreachable: 5,
  internal: 70,
};

export function exitOfError(code: ErrorCode): ExitCode {
  return OF_ERROR[code];
}

/** The exit code of `judge`. `failOpen` turns "not judged" into 0, `failOnWarn` a warning into 10. */
export function exitOfDecision(
  decision: Decision,
  options: { readonly failOpen: boolean; readonly failOnWarn: boolean },
): ExitCode {
  switch (decision) {
    case "refuse":
      return 1;
    case "unjudged":
      return options.failOpen ? 0 : 3;
    case "warn":
      return options.failOnWarn ? 10 : 0;
    case "allow":
    case "rewrite":
      return 0;
  }
}
