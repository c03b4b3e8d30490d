import type { ErrorFrames, Frame } from "../types.ts";
import { oneLine, PROTOCOL_VERSION } from "./line.ts";
import { MAX_MESSAGE } from "./request.ts";

/** Most characters of a `stdout` or `stderr` frame. */
export const MAX_OUTPUT_CHARACTERS = 65_536;

/**
 * A frame as the daemon writes it, with its line end: compact JSON, keys in the order that clients know, text beyond
 * ASCII as it is. The error frame is the client line's own: `mainline` has no message.
 *
 * Output of more than 65,536 characters is to be cut before (`cutOutput`, `cutText`); cut so, no frame exceeds 1 MiB.
 */
export function encodeFrame(frame: Frame, dialect: ErrorFrames): string {
  return `${JSON.stringify(fieldsOf(frame, dialect))}\n`;
}

function fieldsOf(frame: Frame, dialect: ErrorFrames): Record<string, unknown> {
  const head = { version: PROTOCOL_VERSION, type: frame.type };
  switch (frame.type) {
    case "stdout":
    case "stderr":
      // A half of a surrogate pair has no UTF-8, and Python would not print it.
      return { ...head, data: frame.data.toWellFormed() };
    case "artifact": {
      const { path, size, sha256, dataBase64 } = frame.artifact;
      return { ...head, path, size, sha256, data_base64: dataBase64 };
    }
    case "file": {
      const { path, size, sha256 } = frame.file;
      return { ...head, path, size, sha256 };
    }
    case "file_data":
      return { ...head, data_base64: frame.dataBase64 };
    case "files":
      return { ...head, count: frame.count };
    case "result":
      return {
        ...head,
        status: frame.status,
        sky_exit_code: frame.skyExitCode,
        remote_job_id: frame.remoteJobId,
      };
    case "acked":
      return { ...head, invocation_id: frame.invocationId };
    case "error": {
      const error = frame.error.replace(/[^A-Za-z0-9_.]/g, "").slice(0, 100) || "Exception";
      return dialect === "mainline"
        ? { ...head, error }
        : { ...head, error, message: oneLine(frame.message, MAX_MESSAGE) };
    }
  }
}

/** A piece of output for one frame, and how many bytes of the source it stands for. */
export interface OutputPiece {
  readonly data: string;
  readonly bytes: number;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Cuts output that begins on a character's boundary into pieces for frames, none of them splitting a character. What
 * is no UTF-8 becomes U+FFFD. A character that is not complete yet at the end is left for the next call, unless
 * `isEnd`: then no more comes.
 */
export function cutOutput(bytes: Uint8Array, isEnd: boolean): readonly OutputPiece[] {
  const end = isEnd ? bytes.length : bytes.length - incompleteTail(bytes);
  const pieces: OutputPiece[] = [];
  // A character has at least one byte, so as many bytes never have more characters.
  for (let at = 0; at < end; ) {
    const most = Math.min(at + MAX_OUTPUT_CHARACTERS, end);
    const next = most === end ? end : boundaryBefore(bytes, at, most);
    pieces.push({ data: decoder.decode(bytes.subarray(at, next)), bytes: next - at });
    at = next;
  }
  return pieces;
}

/** Cuts a text into pieces for frames, none of them splitting a surrogate pair. */
export function cutText(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    let next = Math.min(at + MAX_OUTPUT_CHARACTERS, text.length);
    if (next < text.length && /[\ud800-\udbff]/.test(text[next - 1]!) && /[\udc00-\udfff]/.test(text[next]!))
      next--;
    pieces.push(text.slice(at, next));
    at = next;
  }
  return pieces;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** The last boundary at or before `most`; `most` itself where the bytes are no UTF-8 anyway. */
function boundaryBefore(bytes: Uint8Array, from: number, most: number): number {
  for (let at = most; at > most - 4 && at > from; at--) if (!isContinuation(bytes[at]!)) return at;
  return most;
}

/** Bytes at the end that begin a character and do not complete it: 0 to 3. */
function incompleteTail(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 && byte <= 0xf4 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
    return byte <= 0xf4 && length > back ? back : 0;
  }
  return 0;
}
