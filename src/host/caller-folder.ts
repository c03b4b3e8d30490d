import {
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fail, ok, type Result } from "../lib/result.ts";
import { removeQuietly } from "./remove.ts";

/** A file that appears below a folder once all of it is there and its digest is right. */
export interface FileBelow {
  /** Why it could not be done, or null. */
  write(bytes: Uint8Array): string | null;
  end(size: number, sha256: string): string | null;
  drop(): void;
}

/**
 * Begins a file at `path`, relative and plain, below `folder`, which is made where it is missing. A link on the way
 * below the folder is never followed: where one stands, or a file in place of a folder, the reason is returned. What a
 * killed call left of the same file is written over.
 */
export function beginFileBelow(folder: string, path: string): Result<FileBelow, string> {
  const parts = path.split("/");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    let at = folder;
    for (const part of parts.slice(0, -1)) {
      at = join(at, part);
      const stat = lstatSync(at, { throwIfNoEntry: false });
      if (stat === undefined) mkdirSync(at, { mode: 0o700 });
      else if (!stat.isDirectory())
        return fail(`${at} is ${stat.isSymbolicLink() ? "a link, which is not followed" : "no folder"}`);
    }
    const to = join(at, parts.at(-1)!);
    const temporary = join(
      at,
      `.${new Bun.CryptoHasher("sha256").update(path).digest("hex").slice(0, 16)}.part`,
    );
    removeQuietly(temporary);
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    return ok(writing(openSync(temporary, flags, 0o600), temporary, to));
  } catch (error) {
    return fail(codeOf(error));
  }
}

function writing(descriptor: number, temporary: string, to: string): FileBelow {
  const digest = new Bun.CryptoHasher("sha256");
  let size = 0;
  let open = true;
  const drop = () => {
    if (open) closeSync(descriptor);
    open = false;
    removeQuietly(temporary);
  };
  const tried = (work: () => void): string | null => {
    try {
      work();
      return null;
    } catch (error) {
      drop();
      return codeOf(error);
    }
  };
  return {
    drop,
    write: (bytes) =>
      tried(() => {
        for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
        digest.update(bytes);
        size += bytes.length;
      }),
    end(wantedSize, sha256) {
      if (size !== wantedSize || digest.digest("hex") !== sha256) {
        drop();
        return "it did not arrive whole";
      }
      return tried(() => {
        fsyncSync(descriptor);
        closeSync(descriptor);
        open = false;
        if (lstatSync(to, { throwIfNoEntry: false })?.isDirectory() === true)
          throw Object.assign(new Error(), { code: `${basename(to)} is a folder` });
        renameSync(temporary, to);
        const folder = openSync(dirname(to), "r");
        try {
          fsyncSync(folder);
        } finally {
          closeSync(folder);
        }
      });
    },
  };
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}
