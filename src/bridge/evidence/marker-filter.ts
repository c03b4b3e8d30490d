import { MAX_ARTIFACT_BYTES, type Marker, readMarker } from "../markers.ts";
import { asBuffer, NEWLINE } from "./ansi.ts";

/** What our own lines in a job's output said. */
export interface Marked {
  /** Exit code of the `end` line; the first that is not 0 where several nodes printed one. */
  readonly exitCode: number | null;
  /** The job's shell was asked to end before the program was over. */
  readonly stopped: boolean;
  /** base64 text of the artifact as it came; `too-big` also where the job could not read it. */
  readonly artifact: string | "too-big" | null;
  /** The lines about declared files, whole; null where there are none, or more than there may be. */
  readonly files: string | null;
}

/** How every marker line begins; a last line that could still become one is held back. */
const START = Buffer.from("__NEURARCH_BRIDGE_");
/** Longer than any marker line. */
const MAX_MARKER_BYTES = 256;
/** base64 of the largest artifact with a newline every 60 characters. */
const MAX_BASE64_BYTES = Math.ceil((MAX_ARTIFACT_BYTES * 4) / 3) + 65_536;
/** The same of declared files, with a thousand lines that each have a path. */
const MAX_FILES_BYTES = MAX_BASE64_BYTES + 6_000_000;

/**
 * Takes our marker lines, the artifact between them, and one empty line before a marker out of the program's bytes.
 * Everything else passes unchanged, at once and in large pieces: only a last empty line and a last line that may be
 * the beginning of a marker wait for what follows. What was handed on of a cut stream is therefore always a beginning
 * of what the whole stream gives.
 */
export class MarkerFilter {
  private readonly nonce: Buffer;
  private rest: Buffer | null = null;
  /** Whether the first byte that comes (after `rest`) begins a line. */
  private atLineStart = true;
  private inArtifact = false;
  /** Within the lines about declared files; those that came, null once they are too many. */
  private inFiles = false;
  private fileLines: string[] | null = null;
  private fileBytes = 0;
  private files: string | null = null;
  private artifactParts: string[] = [];
  private artifactBytes = 0;
  private artifact: string | "too-big" | null = null;
  private exitCode: number | null = null;
  private stopped = false;

  constructor(private readonly nonceText: string) {
    this.nonce = Buffer.from(nonceText, "latin1");
  }

  /** Hands the program's bytes on to `emit`; they are valid during the call only. */
  take(chunk: Uint8Array, emit: (piece: Uint8Array) => void): void {
    if (chunk.length === 0) return;
    let data = asBuffer(chunk);
    if (this.rest !== null) {
      data = Buffer.concat([this.rest, data]);
      this.rest = null;
    }
    let from = 0;
    while (from < data.length) {
      if (this.inArtifact || this.inFiles) {
        from = this.inArtifact ? this.takeArtifact(data, from) : this.takeFiles(data, from);
        continue;
      }
      const found = this.nextMarker(data, from);
      if (found === null) {
        this.emitTail(data, from, emit);
        return;
      }
      const { lineStart, lineEnd, marker } = found;
      const until = this.isEmptyLine(data, from, lineStart - 1) ? lineStart - 1 : lineStart;
      if (marker === null) {
        // The line is ours so far, but it has not ended yet.
        this.pass(data, from, until, emit);
        this.rest = Buffer.from(data.subarray(until));
        return;
      }
      this.pass(data, from, until, emit);
      this.atLineStart = true;
      this.heed(marker);
      from = lineEnd + 1;
    }
  }

  /** `final`: the stream is known to have come to its own end, so what was held back is the program's as well. */
  end(final: boolean, emit: (piece: Uint8Array) => void): Marked {
    if (this.rest !== null) {
      const text = this.rest.toString("latin1").replace(/^\n/, "");
      // Of a stream that was cut, `exit=1` may be the beginning of `exit=137`.
      const marker = final ? readMarker(text, this.nonceText) : null;
      if (marker !== null) this.heed(marker);
      else if (final && !this.inArtifact && !this.inFiles) emit(this.rest);
      this.rest = null;
    }
    return {
      exitCode: this.exitCode,
      stopped: this.stopped,
      artifact: this.artifact,
      files: this.files,
    };
  }

  /** The next line that is one of ours; `marker` null = the last, unfinished line may still become one. */
  private nextMarker(data: Buffer, from: number) {
    for (let at = data.indexOf(this.nonce, from); at !== -1; at = data.indexOf(this.nonce, at + 1)) {
      const before = data.lastIndexOf(NEWLINE, at);
      const lineStart = before < from ? from : before + 1;
      if (lineStart === from && !this.atLineStart) continue;
      const lineEnd = data.indexOf(NEWLINE, at);
      const length = (lineEnd === -1 ? data.length : lineEnd) - lineStart;
      if (length > MAX_MARKER_BYTES) continue;
      if (lineEnd === -1) {
        if (data.indexOf(START, lineStart) !== lineStart) continue;
        return { lineStart, lineEnd: data.length, marker: null };
      }
      const marker = readMarker(data.toString("latin1", lineStart, lineEnd), this.nonceText);
      if (marker !== null) return { lineStart, lineEnd, marker };
    }
    return null;
  }

