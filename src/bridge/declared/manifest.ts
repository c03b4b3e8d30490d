import type { Declared, DeclaredFile, LeftOutFile } from "../types.ts";
import { decodeBase64 } from "../wire/base64.ts";
import { isDeclared, isPlainPath } from "./globs.ts";

/** A file that came in the log itself. */
export interface SentFile extends DeclaredFile {
  readonly bytes: Uint8Array;
}

/** A file that lies below the cluster's persistent folder, under its number in the attempt's own one. */
export interface StoredFile extends DeclaredFile {
  readonly number: number;
}

/** What a job said of the files it was to return. */
export interface Manifest {
  readonly sent: readonly SentFile[];
  readonly stored: readonly StoredFile[];
  readonly leftOut: readonly LeftOutFile[];
  /** Further ones that are not named. */
  readonly more: number;
}

const REASONS: Readonly<Record<string, string>> = {
  link: "it is a link, or lies behind one",
  unreadable: "it cannot be read",
  count: "it is beyond the most files of the call",
  bytes: "with it the files have more than the most bytes of the call",
  "no-root":
    "it does not fit into the 512 KiB that come with the log, and the profile names no remote_artifact_root",
  "not-stored": "it could not be copied below the profile's remote_artifact_root",
};

/** Why a file is left out that did not come as it was. */
export const NOT_WHOLE = "it did not arrive whole";
/** Why nothing of them is known: the block that a job prints did not come. */
const NO_TOOLS = "the cluster lacks GNU find, sha256sum or base64";

/**
 * Reads the block between the markers (`afterLines`). A file's path must be plain and one that was asked for: the job
 * ran the candidate's code, so its word is not taken. `text` null = the block did not come; `sha256`: of bytes.
 */
export function readManifest(
  text: string | null,
  declared: Declared,
  sha256: (bytes: Uint8Array) => string,
): Manifest {
  const sent: SentFile[] = [];
  const stored: StoredFile[] = [];
  const leftOut: LeftOutFile[] = [];
  let more = 0;
  if (text === null) return { sent, stored, leftOut: [everything("what it wrote is not known")], more };
  const seen = new Set<string>();
  const lines = text.split("\n");
  let bytes = 0;
  /** The path of an entry, or null where the entry is not to be believed. */
  const accepted = (name: string, size: number): string | null => {
    const path = pathOf(name);
    if (path === null || !isPlainPath(path)) {
      leftOut.push({ path: shownName(name), reason: "its name has a control character, or leads elsewhere" });
      return null;
    }
    if (!isDeclared(path, declared.globs) || seen.has(path)) {
      leftOut.push({ path, reason: seen.has(path) ? "it was named twice" : "nobody asked for it" });
      return null;
    }
    if (sent.length + stored.length >= declared.maxFiles || bytes + size > declared.maxBytes) {
      leftOut.push({ path, reason: "it is beyond the limits of the call" });
      return null;
    }
    seen.add(path);
    bytes += size;
    return path;
  };
  for (let at = 0; at < lines.length; at++) {
    const [kind, ...fields] = lines[at]!.split(" ");
    if (kind === "i") {
      const [size = "", digest = "", name = ""] = fields;
      let data = "";
      while (at + 1 < lines.length && !lines[at + 1]!.includes(" ")) data += lines[++at];
      const path = accepted(name, Number(size));
      if (path === null) continue;
      const content = decodeBase64(data);
      if (content === null || `${content.length}` !== size || sha256(content) !== digest)
        leftOut.push({ path, reason: NOT_WHOLE });
      else sent.push({ path, size: content.length, sha256: digest, bytes: content });
    } else if (kind === "r") {
      const [number = "", size = "", digest = "", name = ""] = fields;
      const path = accepted(name, Number(size));
      if (path === null) continue;
      if (!/^\d{1,4}$/.test(number) || !/^\d{1,10}$/.test(size) || !/^[0-9a-f]{64}$/.test(digest))
        leftOut.push({ path, reason: NOT_WHOLE });
      else stored.push({ path, size: Number(size), sha256: digest, number: Number(number) });
    } else if (kind === "l") {
      const [reason = "", name = ""] = fields;
      const path = pathOf(name);
      leftOut.push({
        path: path !== null && isPlainPath(path) ? path : shownName(name),
        reason: REASONS[reason] ?? "the job did not say why",
      });
    } else if (kind === "m") more = Number(fields[0]) || 0;
    else if (kind === "x") leftOut.push(everything(NO_TOOLS));
  }
  return { sent, stored, leftOut, more };
}

/** Stands for all files of a call. */
function everything(reason: string): LeftOutFile {
  return { path: "*", reason };
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function pathOf(name: string): string | null {
  const bytes = decodeBase64(name);
  if (bytes === null || bytes.length === 0) return null;
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** A name that is no path of ours, for a message. */
function shownName(name: string): string {
  const bytes = decodeBase64(name);
  const text = bytes === null ? "?" : new TextDecoder().decode(bytes);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return text.replace(/[\x00-\x1f\x7f]/g, "?").slice(0, 200) || "?";
}

/** The patterns that no file matched, for a message. */
export function unmatched(manifest: Manifest, globs: readonly string[]): readonly string[] {
  if (manifest.leftOut.some(({ path }) => path === "*")) return [];
  const paths = [...manifest.sent, ...manifest.stored, ...manifest.leftOut].map(({ path }) => path);
  return globs.filter((glob) => !paths.some((path) => isDeclared(path, [glob])));
}
