import { GateError } from "../lib/errors.ts";
import { afterLines, beforeLines, type CollectOptions } from "./declared/collect-text.ts";
import { makeRootLines } from "./declared/root.ts";
import { ENVIRONMENT_FILE } from "./environment-file.ts";
import { MAX_ARTIFACT_BYTES, markerWord } from "./markers.ts";
import { quoteWord, quoteWords } from "./shell-words.ts";

/** One evaluation as the remote side is to run it. */
export interface RunOptions {
  /** The evaluator's argument vector, the request's own arguments included. */
  readonly argv: readonly string[];
  /** The file to send back, or null. */
  readonly artifactPath: string | null;
  /** A shell text run before the evaluator, in the workdir. */
  readonly setup: string | null;
  /** Whether `ENVIRONMENT_FILE` lies in the workdir. */
  readonly environment: boolean;
  readonly commandPrefix: readonly string[] | null;
  /** Letters and digits. */
  readonly nonce: string;
  /** The profile's persistent folder as written, made where it is missing; absent = none. */
  readonly root?: string;
  /** Files to be returned besides; absent = none. */
  readonly collect?: CollectOptions;
}

/** The names under which the layers appear in a process list. */
const SETUP_NAME = "vibesys-framework-evaluator";
const WORKDIR = "VIBESYS_REMOTE_WORKDIR";
/** Seconds after a prefix that failed in which a signal to the whole step is waited for. */
const SETTLE_S = 1;

/**
 * The shell text of a job, from inside: the evaluator; the artifact's way back; the setup; the environment; the command
 * prefix; the marker.
 *
 * The marker is printed outside the prefix: a nested step or a container that dies takes its own shell along, and
 * only a shell around it can still say how it ended. The artifact is printed inside, since a container's `/tmp` is seen
 * from nowhere else. Declared files lie in the job's folder, which both sides see; they are looked for outside, where
 * the persistent folder is mounted and the tools are the node's.
 *
 * When the allocation ends, Slurm sends SIGTERM to every process of the step, so the evaluator's death is no answer:
 * the marker's shell catches the signal and then says `stopped` instead of an exit code. A nested step may be
 * killed a moment before that shell is told, hence the second's wait after a prefix that failed. SIGKILL to the whole
 * step leaves no marker, which says the same.
 */
export function runText(options: RunOptions): string {
  const { argv, artifactPath, setup, environment, commandPrefix, nonce } = options;
  if (!/^[0-9A-Za-z]+$/.test(nonce))
    throw new GateError("internal", "a job's nonce is not letters and digits");
  let words: readonly string[] = argv;
  if (artifactPath !== null) words = withArtifact(words, artifactPath, nonce);
  if (setup !== null) words = ["sh", "-c", `set -e\n${setup}\nexec "$@"`, SETUP_NAME, ...words];
  if (environment) words = withEnvironment(words);
  return withMarker(
    commandPrefix === null ? `${quoteWords(words)}` : prefixed(words, commandPrefix),
    options,
  );
}

/**
 * Removes what an earlier evaluation left at the path, runs the evaluator and keeps its status, then prints the file
 * between markers. Without `base64` and `wc` on the remote side, or with a file that cannot be read, that is said.
 */
function withArtifact(words: readonly string[], path: string, nonce: string): readonly string[] {
  const say = (kind: "artifact-begin" | "artifact-end" | "artifact-unsent", more = "") =>
    `printf '\\n%s\\n' ${markerWord(kind, nonce)}${more}`;
  const script = [
    `artifact=$1`,
    `shift`,
    `rm -f -- "$artifact"`,
    `"$@"`,
    `status=$?`,
    `if [ -f "$artifact" ]; then`,
    `  size=$(wc -c <"$artifact" | tr -d ' ')`,
    `  if [ "\${size:-none}" = none ] || ! [ -r "$artifact" ] || ! command -v base64 >/dev/null; then`,
    `    ${say("artifact-unsent", `" unreadable"`)}`,
    `  elif [ "$size" -gt ${MAX_ARTIFACT_BYTES} ]; then`,
    `    ${say("artifact-unsent", `" too-big"`)}`,
    `  else`,
    `    ${say("artifact-begin", `" size=$size"`)}`,
    `    base64 <"$artifact" | tr -d '\\n'`,
    `    ${say("artifact-end")}`,
    `  fi`,
    `fi`,
    `exit "$status"`,
  ].join("\n");
  return ["sh", "-c", script, "neurarch-artifact", path, ...words];
}

/** Reads the environment's file and removes it, so that no secret is left behind on the cluster's disk. */
function withEnvironment(words: readonly string[]): readonly string[] {
  const script = [
    // A file that cannot be read ends a POSIX shell on the spot, without a word of ours.
    `if ! [ -r "./${ENVIRONMENT_FILE}" ]; then`,
    `  echo "neurarch-gate: the environment file of this evaluation cannot be read" >&2`,
    `  exit 126`,
    `fi`,
    `. "./${ENVIRONMENT_FILE}"`,
    `rm -f -- "./${ENVIRONMENT_FILE}"`,
    `exec "$@"`,
  ].join("\n");
  return ["sh", "-c", script, "neurarch-environment", ...words];
}

/**
 * A prefix may start elsewhere (another container, another folder), with another environment: the job's own folder is
 * handed behind it as an argument and entered again. The variable is there for evaluators that look for it.
 */
function prefixed(words: readonly string[], prefix: readonly string[]): string {
  const inner = [...prefix, "sh", "-c", `cd -- "$1" && shift && exec "$@"`, "neurarch-prefix"];
  return `export ${WORKDIR}="$(pwd)" && ${quoteWords(inner)} "$${WORKDIR}" ${quoteWords(words)}`;
}

function withMarker(command: string, options: RunOptions): string {
  const { nonce, root, collect } = options;
  const script = [
    ...(root === undefined ? [] : makeRootLines(root)),
    ...(collect === undefined ? [] : beforeLines(collect)),
    `stopped=`,
    `trap 'stopped=1' TERM INT HUP`,
    // A subshell has the traps' signals back at their defaults, and so has what runs in it.
    `( ${command}`,
    `)`,
    `status=$?`,
    ...(options.commandPrefix !== null ? [`if [ "$status" -ne 0 ]; then sleep ${SETTLE_S}; fi`] : []),
    ...(collect === undefined
      ? []
      : [`if [ -z "$stopped" ]; then`, ...afterLines(collect), `else rm -rf -- "$kept"`, `fi`]),
    `if [ -n "$stopped" ]; then`,
    `  printf '\\n%s\\n' ${markerWord("stopped", nonce)}`,
    `else`,
    `  printf '\\n%s exit=%s\\n' ${markerWord("end", nonce)} "$status"`,
    `fi`,
    `exit "$status"`,
  ].join("\n");
  // A shell of our own: the one that sky starts is interactive and ignores SIGTERM.
  return `sh -c ${quoteWord(script)} neurarch-evaluation`;
}
