import { byCodePoint, frameFile, frameFolder, frameLink } from "../bridge/staging/digest.ts";
import { MOST_BYTES } from "../bridge/staging/limits.ts";
import { secretByContent } from "../bridge/staging/secrets.ts";
import { monotonicMs, nowMs } from "../host/clock.ts";
import { bootId, copyFile, feedFile, startDigest, yieldTurn } from "../host/copy.ts";
import { makeFolder, makeLink, putText, shareFile } from "../host/snapshot-files.ts";
import type { Tree } from "../host/tree.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import {
  copyMtimeMs,
  isSettled,
  isUnchanged,
  type LeftByContent,
  type Manifest,
  type StagedEntry,
} from "./staging-manifest.ts";
import type { Found, Scan } from "./staging-scan.ts";

/** A finished snapshot that the next one shares its unchanged files with. */
export interface Former {
  readonly path: string;
  readonly manifest: Manifest;
}

/** Files of our own in every snapshot: nothing more is filtered on the way, and the copy is whole. */
const OWN: readonly StagedEntry[] = [
  { kind: "own", path: ".ready", text: "1\n" },
  { kind: "own", path: ".skyignore", text: "# Everything in this snapshot is transferred.\n" },
];
/** Root names of the workspace that ours stand in the place of. */
export const OWN_NAMES: readonly string[] = OWN.map(({ path }) => path);

type FileEntry = Extract<StagedEntry, { kind: "file" }>;

/** How long the loop is held at a time. */
const SLICE_MS = 8;

/** Whether a scan found just what a snapshot was made of. */
export function isSame(scan: Scan, { entries, leftByContent }: Manifest): boolean {
  const left = new Map(leftByContent.map((one) => [one.path, one]));
  const staged = entries.filter((entry) => entry.kind !== "own");
  let at = 0;
  for (const now of scan.found) {
    const secret = left.get(now.path);
    if (secret !== undefined && now.kind === "file" && isUnchanged(now.stat, secret)) {
      left.delete(now.path);
      continue;
    }
    const then = staged[at++];
    if (then === undefined || then.path !== now.path) return false;
    if (then.kind === "file" && now.kind === "file" ? !isUnchanged(now.stat, then) : !sameNode(now, then))
      return false;
  }
  return at === staged.length && left.size === 0;
}

function sameNode(now: Found, then: StagedEntry): boolean {
  if (now.kind === "file" || now.kind !== then.kind) return false;
  return now.kind === "folder" || (then.kind === "link" && then.target === now.target);
}

/**
 * Fills the folder `to` with what the scan found: a file that has not changed since `former` gets a second name
 * there, any other is copied, and the digest is of what the snapshot holds. Throws what the disk says.
 */
export async function buildSnapshot(
  tree: Tree,
  scan: Scan,
  to: string,
  former: Former | null,
): Promise<Result<Manifest, string>> {
  const digest = startDigest();
  const entries: StagedEntry[] = [];
  const leftByContent: LeftByContent[] = [];
  const known = new Map(former?.manifest.entries.map((entry) => [entry.path, entry]));
  const nodes: (Found | StagedEntry)[] = [...scan.found, ...OWN];
  nodes.sort((a, b) => byCodePoint(a.path, b.path));
  let files = 0;
  let bytes = 0;
  let sliceMs = monotonicMs();
  makeFolder(to);
  for (const node of nodes) {
    if (monotonicMs() - sliceMs > SLICE_MS) {
      await yieldTurn();
      sliceMs = monotonicMs();
    }
    const path = `${to}/${node.path}`;
    if (node.kind === "folder") {
      makeFolder(path);
      frameFolder(digest, node.path);
      entries.push(node);
    } else if (node.kind === "link") {
      makeLink(path, node.target);
      frameLink(digest, node.path, node.target);
      entries.push(node);
    } else if (node.kind === "own") {
      putText(path, node.text, 0o644);
      frameFile(digest, node.path);
      digest.update(new TextEncoder().encode(node.text));
      entries.push(node);
    } else {
      const before = known.get(node.path);
      const recorded = before?.kind === "file" ? before : null;
      let entry: FileEntry | null = null;
      let content: Uint8Array | null = null;
      if (
        former !== null &&
        recorded !== null &&
        isUnchanged(node.stat, recorded) &&
        shareFile(`${former.path}/${node.path}`, path)
      )
        entry = recorded;
      else {
        const startedMs = nowMs();
        const copied = await copyFile(tree, node.path, path, {
          look: (head) => secretByContent(nameOf(node.path), head),
          mtimeMs: (stat) => copyMtimeMs(stat, recorded?.copyMtimeMs ?? null),
        });
        if (copied.kind === "gone") continue;
        const sure = isSettled(copied.stat, startedMs);
        if (copied.kind === "left-out") {
          leftByContent.push({ path: node.path, stat: copied.stat, reason: copied.reason, sure });
          continue;
        }
        const { stat, steady } = copied;
        const mtimeMs = copyMtimeMs(stat, recorded?.copyMtimeMs ?? null);
        entry = { kind: "file", path: node.path, stat, copyMtimeMs: mtimeMs, sure: sure && steady };
        content = copied.bytes;
      }
      frameFile(digest, node.path);
      if (content === null) bytes += await feedFile(path, (piece) => digest.update(piece));
      else {
        digest.update(content);
        bytes += content.length;
      }
      if (bytes > MOST_BYTES) return fail("workspace grew beyond 512 MiB while it was staged");
      files++;
      entries.push(entry);
    }
  }
  const made = { boot: bootId(), madeMs: nowMs(), sha256: digest.hex(), files, bytes };
  return ok({ manifest: 1, ...made, entries, leftByContent });
}

/** The digest of a finished snapshot as it lies on the disk; null where something of it is missing. */
export async function digestOf(folder: string, manifest: Manifest): Promise<string | null> {
  const digest = startDigest();
  try {
    for (const entry of manifest.entries) {
      if (entry.kind === "folder") frameFolder(digest, entry.path);
      else if (entry.kind === "link") frameLink(digest, entry.path, entry.target);
      else {
        frameFile(digest, entry.path);
        await feedFile(`${folder}/${entry.path}`, (piece) => digest.update(piece));
      }
    }
  } catch {
    return null;
  }
  return digest.hex();
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
