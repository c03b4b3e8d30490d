import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statfsSync,
  statSync,
} from "node:fs";
import { fail, ok, type Result } from "../lib/result.ts";

/** Why a file could not be read. `message` names the path and the obstacle in one sentence. */
export interface FileProblem {
  readonly kind: "missing" | "denied" | "not-regular" | "too-large" | "io";
  readonly message: string;
}

export function problemOf(path: string, error: unknown): FileProblem {
  const code = (error as { code?: string }).code ?? "";
  if (code === "ENOENT" || code === "ENOTDIR") return { kind: "missing", message: `${path} does not exist` };
  if (code === "EACCES" || code === "EPERM")
    return { kind: "denied", message: `${path} cannot be read: permission denied` };
  return { kind: "io", message: `${path} cannot be read: ${code || String(error)}` };
}

/**
 * Reads at most `maxBytes` of a regular file. Never blocks on a FIFO or a device: the file is opened without
 * waiting and looked at before a byte is read. With `truncate` a larger file gives its first `maxBytes`.
 */
export function readBytes(
  path: string,
  maxBytes: number,
  options: { readonly truncate?: boolean } = {},
): Result<Uint8Array, FileProblem> {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    return fail(problemOf(path, error));
  }
  try {
    const stat = fstatSync(descriptor);
    if (stat.isDirectory())
      return fail({ kind: "not-regular", message: `${path} is a directory, not a file` });
    if (!stat.isFile()) return fail({ kind: "not-regular", message: `${path} is not a regular file` });
    if (stat.size > maxBytes && !options.truncate) {
      return fail({
        kind: "too-large",
        message: `${path} is ${(stat.size / 1e6).toFixed(1)} MB, above the limit of ${(maxBytes / 1e6).toFixed(1)} MB`,
      });
    }
    const buffer = new Uint8Array(Math.min(Math.max(stat.size, 4096), maxBytes));
    let length = 0;
    while (length < buffer.length) {
      const got = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (got === 0) break;
      length += got;
    }
    return ok(buffer.subarray(0, length));
  } catch (error) {
    return fail(problemOf(path, error));
  } finally {
    closeSync(descriptor);
  }
}

/** As `readBytes`, decoded as UTF-8; bytes that are not UTF-8 become U+FFFD (`decodeStrict` tells). */
export function readText(
  path: string,
  maxBytes: number,
  options: { readonly truncate?: boolean } = {},
): Result<string, FileProblem> {
  const bytes = readBytes(path, maxBytes, options);
  return bytes.ok ? ok(new TextDecoder().decode(bytes.value)) : bytes;
}

/** The text, or null when the bytes are not valid UTF-8. */
export function decodeStrict(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

export type PathKind = "file" | "directory" | "other" | "none";

/** What stands at `path`, links followed. */
export function pathKind(path: string): PathKind {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return "none";
    return stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other";
  } catch {
    return "none";
  }
}

/**
 * Whether a file lies in a folder where everybody may put one (`/tmp`, the root of a scratch file system) and is
 * neither ours nor root's: nobody who works below that folder has agreed to it.
 */
export function isStrangersFile(path: string, folder: string): boolean {
  try {
    if ((statSync(folder).mode & 0o002) === 0) return false;
    const { uid } = lstatSync(path);
    return uid !== 0 && uid !== (process.getuid?.() ?? 0);
  } catch {
    return true;
  }
}

/** Names in a directory; empty when it cannot be listed. */
export function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Names in a directory, or why it cannot be listed. */
export function listing(path: string): Result<readonly string[], FileProblem> {
  try {
    return ok(readdirSync(path));
  } catch (error) {
    if ((error as { code?: string }).code === "ENOTDIR")
      return fail({ kind: "not-regular", message: `${path} is not a directory` });
    return fail(problemOf(path, error));
  }
}

/** What the entry itself is (links not followed); null when absent. `identity` stays the same when it is renamed. */
export function entryInfo(path: string): {
  readonly mtimeMs: number;
  readonly uid: number;
  readonly isFile: boolean;
  readonly identity: string;
  /** Permission bits. */
  readonly mode: number;
  readonly links: number;
} | null {
  try {
    const stat = lstatSync(path);
    return {
      mtimeMs: stat.mtimeMs,
      uid: stat.uid,
      isFile: stat.isFile(),
      identity: `${stat.dev}:${stat.ino}`,
      mode: stat.mode & 0o7777,
      links: stat.nlink,
    };
  } catch {
    return null;
  }
}

/** Kind, owner, permission bits and size of what stands at `path`, links followed; null when absent. */
export function pathInfo(path: string): {
  readonly kind: "file" | "directory" | "other";
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
  readonly size: number;
} | null {
  try {
    const stat = statSync(path);
    const kind = stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other";
    return { kind, uid: stat.uid, gid: stat.gid, mode: stat.mode & 0o7777, size: stat.size };
  } catch {
    return null;
  }
}

/** Room that a user without privileges has left where `path` lies, and whether it can be written at all; null = unknown. */
export function freeBytes(path: string): { readonly bytes: number; readonly readOnly: boolean } | null {
  try {
    const { bavail, bsize } = statfsSync(path);
    let readOnly = false;
    try {
      accessSync(path, constants.W_OK);
    } catch (error) {
      readOnly = (error as { code?: string }).code === "EROFS";
    }
    return { bytes: bavail * bsize, readOnly };
  } catch {
    return null;
  }
}

/** The path with every link resolved; null when there is nothing. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** The beginning of a small regular file's text; null where it is missing or cannot be read. */
export function smallText(path: string): string | null {
  const text = readText(path, 4096, { truncate: true });
  return text.ok ? text.value : null;
}
