import { chmodSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { fail, ok, type Result } from "../lib/result.ts";
import { probeUnix, SOCKET_PATH_BYTES, takeAway } from "./socket.ts";

/** Why a socket cannot stand where it was asked for: what and where, and what to do. */
export interface SocketProblem {
  readonly message: string;
  readonly remedy: string;
}

/** Whether a socket's path fits what the system has for one. */
export function socketPathProblem(path: string): SocketProblem | null {
  const bytes = new TextEncoder().encode(path).length;
  if (bytes <= SOCKET_PATH_BYTES) return null;
  return {
    message: `the socket's path ${path} has ${bytes} bytes, and a unix socket's path (sun_path) has at most ${SOCKET_PATH_BYTES}`,
    remedy: "Name a shorter one, below /tmp or $XDG_RUNTIME_DIR for example.",
  };
}

/**
 * Makes a place for a socket: a folder that is ours alone (0700; made where it is missing), nothing at the path, or a
 * socket that provably nobody listens on, which is removed. `notice` tells what was changed.
 */
export async function prepareSocket(
  path: string,
  notice: (text: string) => void,
): Promise<Result<null, SocketProblem>> {
  const long = socketPathProblem(path);
  if (long !== null) return fail(long);
  const folder = dirname(path);
  const closed = closeFolder(folder, basename(path), notice);
  if (closed !== null) return fail(closed);
  switch (await probeUnix(path)) {
    case "none":
      return ok(null);
    case "dead":
      if (!(await takeAway(path))) return fail(aliveAt(path));
      notice(`took over ${path}, which a daemon that is gone had left`);
      return ok(null);
    case "alive":
      return fail(aliveAt(path));
    case "denied":
      return fail({
        message: `${path} belongs to someone else`,
        remedy: "Name a socket in a folder of your own.",
      });
    case "other":
      return fail({
        message: `${path} is there and is no socket`,
        remedy: "Remove it, or name another socket.",
      });
  }
}

function aliveAt(path: string): SocketProblem {
  return {
    message: `another daemon answers on ${path}`,
    remedy: "End it first, or name another socket.",
  };
}

function closeFolder(folder: string, name: string, notice: (text: string) => void): SocketProblem | null {
  const remedy = "Name a socket in a folder of your own that nobody else may enter (chmod 700).";
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = lstatSync(folder);
    if (!stat.isDirectory()) return { message: `${folder} is no folder`, remedy };
    if (stat.uid !== (process.getuid?.() ?? 0))
      return { message: `the socket's folder ${folder} belongs to another user`, remedy };
    if ((stat.mode & 0o077) === 0) return null;
    // A folder that holds nothing but the socket is the socket's own; any other is not ours to close.
    if (readdirSync(folder).every((one) => one === name || /^\.[0-9a-f]{0,12}$/.test(one))) {
      chmodSync(folder, 0o700);
      notice(`closed ${folder} to other users (0700)`);
      return null;
    }
    const mode = (stat.mode & 0o7777).toString(8).padStart(4, "0");
    if ((stat.mode & 0o022) === 0) {
      notice(`others may look into ${folder} (${mode}), but not connect: the socket is 0600`);
      return null;
    }
    return { message: `others may write in the socket's folder ${folder} (${mode})`, remedy };
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error);
    return { message: `the socket's folder ${folder} cannot be used: ${code}`, remedy };
  }
}
