import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { removeQuietly } from "./remove.ts";

/** SHA-256 of a text's UTF-8, or of bytes, in hex: a file name that any key fits in. */
export function digest(text: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** SHA-256 of a text in base64, as a page's policy names what it lets in. */
export function sha256Base64(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64");
}

/**
 * Reads a file that only we may have written: a regular file of our own, not a link, which nobody else may
 * write. Anything else, and any failure, is null.
 */
export function readPrivateFile(path: string, maxBytes: number): string | null {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.uid !== ownUid() || (stat.mode & 0o022) !== 0 || stat.size > maxBytes)
      return null;
    const bytes = new Uint8Array(stat.size);
    const length = readSync(descriptor, bytes, 0, bytes.length, 0);
    return new TextDecoder().decode(bytes.subarray(0, length));
  } catch {
    return null;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** Whether what a folder would be made in belongs to us: under sudo a home can be someone else's. */
function isOursToMake(folder: string): boolean {
  for (let at = folder; ; at = dirname(at)) {
    const stat = lstatSync(at, { throwIfNoEntry: false });
    if (stat !== undefined) return stat.uid === ownUid();
    if (at === dirname(at)) return false;
  }
}

/**
 * Writes `name` in `folder` so that a reader sees all of it or nothing (a rename), for our eyes only (0600 in
 * 0700). False when the folder is not ours or nothing can be written there; never throws.
 */
export function writePrivateFile(folder: string, name: string, text: string): boolean {
  let temporary: string | null = null;
  try {
    if (!isOursToMake(folder)) return false;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = lstatSync(folder);
    if (!stat.isDirectory() || stat.uid !== ownUid() || (stat.mode & 0o022) !== 0) return false;
    temporary = join(folder, `.${name}.${process.pid}.${Math.random().toString(36).slice(2)}`);
    writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
    renameSync(temporary, join(folder, name));
    return true;
  } catch {
    if (temporary !== null) removeQuietly(temporary);
    return false;
  }
}

/** Leaves the `most` newest files of a prefix in a folder of ours. Never throws: what stays is only in the way. */
export function pruneFiles(folder: string, prefix: string, most: number): void {
  try {
    const names = readdirSync(folder).filter((name) => name.startsWith(prefix));
    if (names.length <= most) return;
    const aged = names.map((name) => ({ name, mtimeMs: lstatSync(join(folder, name)).mtimeMs }));
    aged.sort((a, b) => b.mtimeMs - a.mtimeMs);
    for (const { name } of aged.slice(most)) removeQuietly(join(folder, name));
  } catch {
    // another process prunes as well
  }
}

/** Gives `use` a private file with `text` in it, in a folder of its own that is gone afterwards. */
export async function withPrivateFile<T>(
  name: string,
  text: string,
  use: (path: string) => Promise<T>,
): Promise<T> {
  // Only an external CLI needs it; every submit that reads our cache would load it.
  const { tmpdir } = await import("node:os");
  const folder = mkdtempSync(join(tmpdir(), "neurarch-gate-"));
  try {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600, flag: "wx" });
    return await use(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
