import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { fail, ok, type Result } from "../lib/result.ts";
import { type FileProblem, problemOf } from "./fs.ts";

/** A file that is read piece by piece, so that its length does not matter. */
export interface Chunks {
  /** Bytes in all; null for a pipe. */
  readonly size: number | null;
  /** Stays the same when the file is renamed. */
  readonly identity: string;
  /** The next piece, empty at the end. It is overwritten by the next call. */
  next(): Result<Uint8Array, FileProblem>;
  close(): void;
}

const CHUNK_BYTES = 262_144;

/**
 * Opens a regular file, standard input (`-`), or a pipe that was handed to us (`/dev/fd/63` of a shell's `<(...)`).
 * Anything else, a FIFO or a device that could keep us waiting, is refused.
 */
export function openChunks(path: string): Result<Chunks, FileProblem> {
  const inherited = path === "-" || /^\/(dev|proc\/self)\/(fd\/\d+|stdin)$/.test(path);
  let descriptor: number;
  try {
    descriptor =
      path === "-" ? 0 : openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    return fail(problemOf(path, error));
  }
  const name = path === "-" ? "standard input" : path;
  const close = () => {
    if (descriptor !== 0) closeSync(descriptor);
  };
  const refuse = (message: string) => {
    close();
    return fail({ kind: "not-regular" as const, message });
  };
  const stat = fstatSync(descriptor);
  if (stat.isDirectory()) return refuse(`${name} is a directory, not a file`);
  if (path === "-" && process.stdin.isTTY)
    return refuse("standard input is a terminal; pipe the file into it");
  if (!stat.isFile() && !(inherited && (stat.isFIFO() || stat.isSocket() || path === "-")))
    return refuse(`${name} is not a regular file`);
  const buffer = new Uint8Array(CHUNK_BYTES);
  const next = (): Result<Uint8Array, FileProblem> => {
    for (;;) {
      try {
        return ok(buffer.subarray(0, readSync(descriptor, buffer, 0, buffer.length, null)));
      } catch (error) {
        const code = (error as { code?: string }).code;
        if (code === "EOF") return ok(buffer.subarray(0, 0));
        // Only a pipe has more later; a file of the kernel's that waits (/proc/kmsg) may wait for ever.
        if (code !== "EAGAIN" || stat.isFile()) return fail(problemOf(name, error));
        Bun.sleepSync(2);
      }
    }
  };
  return ok({ size: stat.isFile() ? stat.size : null, identity: `${stat.dev}:${stat.ino}`, next, close });
}
