import { chmodSync, linkSync, lstatSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { GateError } from "../lib/errors.ts";
import { handlers, type LineSocket, Wired } from "./line-socket.ts";
import { removeQuietly } from "./remove.ts";
import { boundPrefix, isListening } from "./unix-listeners.ts";

/** Longest path that a unix socket can have (`sun_path` of unix(7) without its NUL). */
export const SOCKET_PATH_BYTES = 107;

/**
 * Listens on a unix socket that only this user may connect to (0600). The path must be free and short enough.
 * Throws what the system says.
 */
export function listenUnix(path: string, onConnection: (socket: LineSocket) => void): { stop(): void } {
  const before = process.umask(0o077);
  // Listening removes whatever has the name, so it begins under another one; the wanted one is taken only where it is free.
  const first = freeName(path);
  try {
    const server = Bun.listen<Wired>({
      unix: first,
      // A client may close its writing side behind its request and still reads.
      allowHalfOpen: true,
      socket: {
        ...handlers,
        open: (socket) => {
          socket.data = new Wired();
          socket.data.native = socket;
          onConnection(socket.data);
        },
      },
    });
    chmodSync(first, 0o600);
    try {
      linkSync(first, path);
    } catch (error) {
      server.stop(true);
      if ((error as { code?: string }).code !== "EEXIST") throw error;
      throw new GateError(
        "settings-invalid",
        `another daemon took ${path} in this moment`,
        "End it first, or name another socket.",
      );
    } finally {
      removeQuietly(first);
    }
    const own = lstatSync(path).ino;
    return {
      stop: () => {
        // Whoever put another socket there keeps it.
        const there = lstatSync(path, { throwIfNoEntry: false });
        server.stop(false);
        if (there?.isSocket() === true && there.ino === own) removeQuietly(path);
      },
    };
  } finally {
    process.umask(before);
  }
}

/** A name beside `path` that nobody has, and that is no longer than a socket's may be. */
function freeName(path: string): string {
  const folder = dirname(path);
  const room = SOCKET_PATH_BYTES - Buffer.byteLength(folder) - 1;
  for (;;) {
    const digits = crypto.randomUUID().replaceAll("-", "");
    const name = room > 8 ? `${boundPrefix(path)}${digits}` : digits;
    const free = join(folder, name.slice(0, Math.max(1, Math.min(room, 15))));
    if (lstatSync(free, { throwIfNoEntry: false }) === undefined) return free;
  }
}

/** Connects to a unix socket; rejects with the system's error. */
export async function connectUnix(path: string): Promise<LineSocket> {
  const wired = new Wired();
  const socket = await Bun.connect<Wired>({
    unix: path,
    data: wired,
    allowHalfOpen: true,
    socket: { ...handlers, open: () => {} },
  });
  wired.native = socket;
  return wired;
}

/**
 * Whether somebody answers on a socket: `none` = nothing there, `other` = something that is no socket. `named` is the path
 * that it was made for, where it was put aside.
 */
export async function probeUnix(
  path: string,
  named: string = path,
): Promise<"none" | "other" | "alive" | "dead" | "denied"> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "none";
  if (!stat.isSocket()) return "other";
  try {
    const socket = await connectUnix(path);
    socket.destroy();
    return "alive";
  } catch (error) {
    const code = (error as { code?: string }).code;
    // Only a refusal proves that nobody listens. Bun tells a full queue (EAGAIN) as one too: the system knows who listens.
    if (code === "ECONNREFUSED") return isListening(named) ? "alive" : "dead";
    return code === "ENOENT" ? "none" : code === "EACCES" || code === "EPERM" ? "denied" : "alive";
  }
}

/**
 * Takes a socket away that was found dead. Between the look and this another daemon may have put its own there: what was
 * taken is looked at once more, and put back where it lives. False then.
 */
export async function takeAway(path: string): Promise<boolean> {
  const aside = freeName(path);
  try {
    renameSync(path, aside);
  } catch (error) {
    return (error as { code?: string }).code === "ENOENT";
  }
  const isDead = (await probeUnix(aside, path)) === "dead";
  try {
    if (!isDead) linkSync(aside, path);
  } catch {
    // A third one has the name by now.
  }
  removeQuietly(aside);
  return isDead;
}
