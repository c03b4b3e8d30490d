import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** Why a record could not be written; `foreign` = the file there is not ours. */
export type AppendProblem = "folder" | "foreign" | "io";

/** When a file has grown enough to be put aside. */
export interface Rotation {
  /** Before a line would make it longer. */
  readonly maxBytes: number;
  /** Once its first line is older; null = however old. */
  readonly maxAgeMs: number | null;
  /** Files that were put aside and not written for so long are removed; null = all are kept. */
  readonly keepMs: number | null;
}

/** How far back a line that was just written is looked for. */
const TAIL_BYTES = 16_384;
/** Largest account file that is searched for a name. */
const MAX_PASSWD_BYTES = 4_000_000;

/**
 * Appends one line (with its line end) to `name` in `folder`, in a single write, so that lines of many writers never
 * mix: O_APPEND puts each behind the others. A line that an earlier writer left half-written is ended first.
 * The folder is made (0700) where its parent is ours; one that others may write needs the sticky bit, as /tmp has.
 * The file has to be a regular one of our own with one name, and nobody else may write it. Never throws, never waits.
 */
export function appendLine(
  folder: string,
  name: string,
  line: string,
  rotation: Rotation | null = null,
): AppendProblem | null {
  let descriptor: number | null = null;
  try {
    const mode = usableFolder(folder);
    if (mode === null) return "folder";
    const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
    // A folder that hands its group down is one whose group reads the ledger.
    const fileMode = (mode & 0o2000) === 0 ? 0o600 : 0o640;
    try {
      descriptor = openSync(
        join(folder, name),
        flags | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY,
        fileMode,
      );
    } catch (error) {
      const { code } = error as { code?: string };
      return ["EACCES", "EPERM", "ELOOP", "EISDIR", "ENXIO"].includes(code ?? "") ? "foreign" : "io";
    }
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.uid !== ownUid() || stat.nlink !== 1 || (stat.mode & 0o022) !== 0)
      return "foreign";
    // The umask of the user who submits is not the site's word on who reads its ledger.
    if (stat.size === 0 && (stat.mode & 0o777) !== fileMode) fchmodSync(descriptor, fileMode);
    if (rotation !== null && isDue(descriptor, stat.size, line, rotation)) {
      const { putAside } = require("./rotate.ts") as typeof import("./rotate.ts");
      // What is written between our look and the renaming is in the file all the same, under its new name.
      if (putAside(folder, name, stat, rotation)) return appendLine(folder, name, line);
    }
    const ended = endsLine(descriptor, stat.size);
    if (!written(descriptor, ended ? line : `\n${line}`)) return "io";
    // A writer that was killed since we looked may have left us half a line to stand behind.
    return standsAlone(descriptor, line) || written(descriptor, `\n${line}`) ? null : "io";
  } catch {
    return "io";
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** Where the first line of a ledger says when it was written. */
const FIRST_TIME = /"time":"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/;

function isDue(descriptor: number, size: number, line: string, { maxBytes, maxAgeMs }: Rotation): boolean {
  if (size === 0) return false;
  // No character has more than three bytes here: a line is counted in full only where it may matter.
  if (size + line.length * 3 > maxBytes && size + Buffer.byteLength(line) > maxBytes) return true;
  if (maxAgeMs === null) return false;
  const head = Buffer.alloc(Math.min(size, 256));
  const text = head.toString("latin1", 0, readSync(descriptor, head, 0, head.length, 0));
  const first = Date.parse(FIRST_TIME.exec(text)?.[1] ?? "");
  return Date.now() - first > maxAgeMs;
}

function written(descriptor: number, text: string): boolean {
  const bytes = new TextEncoder().encode(text);
  return writeSync(descriptor, bytes) === bytes.length;
}

/** Whether a line that was just written begins a line; true where others have written so much that it is not found. */
function standsAlone(descriptor: number, line: string): boolean {
  const { size } = fstatSync(descriptor);
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
  const length = readSync(descriptor, tail, 0, tail.length, size - tail.length);
  const at = tail.subarray(0, length).lastIndexOf(line);
  return at > 0 ? tail[at - 1] === 0x0a : at === -1 || size === tail.length;
}

function endsLine(descriptor: number, size: number): boolean {
  if (size === 0) return true;
  const last = new Uint8Array(1);
  return readSync(descriptor, last, 0, 1, size - 1) === 1 && last[0] === 0x0a;
}

/** Permission bits of a folder that files may be put into, made where it is missing; null where they may not. */
function usableFolder(folder: string): number | null {
  const there = statSync(folder, { throwIfNoEntry: false });
  if (there === undefined) {
    const parent = statSync(dirname(folder), { throwIfNoEntry: false });
    if (parent === undefined || parent.uid !== ownUid()) return null;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return usableFolder(folder);
  }
  const closed = (there.mode & 0o022) === 0 || (there.mode & 0o1000) !== 0;
  return there.isDirectory() && closed ? there.mode : null;
}

/**
 * The text of `name` in `folder`, which all writers share; the first one writes `text` there. It appears whole or not
 * at all. Null where neither can be done.
 */
export function sharedText(folder: string, name: string, text: string): string | null {
  const path = join(folder, name);
  const temporary = join(folder, `.${name}.${process.pid}.${Math.random().toString(36).slice(2)}`);
  try {
    const known = regularText(path);
    if (known !== null) return known;
    if (usableFolder(folder) === null) return null;
    writeFileSync(temporary, text, { mode: 0o644, flag: "wx" });
    // All writers have to read it, whatever the umask of the first one.
    chmodSync(temporary, 0o644);
    try {
      linkSync(temporary, path);
    } catch {
      // another writer was first
    } finally {
      unlinkSync(temporary);
    }
    return regularText(path);
  } catch {
    return null;
  }
}

function regularText(path: string): string | null {
  let descriptor: number | null = null;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile() || stat.size === 0 || stat.size > 4096) return null;
    const bytes = new Uint8Array(stat.size);
    return new TextDecoder().decode(bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, 0)));
  } catch {
    return null;
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

/** Random letters that nobody guesses. */
export function randomText(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("hex");
}

/** Who runs us: the account file's name of our number, else what the environment says, else the number. */
export function ownName(env: Readonly<Record<string, string | undefined>>): string {
  return accountName(ownUid()) ?? (env.USER || env.LOGNAME || `uid${ownUid()}`);
}

/** A name of our own that no environment can change. */
export function ownNumber(): string {
  return `uid${ownUid()}`;
}

function accountName(uid: number): string | null {
  return accountField(new RegExp(`^([^:\\n]+):[^:\\n]*:${uid}:`, "m"));
}

/** The number of an account of this host's own file; null for one that is not there. */
export function accountUid(name: string): number | null {
  if (!/^[A-Za-z0-9._-]+$/.test(name)) return null;
  const uid = accountField(new RegExp(`^${name.replaceAll(".", "\\.")}:[^:\\n]*:(\\d+):`, "m"));
  return uid === null ? null : Number(uid);
}

function accountField(pattern: RegExp): string | null {
  try {
    const descriptor = openSync("/etc/passwd", constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(descriptor);
      if (!stat.isFile() || stat.size > MAX_PASSWD_BYTES) return null;
      const bytes = new Uint8Array(stat.size);
      const text = new TextDecoder().decode(
        bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, 0)),
      );
      return pattern.exec(text)?.[1] ?? null;
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return null;
  }
}

/** This host's name. */
export function hostName(): string {
  try {
    const descriptor = openSync("/proc/sys/kernel/hostname", constants.O_RDONLY);
    try {
      const bytes = new Uint8Array(256);
      return new TextDecoder()
        .decode(bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, null)))
        .trim();
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return "unknown";
  }
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
