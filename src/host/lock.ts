import { closeSync, constants, openSync, readFileSync, writeFileSync } from "node:fs";
import { GateError } from "../lib/errors.ts";
import { diskFault } from "./disk-fault.ts";

/** A folder that is ours until `release`, or until this process is gone, however it goes. */
export interface Lock {
  release(): void;
}

/**
 * Locks a folder against every other process, also in another container or on another host of a shared file system.
 * What holds it is the kernel's record lock that SQLite takes on an empty database: it dies with the process, so a
 * killed owner is succeeded at once and a living one never. Throws a GateError when another process has it.
 * No other code may open the file `lock`: closing it anywhere in this process would give the lock away.
 */
export async function lockFolder(folder: string): Promise<Lock> {
  const path = `${folder}/lock`;
  const owner = `${folder}/owner`;
  if (ownFolders.has(folder)) throw taken(folder, owner);
  // Only the daemon needs it; every other command would load it.
  const { Database } = await import("bun:sqlite");
  let database: InstanceType<typeof Database> | null = null;
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600));
    database = new Database(path, { create: true, readwrite: true });
    database.run("PRAGMA busy_timeout=0");
    // Nothing is ever written: no journal beside it that a full disk could refuse.
    database.run("PRAGMA journal_mode=OFF");
    database.run("PRAGMA locking_mode=EXCLUSIVE");
    database.run("BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    const { code = "" } = error as { code?: string };
    if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED")) throw taken(folder, owner);
    if (code.startsWith("SQLITE_IOERR"))
      throw new GateError(
        "settings-invalid",
        `${path} cannot be locked: its file system knows no locks (${code})`,
        "Name a folder on a local disk with --state",
      );
    throw diskFault({ code: CODES[code] ?? code }, "open", path);
  }
  ownFolders.add(folder);
  try {
    writeFileSync(owner, `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // It only names us to whoever comes second.
  }
  const held = database;
  return {
    release() {
      try {
        held.run("ROLLBACK");
      } catch {
        // closing ends it as well
      }
      held.close();
      ownFolders.delete(folder);
    },
  };
}

/** Folders this process has locked: opening and closing their lock file once more would give them away. */
const ownFolders = new Set<string>();

const CODES: Readonly<Record<string, string>> = {
  SQLITE_CANTOPEN: "EACCES",
  SQLITE_READONLY: "EROFS",
  SQLITE_PERM: "EACCES",
  SQLITE_FULL: "ENOSPC",
};

function taken(folder: string, owner: string): GateError {
  return new GateError(
    "settings-invalid",
    `Another bridge daemon${ownerOf(owner)} uses ${folder}`,
    "End it first, or name another folder with --state",
  );
}

function ownerOf(path: string): string {
  try {
    const pid = readFileSync(path, "utf8").trim();
    return /^\d{1,10}$/.test(pid) ? ` (process ${pid})` : "";
  } catch {
    return "";
  }
}
