import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
} from "node:fs";

/** What stands under a name. `special` = a pipe, a socket, a device. */
export type NodeKind = "folder" | "file" | "link" | "special";

export interface FileStat {
  readonly bytes: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly inode: number;
  readonly device: number;
  /** Permission bits. */
  readonly mode: number;
}

/** A folder tree that someone else may be changing. What is gone, or no longer what it was, is null everywhere. */
export interface Tree {
  list(folder: string): readonly { readonly name: string; readonly kind: NodeKind }[] | null;
  stat(path: string): FileStat | null;
  linkTarget(path: string): string | null;
  /** A descriptor of a regular file, never through a link and never waiting for a pipe. */
  open(path: string): number | null;
  close(): void;
}

/** Something in a tree that is there and cannot be read. */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";

  constructor(
    /** Within the tree; empty = its root. */
    readonly path: string,
    readonly code: string,
  ) {
    super(`${path}: ${code}`);
  }
}

/** Folder descriptors that are kept open. */
const MOST_FOLDERS = 200;

/**
 * Opens a tree by its root. Every folder is opened through its parent's descriptor and not through a link, so that
 * one that is swapped for a link meanwhile leads nowhere. It and all that it gives throw an `UnreadableError`.
 */
export function openTree(root: string): Tree {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY;
  const rootDescriptor = named("", () => openSync(root, flags));
  const byDescriptor = existsSync("/proc/self/fd");
  const folders = new Map<string, number>();

  /** A path that the system resolves from an open folder. */
  const at = (folder: string, name: string): string | null => {
    if (!byDescriptor) return `${root}/${folder}${folder === "" ? "" : "/"}${name}`;
    const descriptor = folder === "" ? rootDescriptor : descriptorOf(folder);
    return descriptor === null ? null : `/proc/self/fd/${descriptor}/${name}`;
  };
  const descriptorOf = (folder: string): number | null => {
    const known = folders.get(folder);
    if (known !== undefined) return known;
    const { parent, name } = split(folder);
    const path = at(parent, name);
    if (path === null) return null;
    const descriptor = named(folder, () => orNull(() => openSync(path, flags | constants.O_NOFOLLOW)));
    if (descriptor === null) return null;
    if (folders.size >= MOST_FOLDERS) {
      const [oldest, its] = folders.entries().next().value as [string, number];
      folders.delete(oldest);
      closeSync(its);
    }
    folders.set(folder, descriptor);
    return descriptor;
  };
  const through = <T>(path: string, use: (at: string) => T): T | null => {
    const { parent, name } = split(path);
    const full = at(parent, name);
    return full === null ? null : named(path, () => orNull(() => use(full)));
  };
  return {
    list(folder) {
      const path = at(folder, ".");
      if (path === null) return null;
      return named(folder, () =>
        orNull(() =>
          readdirSync(path, { withFileTypes: true }).map((entry) => ({
            name: entry.name,
            kind: entry.isFile()
              ? "file"
              : entry.isDirectory()
                ? "folder"
                : entry.isSymbolicLink()
                  ? "link"
                  : kindOf(`${path}/${entry.name}`),
          })),
        ),
      );
    },
    stat: (path) => through(path, (full) => plainStat(lstatSync(full))),
    linkTarget: (path) => through(path, (full) => readlinkSync(full)),
    open: (path) =>
      through(path, (full) =>
        openSync(full, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY),
      ),
    close() {
      for (const descriptor of folders.values()) closeSync(descriptor);
      folders.clear();
      closeSync(rootDescriptor);
    },
  };
}

/** A path without links in it; throws what the system says where it is missing. */
export function realPath(path: string): string {
  return realpathSync(path);
}

/** The target of a link anywhere; null for anything else. */
export function targetOf(path: string): string | null {
  return orNull(() => readlinkSync(path));
}

interface Stats {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly ino: number;
  readonly dev: number;
  readonly mode: number;
}

export function plainStat(stat: Stats): FileStat {
  const { size, mtimeMs, ctimeMs, ino, dev, mode } = stat;
  return { bytes: size, mtimeMs, ctimeMs, inode: ino, device: dev, mode: mode & 0o777 };
}

/** What a file system that gives no kinds with its names has to be asked for. */
function kindOf(path: string): NodeKind {
  const stat = orNull(() => lstatSync(path));
  if (stat?.isFile()) return "file";
  if (stat?.isDirectory()) return "folder";
  return stat?.isSymbolicLink() ? "link" : "special";
}

function split(path: string): { readonly parent: string; readonly name: string } {
  const slash = path.lastIndexOf("/");
  return slash === -1
    ? { parent: "", name: path }
    : { parent: path.slice(0, slash), name: path.slice(slash + 1) };
}

/** What the system says of a path of the tree, with that path. */
function named<T>(path: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof UnreadableError) throw error;
    throw new UnreadableError(path, (error as { code?: string }).code ?? String(error));
  }
}

/** Null where it is gone or is something else by now; any other failure is the disk's and thrown. */
function orNull<T>(ask: () => T): T | null {
  try {
    return ask();
  } catch (error) {
    const { code = "" } = error as { code?: string };
    if (["ENOENT", "ENOTDIR", "ELOOP", "EINVAL", "ENXIO", "ESTALE"].includes(code)) return null;
    throw error;
  }
}
