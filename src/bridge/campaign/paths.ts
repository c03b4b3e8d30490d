/**
 * An absolute path without `.`, `..` and doubled slashes. A relative one starts at `base` (absolute), `~/` at `home`.
 * Links are not looked at.
 */
export function absolutePath(path: string, base: string, home: string | undefined): string {
  const whole =
    home !== undefined && (path === "~" || path.startsWith("~/"))
      ? `${home}/${path.slice(2)}`
      : path.startsWith("/")
        ? path
        : `${base}/${path}`;
  const parts: string[] = [];
  for (const part of whole.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return `/${parts.join("/")}`;
}

/** The folder of a path. */
export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** The last name of a path; empty for `/`. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Most bytes of a unix socket's path: `sun_path` holds 108 with its final zero (unix(7)). */
export const MAX_SOCKET_PATH_BYTES = 107;
