import { withoutAnsi } from "../bridge/evidence/ansi.ts";
import { CERTIFICATE_MESSAGE, failureKind } from "../bridge/evidence/failure-text.ts";
import type { CallOutcome } from "../host/outliving-call.ts";
import { shown } from "../lib/shown.ts";
import type { SkyProblem } from "./types.ts";

/** A sky call that did not do what it was asked. */
export interface CallEnded {
  readonly command: string;
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly overflowed: boolean;
  readonly startError: string | null;
  /** How long it was given. */
  readonly seconds: number;
}

/** An outliving call, as one that did not. */
export function endedOf(command: string, found: CallOutcome, timeoutMs: number | null): CallEnded {
  const none = {
    exitCode: null,
    stdout: "",
    stderr: "",
    timedOut: false,
    overflowed: false,
    startError: null,
  };
  const call = { ...none, command, seconds: (timeoutMs ?? 0) / 1000 };
  switch (found.kind) {
    case "exited":
      return { ...call, ...found };
    case "timeout":
      return { ...call, timedOut: true };
    case "lost":
      return { ...call, ...found };
    case "never-started":
      return { ...call, startError: "its shell did not begin" };
  }
}

/** Why a call failed: its kind by sky's own texts, of which only the last telling line is quoted, masked. */
export function problemOf(ended: CallEnded, redact: (text: string) => string): SkyProblem {
  const { command } = ended;
  if (ended.startError !== null) {
    return {
      kind: "missing-cli",
      error: "SkyPilotCLIError",
      message: `SkyPilot could not be started: ${ended.startError}`,
    };
  }
  // What a shell and `env` leave with when the program, or the interpreter it names, is not there.
  if (ended.exitCode === 126 || ended.exitCode === 127) {
    return {
      kind: "missing-cli",
      error: "SkyPilotCLIError",
      message: `SkyPilot could not be started: exit code ${ended.exitCode}`,
    };
  }
  if (ended.timedOut) {
    return {
      kind: "timeout",
      error: "SkyPilotTimeoutError",
      message: `SkyPilot ${command} timed out after ${ended.seconds} s`,
    };
  }
  if (ended.overflowed) {
    return {
      kind: "output",
      error: "SkyPilotOutputError",
      message: `SkyPilot ${command} printed more than is read`,
    };
  }
  const text = `${ended.stdout}\n${ended.stderr}`;
  const said = lastLine(redact(`${ended.stderr}\n`)) ?? lastLine(redact(`${ended.stdout}\n`));
  const how = ended.exitCode === null ? "was killed" : `failed with exit code ${ended.exitCode}`;
  const message = `SkyPilot ${command} ${how}${said === null ? "" : ` (${said})`}`;
  const error = "SkyPilotControlPlaneError";
  switch (failureKind(text)) {
    case "certificate":
      return { kind: "certificate", error, message: CERTIFICATE_MESSAGE };
    case "no-cluster":
    case "allocation-gone":
      return { kind: "no-cluster", error, message };
    case "node-unreachable":
    case "transport":
      return { kind: "transport", error, message };
    case "other":
      return { kind: "refused", error, message };
  }
}

function lastLine(text: string): string | null {
  const line = withoutAnsi(text)
    .split("\n")
    .map((one) => one.trim())
    .findLast((one) => one !== "");
  return line === undefined ? null : shown(line, 200);
}
