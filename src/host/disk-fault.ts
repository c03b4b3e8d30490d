import { GateError } from "../lib/errors.ts";

/** A refusal of the disk as one line with its path, and what to do about it. */
export function diskFault(error: unknown, doing: string, path: string): GateError {
  if (error instanceof GateError) return error;
  const { code, message } = error as { code?: string; message?: string };
  const [why, hint] = (code !== undefined ? FAULTS[code] : undefined) ?? [
    code ?? String(message ?? error),
    "Look at the disk and its messages",
  ];
  return new GateError("settings-invalid", `Cannot ${doing} ${path}: ${why}`, hint);
}

const MAKE_ROOM = "Make room there, or name another folder with --state";
const ANOTHER = "Give it to the daemon's user, or name another folder with --state";

const FAULTS: Readonly<Record<string, readonly [string, string]>> = {
  ENOSPC: ["the disk is full", MAKE_ROOM],
  EDQUOT: ["the quota is used up", MAKE_ROOM],
  EROFS: ["the file system is read-only", "Name another folder with --state"],
  EACCES: ["not allowed", ANOTHER],
  EPERM: ["not allowed", ANOTHER],
  ENOTDIR: ["a part of the path is no folder", "Name another folder with --state"],
  ELOOP: ["it is a link", "Remove the link, or name another folder with --state"],
  EISDIR: ["it is a folder", "Move it away, or name another folder with --state"],
  EIO: ["the disk fails", "Name a folder on another disk with --state"],
  ENOENT: ["it is gone", "Leave the state folder alone while the daemon runs"],
  EMFILE: ["too many open files", "Raise the limit with ulimit -n"],
};
