import type { FileStat } from "../host/tree.ts";

/** One path of a snapshot, in the order of its digest. */
export type StagedEntry =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "own"; readonly path: string; readonly text: string }
  | {
      readonly kind: "file";
      readonly path: string;
      /** The workspace's file as it was when it was copied. */
      readonly stat: FileStat;
      /** When it was last changed, in the snapshot. */
      readonly copyMtimeMs: number;
      /** An equal `stat` later on means equal content: it did not change in the moment of the copy. */
      readonly sure: boolean;
    };

/** A file whose content said that it is a credential. */
export interface LeftByContent {
  readonly path: string;
  readonly stat: FileStat;
  readonly reason: string;
  readonly sure: boolean;
}

/** What is known of a finished snapshot; it lies beside its folder. */
export interface Manifest {
  readonly manifest: 1;
  /** The machine's start it was made in: a power cut may have taken some of its files. */
  readonly boot: string;
  readonly madeMs: number;
  readonly sha256: string;
  readonly files: number;
  readonly bytes: number;
  readonly entries: readonly StagedEntry[];
  readonly leftByContent: readonly LeftByContent[];
}

/** The manifest in a text; null where it is none of ours. */
export function readManifest(text: string | null): Manifest | null {
  try {
    const value = JSON.parse(text ?? "null") as Manifest | null;
    return value?.manifest === 1 && Array.isArray(value.entries) ? value : null;
  } catch {
    return null;
  }
}

/** Whether a file is still the one that was recorded, content and all. */
export function isUnchanged(
  now: FileStat,
  recorded: { readonly stat: FileStat; readonly sure: boolean },
): boolean {
  const { stat, sure } = recorded;
  return (
    sure &&
    now.bytes === stat.bytes &&
    now.mtimeMs === stat.mtimeMs &&
    now.ctimeMs === stat.ctimeMs &&
    now.inode === stat.inode &&
    now.device === stat.device &&
    now.mode === stat.mode
  );
}

/** Longest time within which a file system may give two changes one time. */
const TICK_MS = 100;
/** The same for one that keeps whole seconds only (or, on FAT, two). */
const COARSE_TICK_MS = 2_100;

/**
 * Whether a file's times are old enough at `nowMs`, the moment before it was read, for a later change to show in
 * them: git's rule of racy entries.
 */
export function isSettled(stat: FileStat, nowMs: number): boolean {
  const coarse = stat.mtimeMs % 1000 === 0 && stat.ctimeMs % 1000 === 0;
  const newest = Math.max(stat.mtimeMs, stat.ctimeMs);
  return newest < nowMs - (coarse ? COARSE_TICK_MS : TICK_MS);
}

/**
 * The time of last change that a copy gets: the workspace's, but for a changed file at least a whole second after its
 * former copy's. A transfer that compares size and seconds only would otherwise take the old one for the new one.
 */
export function copyMtimeMs(stat: FileStat, formerMtimeMs: number | null): number {
  if (formerMtimeMs === null || Math.floor(stat.mtimeMs / 1000) > Math.floor(formerMtimeMs / 1000))
    return stat.mtimeMs;
  return (Math.floor(formerMtimeMs / 1000) + 1) * 1000;
}
