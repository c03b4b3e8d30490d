import {
  closeSync,
  constants,
  fchmodSync,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { GateError } from "../lib/errors.ts";
import { diskFault } from "./disk-fault.ts";

/** A private file (0600) that only grows, whose bytes are on the disk once `sync` has resolved. */
export interface DurableFile {
  readonly path: string;
  /** Bytes written so far. */
  readonly size: number;
  /** Adds bytes at the end. Throws a GateError when the disk refuses; then none of them stand there. */
  append(bytes: Uint8Array): void;
  /** Resolves when all that was appended would survive a power cut; waits in another thread. */
  sync(): Promise<void>;
  /** Bytes `[from, to)`, fewer at the end of the file. */
  read(from: number, to: number): Uint8Array;
  /** Forgets what stands behind `size`. */
  cut(size: number): void;
  close(): void;
}

/** Opens a file of our own, making it where it is missing. Throws a GateError that names the path. */
export function openDurable(path: string): DurableFile {
  const descriptor = openPrivate(path, constants.O_RDWR | constants.O_CREAT);
  let size = fstatSync(descriptor).size;
  return {
    path,
    get size() {
      return size;
    },
    append(bytes) {
      try {
        for (let done = 0; done < bytes.length; )
          done += writeSync(descriptor, bytes, done, bytes.length - done, size + done);
        size += bytes.length;
      } catch (error) {
        cutQuietly(descriptor, size);
        throw diskFault(error, "write", path);
      }
    },
    sync: () =>
      new Promise((resolve, reject) =>
        fdatasync(descriptor, (error) => (error ? reject(diskFault(error, "write", path)) : resolve())),
      ),
    read(from, to) {
      const bytes = new Uint8Array(Math.max(0, Math.min(to, size) - from));
      let done = 0;
      try {
        while (done < bytes.length) {
          const got = readSync(descriptor, bytes, done, bytes.length - done, from + done);
          if (got === 0) break;
          done += got;
        }
      } catch (error) {
        throw diskFault(error, "read", path);
      }
      return bytes.subarray(0, done);
    },
    cut(to) {
      try {
        ftruncateSync(descriptor, to);
        size = to;
      } catch (error) {
        throw diskFault(error, "write", path);
      }
    },
    close: () => closeSync(descriptor),
  };
}

/** A few bytes at the start of a private file, written over each time and never waited for. */
export interface Mark {
  read(most: number): Uint8Array;
  write(bytes: Uint8Array): void;
  close(): void;
}

export function openMark(path: string): Mark {
  const descriptor = openPrivate(path, constants.O_RDWR | constants.O_CREAT);
  return {
    read(most) {
      const bytes = new Uint8Array(most);
      return bytes.subarray(0, readSync(descriptor, bytes, 0, most, 0));
    },
    write(bytes) {
      try {
        writeSync(descriptor, bytes, 0, bytes.length, 0);
      } catch (error) {
        throw diskFault(error, "write", path);
      }
    },
    close: () => closeSync(descriptor),
  };
}

/** Writes a file anew so that after a power cut either the old or the whole new one stands there. */
export async function replaceDurably(path: string, parts: Iterable<Uint8Array>): Promise<void> {
  const temporary = `${path}.new`;
  try {
    removeFile(temporary);
    const file = openDurable(temporary);
    try {
      for (const part of parts) file.append(part);
      await file.sync();
    } finally {
      file.close();
    }
    renameSync(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    removeFile(temporary);
    throw diskFault(error, "write", path);
  }
}

/** Gives a file that is on the disk its name; resolves when that would survive a power cut. */
export async function renameDurably(from: string, to: string): Promise<void> {
  try {
    renameSync(from, to);
    await syncFolder(dirname(to));
  } catch (error) {
    throw diskFault(error, "write", to);
  }
}

/** Resolves when the names in a folder would survive a power cut. */
export function syncFolder(folder: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
    fsync(descriptor, (error) => {
      closeSync(descriptor);
      // Some network file systems know no fsync of a folder and need none.
      if (error && error.code !== "EINVAL") reject(diskFault(error, "write", folder));
      else resolve();
    });
  });
}

/**
 * Makes a folder for our eyes only (0700), or looks whether the one there is: ours, and written by nobody else.
 * One that others may only read is closed to them. Throws a GateError that names the path and the remedy.
 */
export function privateFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const stat = lstatSync(path);
    const linked = stat.isSymbolicLink() ? statSync(path) : stat;
    if (!linked.isDirectory()) throw Object.assign(new Error(), { code: "ENOTDIR" });
    const uid = process.getuid?.() ?? 0;
    if (linked.uid !== uid)
      throw refused(
        path,
        `belongs to user ${linked.uid}, the daemon runs as ${uid}`,
        `Run chown ${uid} on it, or name another folder with --state`,
      );
    if ((linked.mode & 0o022) !== 0)
      throw refused(
        path,
        "can be written by others",
        `Run chmod 700 ${path}, or name another folder with --state`,
      );
    if ((linked.mode & 0o777) !== 0o700) chmodFolder(path);
  } catch (error) {
    throw diskFault(error, "use the folder", path);
  }
}

/** Names in a folder, sorted; none where there is no folder. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
}

/** Bytes of a file; 0 where there is none. */
export function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Removes a file; one that is gone already is fine. Never throws. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // gone already, or in nobody's way
  }
}

function openPrivate(path: string, flags: number): number {
  try {
    const descriptor = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600);
    const stat = fstatSync(descriptor);
    const uid = process.getuid?.() ?? 0;
    if (!stat.isFile() || stat.uid !== uid || (stat.mode & 0o022) !== 0) {
      closeSync(descriptor);
      throw refused(path, "is not a file of the daemon's user alone", "Move it away");
    }
    return descriptor;
  } catch (error) {
    throw diskFault(error, "open", path);
  }
}

function cutQuietly(descriptor: number, size: number): void {
  try {
    ftruncateSync(descriptor, size);
  } catch {
    // The next append writes over it.
  }
}

function chmodFolder(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fchmodSync(descriptor, 0o700);
  } finally {
    closeSync(descriptor);
  }
}

function refused(path: string, why: string, hint: string): GateError {
  return new GateError("settings-invalid", `${path} ${why}`, hint);
}
