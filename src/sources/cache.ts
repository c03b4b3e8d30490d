import { nowMs } from "../host/clock.ts";
import { pathKind } from "../host/fs.ts";
import { join } from "../host/paths.ts";
import { digest, pruneFiles, readPrivateFile, writePrivateFile } from "../host/private-files.ts";
import type { Unsized } from "../sizing/types.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** What is kept: a config of the hub, a sizing of an external source, sizes of our own, a look-up that failed. */
export type CacheKind = "config" | "sizing" | "size" | "miss";

/** How long a failed look-up is taken as failed: a queue of submits waits for a dead source once a minute. */
export const MISS_LIFE_MS = 60_000;
/** How long an answer of an external source is taken as current. */
export const ANSWER_LIFE_MS = 3_600_000;

/** Format of an entry; another number is another version of ours, and is ignored. */
const FORMAT = 2;
const MAX_ENTRY_BYTES = 4_000_000;
/** Kept sizes of a user; a few kilobytes each. */
const MOST_SIZES = 400;

interface Entry {
  readonly format: number;
  readonly kind: CacheKind;
  readonly key: string;
  readonly atMs: number;
  /** Digest of the value's JSON: a disk, an editor or a half-done copy can leave one that reads well and is wrong. */
  readonly sum: string;
  readonly value: unknown;
}

/** An entry and its age. */
export interface Cached {
  readonly value: unknown;
  readonly ageMs: number;
}

/**
 * Our own folder under the XDG cache (`$XDG_CACHE_HOME`, else `~/.cache`); null without both. The XDG base
 * directory specification has a relative path ignored.
 */
export function cacheFolder(env: Environment): string | null {
  const base = env.XDG_CACHE_HOME;
  if (base?.startsWith("/")) return join(base, "neurarch-gate");
  const home = env.HOME;
  return home?.startsWith("/") ? join(home, ".cache", "neurarch-gate") : null;
}

/**
 * The entry under `key` if it is younger than `lifeMs`. An entry that is corrupt, foreign, linked or of another
 * key is no entry; a clock that went back makes it too old. Never throws.
 */
export function readCache(
  env: Environment,
  kind: CacheKind,
  key: string,
  lifeMs: number = Number.POSITIVE_INFINITY,
): Cached | null {
  const folder = cacheFolder(env);
  if (folder === null) return null;
  const text = readPrivateFile(join(folder, nameOf(kind, key)), MAX_ENTRY_BYTES);
  if (text === null) return null;
  try {
    const entry = JSON.parse(text) as Partial<Entry> | null;
    if (entry?.format !== FORMAT || entry.kind !== kind || entry.key !== key) return null;
    if (typeof entry.atMs !== "number" || entry.value === undefined) return null;
    if (entry.sum !== sumOf(entry.value)) return null;
    const ageMs = nowMs() - entry.atMs;
    return ageMs >= 0 && ageMs < lifeMs ? { value: entry.value, ageMs } : null;
  } catch {
    return null;
  }
}

/** Keeps `value` under `key`. False when it could not be kept, which changes nothing but speed. Never throws. */
export function writeCache(env: Environment, kind: CacheKind, key: string, value: unknown): boolean {
  const folder = cacheFolder(env);
  // The folder is ours to make, a home is not: that of a service may be named and never have been there.
  const home = env.XDG_CACHE_HOME?.startsWith("/") ? null : (env.HOME ?? null);
  if (folder === null || (home !== null && pathKind(home) !== "directory")) return false;
  const entry: Entry = { format: FORMAT, kind, key, atMs: nowMs(), sum: sumOf(value), value };
  const text = JSON.stringify(entry);
  if (text.length > MAX_ENTRY_BYTES) return false;
  const written = writePrivateFile(folder, nameOf(kind, key), text);
  // Sizes are kept by build, model and length, and no later build asks for those of an earlier one.
  if (written && kind === "size") pruneFiles(folder, `${kind}-`, MOST_SIZES);
  return written;
}

/** A look-up that failed within the last minute; null when it has to be tried again. */
export function rememberedMiss(env: Environment, key: string): Unsized | null {
  const value = readCache(env, "miss", key, MISS_LIFE_MS)?.value as Partial<Unsized> | undefined;
  if (typeof value?.reason !== "string" || typeof value.message !== "string") return null;
  return { reason: value.reason, message: value.message };
}

function sumOf(value: unknown): string {
  return digest(JSON.stringify(value) ?? "");
}

function nameOf(kind: CacheKind, key: string): string {
  return `${kind}-${digest(key).slice(0, 40)}.json`;
}
