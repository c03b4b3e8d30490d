/**
 * The lines that a job prints for us among the program's own output. They carry the evaluation's random nonce, not
 * its id: a client chooses the id, so a candidate could print a line that was made from it.
 *
 * Before each marker the job prints one newline, so that a last line without an end is ended. The reader therefore
 * drops exactly one empty line directly before a marker: the program's output is what it was, but for the newline that
 * an unterminated last line gains.
 */

/**
 * What a line of the job says when it is one of ours.
 *
 * - `end`: the last act. The program, or the prefix around it, ended by itself with `exitCode`.
 * - `stopped`: the last act of a job whose shell was itself asked to end (allocation over, preempted, cancelled): the
 *   codes of what ran inside say nothing about the program.
 * - `artifact-begin`: lines of base64 follow until `artifact-end`; joined and decoded they are `size` bytes.
 * - `files-begin`: lines about the files that the call declared follow until `files-end`.
 * - `artifact-unsent`: there is an artifact, but it does not come: above the limit, or not readable.
 */
export type Marker =
  | { readonly kind: "end"; readonly exitCode: number }
  | { readonly kind: "stopped" }
  | { readonly kind: "artifact-begin"; readonly size: number }
  | { readonly kind: "artifact-end" }
  | { readonly kind: "files-begin" }
  | { readonly kind: "files-end" }
  | { readonly kind: "artifact-unsent"; readonly reason: "too-big" | "unreadable" };

const WORDS = {
  end: "END",
  stopped: "STOPPED",
  "artifact-begin": "ARTIFACT_BEGIN",
  "artifact-end": "ARTIFACT_END",
  "artifact-unsent": "ARTIFACT_UNSENT",
  "files-begin": "FILES_BEGIN",
  "files-end": "FILES_END",
} as const satisfies Record<Marker["kind"], string>;

/** Largest artifact that is sent in-band, bytes before base64. */
export const MAX_ARTIFACT_BYTES = 524_288;

/** The first word of a marker line. `nonce`: letters and digits only. */
export function markerWord(kind: Marker["kind"], nonce: string): string {
  return `__NEURARCH_BRIDGE_${WORDS[kind]}_${nonce}__`;
}

/** A marker as the job prints it, without the newlines around it. */
export function markerLine(marker: Marker, nonce: string): string {
  const word = markerWord(marker.kind, nonce);
  switch (marker.kind) {
    case "end":
      return `${word} exit=${marker.exitCode}`;
    case "artifact-begin":
      return `${word} size=${marker.size}`;
    case "artifact-unsent":
      return `${word} ${marker.reason}`;
    default:
      return word;
  }
}

/**
 * Reads one undecorated line (no newline; a trailing carriage return is let pass). Null when it is the program's own:
 * a line that only resembles a marker, or has another nonce, is output like any other.
 */
export function readMarker(line: string, nonce: string): Marker | null {
  const found = /^__NEURARCH_BRIDGE_([A-Z_]+)_([0-9A-Za-z]+)__(?: ([a-z=0-9-]+))?\r?$/.exec(line);
  if (found === null || found[2] !== nonce) return null;
  const said = found[3] ?? "";
  switch (found[1]) {
    case WORDS.end: {
      const exit = /^exit=(\d{1,3})$/.exec(said);
      return exit === null ? null : { kind: "end", exitCode: Number(exit[1]) };
    }
    case WORDS["artifact-begin"]: {
      const size = /^size=(\d{1,7})$/.exec(said);
      return size === null ? null : { kind: "artifact-begin", size: Number(size[1]) };
    }
    case WORDS["artifact-unsent"]:
      return said === "too-big" || said === "unreadable" ? { kind: "artifact-unsent", reason: said } : null;
    case WORDS.stopped:
      return said === "" ? { kind: "stopped" } : null;
    case WORDS["artifact-end"]:
      return said === "" ? { kind: "artifact-end" } : null;
    case WORDS["files-begin"]:
      return said === "" ? { kind: "files-begin" } : null;
    case WORDS["files-end"]:
      return said === "" ? { kind: "files-end" } : null;
    default:
      return null;
  }
}