  private emitTail(data: Buffer, from: number, emit: (piece: Uint8Array) => void): void {
    const before = data.lastIndexOf(NEWLINE);
    const lineStart = before < from ? from : before + 1;
    const begins = before >= from || this.atLineStart;
    let keep = data.length;
    const length = data.length - lineStart;
    if (begins && length <= MAX_MARKER_BYTES) {
      const compared = Math.min(length, START.length);
      if (data.compare(START, 0, compared, lineStart, lineStart + compared) === 0)
        keep = this.isEmptyLine(data, from, lineStart - 1) ? lineStart - 1 : lineStart;
    }
    this.pass(data, from, keep, emit);
    if (keep < data.length) this.rest = Buffer.from(data.subarray(keep));
  }

  /** Whether the byte at `at` is a newline that is a line by itself. */
  private isEmptyLine(data: Buffer, from: number, at: number): boolean {
    if (at < from || data[at] !== NEWLINE) return false;
    return at === from ? this.atLineStart : data[at - 1] === NEWLINE;
  }

  private pass(data: Buffer, from: number, until: number, emit: (piece: Uint8Array) => void): void {
    if (until <= from) return;
    emit(data.subarray(from, until));
    this.atLineStart = data[until - 1] === NEWLINE;
  }

  private takeArtifact(data: Buffer, from: number): number {
    const lineEnd = data.indexOf(NEWLINE, from);
    if (lineEnd === -1) {
      const waiting = data.length - from;
      if (this.artifactBytes + waiting > MAX_BASE64_BYTES) this.artifact = "too-big";
      // Of a line that is too long only the end is kept: a marker is what may still come.
      this.rest =
        this.artifact === "too-big" && waiting > MAX_MARKER_BYTES ? null : Buffer.from(data.subarray(from));
      return data.length;
    }
    if (lineEnd - from <= MAX_MARKER_BYTES) {
      const marker = readMarker(data.toString("latin1", from, lineEnd), this.nonceText);
      if (marker !== null) {
        this.heed(marker);
        return lineEnd + 1;
      }
    }
    this.artifactBytes += lineEnd - from;
    if (this.artifactBytes > MAX_BASE64_BYTES) this.artifact = "too-big";
    if (this.artifact === "too-big") this.artifactParts = [];
    else this.artifactParts.push(data.toString("latin1", from, lineEnd).trim());
    return lineEnd + 1;
  }

  private takeFiles(data: Buffer, from: number): number {
    const lineEnd = data.indexOf(NEWLINE, from);
    if (lineEnd === -1) {
      this.rest = Buffer.from(data.subarray(from, from + MAX_FILES_BYTES));
      return data.length;
    }
    if (lineEnd - from <= MAX_MARKER_BYTES) {
      const marker = readMarker(data.toString("latin1", from, lineEnd), this.nonceText);
      if (marker !== null) {
        this.heed(marker);
        return lineEnd + 1;
      }
    }
    this.fileBytes += lineEnd - from;
    if (this.fileBytes > MAX_FILES_BYTES) this.fileLines = null;
    this.fileLines?.push(data.toString("latin1", from, lineEnd).trim());
    return lineEnd + 1;
  }

  private heed(marker: Marker): void {
    switch (marker.kind) {
      case "files-begin":
        this.inFiles = true;
        this.fileLines = [];
        this.fileBytes = 0;
        return;
      case "files-end":
        this.files = this.inFiles && this.fileLines !== null ? this.fileLines.join("\n") : null;
        this.fileLines = null;
        this.inFiles = false;
        return;
      case "end":
        if (this.exitCode === null || this.exitCode === 0) this.exitCode = marker.exitCode;
        this.inArtifact = false;
        this.inFiles = false;
        return;
      case "stopped":
        this.stopped = true;
        this.inArtifact = false;
        this.inFiles = false;
        return;
      case "artifact-begin":
        this.inArtifact = true;
        this.artifact = null;
        this.artifactParts = [];
        this.artifactBytes = 0;
        return;
      case "artifact-end":
        if (this.inArtifact && this.artifact !== "too-big") this.artifact = this.artifactParts.join("");
        this.artifactParts = [];
        this.inArtifact = false;
        return;
      case "artifact-unsent":
        this.artifact = "too-big";
    }
  }
}
