import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { type FileStat, plainStat, type Tree } from "./tree.ts";

/** SHA-256 in lower-case hex. */
export function sha256(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** A SHA-256 that is fed piece by piece. */
export interface RunningDigest {
  update(bytes: Uint8Array): void;
  hex(): string;
}

export function startDigest(): RunningDigest {
  const hasher = new Bun.CryptoHasher("sha256");
  return {
    update: (bytes) => void hasher.update(bytes),
    hex: () => hasher.digest("hex"),
  };
}

/** Lets whatever else waits have its turn. */
export function yieldTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Tells one start of the machine from another. */
export function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "unknown";
  }
}

export type Copied =
  /** `bytes` hold what was copied, until the next call, where the file was small enough; else it is read again. */
  | {
      readonly kind: "copied";
      readonly stat: FileStat;
      readonly steady: boolean;
      readonly bytes: Uint8Array | null;
    }
  /** `look` wanted it left out. */
  | { readonly kind: "left-out"; readonly stat: FileStat; readonly reason: string }
  /** Vanished or became something else since it was listed. */
  | { readonly kind: "gone" };

export interface CopyOptions {
  /** Why a file that starts so is not to be copied. */
  readonly look: (head: Uint8Array) => string | null;
  /** The time of last change that the copy shall have. */
  readonly mtimeMs: (stat: FileStat) => number;
}

/** Bytes that are read and written at once; a file up to this size is held whole for a moment. */
const PIECE_BYTES = 1_048_576;
/** How often a file that changes while it is read is read again. */
const MOST_TRIES = 3;
const piece = { buffer: null as Uint8Array | null };

/**
 * Copies a file of a tree to `to`, which must not be there. What it reads is what stood there while the file did not
 * change, unless it never stops changing: then `steady` is false. Throws what the disk says.
 */
export async function copyFile(tree: Tree, path: string, to: string, options: CopyOptions): Promise<Copied> {
  const from = tree.open(path);
  if (from === null) return { kind: "gone" };
  try {
    const buffer = pieceBuffer();
    let before = fstatSync(from);
    if (!before.isFile()) return { kind: "gone" };
    for (let tries = 1; ; tries++) {
      const length = readPiece(from, buffer, 0);
      const head = buffer.subarray(0, length);
      const reason = options.look(head);
      if (reason !== null) return { kind: "left-out", stat: plainStat(before), reason };
      const small = length < PIECE_BYTES;
      if (!small) await copyPieces(from, to, before.mode, tries > 1);
      const after = fstatSync(from);
      const steady = same(before, after) && (!small || length === after.size);
      if (!steady && tries < MOST_TRIES) {
        before = after;
        continue;
      }
      const stat = plainStat(steady ? before : after);
      // An earlier try may have begun it as a large one.
      if (small && tries > 1) rmSync(to, { force: true });
      if (small) writeSmall(to, head, stat, options.mtimeMs(stat));
      else finish(to, stat, options.mtimeMs(stat));
      return { kind: "copied", stat, steady, bytes: small ? head : null };
    }
  } finally {
    closeSync(from);
  }
}

/** Feeds a file's content into `update`, and says how much it was. Yields while a large one is read. */
export async function feedFile(path: string, update: (bytes: Uint8Array) => void): Promise<number> {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const buffer = pieceBuffer();
    for (let at = 0; ; ) {
      const length = readPiece(descriptor, buffer, at);
      update(buffer.subarray(0, length));
      at += length;
      if (length < buffer.length) return at;
      await yieldTurn();
    }
  } finally {
    closeSync(descriptor);
  }
}

function writeSmall(to: string, bytes: Uint8Array, stat: FileStat, mtimeMs: number): void {
  const mode = stat.mode | 0o600;
  const descriptor = openSync(to, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode);
  try {
    writeAll(descriptor, bytes, 0);
    if ((mode & umask()) !== 0) fchmodSync(descriptor, mode);
    futimesSync(descriptor, mtimeMs / 1000, mtimeMs / 1000);
  } finally {
    closeSync(descriptor);
  }
}

async function copyPieces(from: number, to: string, mode: number, again: boolean): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | (again ? 0 : constants.O_EXCL);
  const descriptor = openSync(to, flags, (mode & 0o777) | 0o600);
  try {
    if (again) ftruncateSync(descriptor, 0);
    const buffer = pieceBuffer();
    for (let at = 0; ; ) {
      const length = readPiece(from, buffer, at);
      writeAll(descriptor, buffer.subarray(0, length), at);
      at += length;
      if (length < buffer.length) return;
      await yieldTurn();
    }
  } finally {
    closeSync(descriptor);
  }
}

function finish(path: string, stat: FileStat, mtimeMs: number): void {
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW);
  try {
    fchmodSync(descriptor, stat.mode | 0o600);
    futimesSync(descriptor, mtimeMs / 1000, mtimeMs / 1000);
  } finally {
    closeSync(descriptor);
  }
}

function readPiece(descriptor: number, buffer: Uint8Array, at: number): number {
  let length = 0;
  while (length < buffer.length) {
    const got = readSync(descriptor, buffer, length, buffer.length - length, at + length);
    if (got === 0) break;
    length += got;
  }
  return length;
}

function writeAll(descriptor: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, at + done);
}

function same(a: { size: number; mtimeMs: number; ctimeMs: number }, b: typeof a): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs;
}

function pieceBuffer(): Uint8Array {
  piece.buffer ??= new Uint8Array(PIECE_BYTES);
  return piece.buffer;
}

/** What the process takes away from the modes of new files; asked once. */
function umask(): number {
  known.umask ??= process.umask();
  return known.umask;
}

const known: { umask: number | null } = { umask: null };
