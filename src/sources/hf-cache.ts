import { entryInfo, listDirectory, pathKind, readText } from "../host/fs.ts";
import { join } from "../host/paths.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A config.json in the Hugging Face cache. */
export interface CachedConfig {
  readonly path: string;
  readonly text: string;
  /** Commit, or the name of a hand-made snapshot. */
  readonly revision: string;
  /** The repository holds an adapter, and `text` is its adapter_config.json. */
  readonly adapter: boolean;
  readonly notes: readonly string[];
}

/** What a look into the cache came to: a config, or in a few words why there is none. */
export type HfCacheAnswer =
  | { readonly kind: "found"; readonly config: CachedConfig }
  | { readonly kind: "miss"; readonly why: string };

/** Largest config.json that is read; the largest known is 40 KB. */
export const MAX_CONFIG_BYTES = 4_000_000;

/** A variable's value, its `~` expanded; empty counts as unset. */
export function folderOf(value: string | undefined, home: string | undefined): string | null {
  if (value === undefined || value === "") return null;
  if (value !== "~" && !value.startsWith("~/")) return value;
  return home === undefined || home === "" ? null : join(home, value.slice(1));
}

/**
 * Hugging Face's own folder: `HF_HOME`, else `huggingface` under `$XDG_CACHE_HOME` or `~/.cache` (huggingface_hub's
 * `constants.py`). Null without a home.
 */
export function hfHomeFolder(env: Environment): string | null {
  const home = env.HOME;
  const named = folderOf(env.HF_HOME, home);
  if (named !== null) return named;
  const cache = folderOf(env.XDG_CACHE_HOME, home) ?? folderOf("~/.cache", home);
  return cache === null ? null : join(cache, "huggingface");
}

/**
 * The hub's cache folder: `HF_HUB_CACHE` (older: `HUGGINGFACE_HUB_CACHE`), else `hub` in Hugging Face's own folder.
 * Null without a home.
 */
export function hubCacheFolder(env: Environment): string | null {
  const named = folderOf(env.HF_HUB_CACHE, env.HOME) ?? folderOf(env.HUGGINGFACE_HUB_CACHE, env.HOME);
  if (named !== null) return named;
  const home = hfHomeFolder(env);
  return home === null ? null : join(home, "hub");
}

/** A commit or a hand-made name; never a path. */
const REVISION = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/**
 * The config of a hub id at revision `main`: the commit that `refs/main` names, and only that; without refs a
 * snapshot called `main`, else the newest one that has a config. Reads only; never writes into that cache.
 */
export function findInHubCache(id: string, env: Environment): HfCacheAnswer {
  const hub = hubCacheFolder(env);
  if (hub === null) return { kind: "miss", why: "no Hugging Face cache (HOME is not set)" };
  const repository = join(hub, `models--${id.replaceAll("/", "--")}`);
  if (pathKind(repository) !== "directory")
    return { kind: "miss", why: `not in the Hugging Face cache (${hub})` };
  const ref = readText(join(repository, "refs", "main"), 1000);
  if (ref.ok) {
    const commit = ref.value.trim();
    if (!REVISION.test(commit))
      return { kind: "miss", why: "refs/main in the Hugging Face cache names no commit" };
    return atSnapshot(id, repository, commit, []);
  }
  return withoutRef(id, repository);
}

function atSnapshot(
  id: string,
  repository: string,
  revision: string,
  notes: readonly string[],
): HfCacheAnswer {
  const snapshot = join(repository, "snapshots", revision);
  if (pathKind(snapshot) !== "directory")
    return {
      kind: "miss",
      why: `the Hugging Face cache names revision ${revision.slice(0, 12)} and does not hold it`,
    };
  for (const [name, adapter] of [
    ["config.json", false],
    ["adapter_config.json", true],
  ] as const) {
    const path = join(snapshot, name);
    const text = readText(path, MAX_CONFIG_BYTES);
    if (text.ok) return { kind: "found", config: { path, text: text.value, revision, adapter, notes } };
  }
  const known = pathKind(join(repository, ".no_exist", revision, "config.json")) === "file";
  return {
    kind: "miss",
    why: known
      ? `${id} has no config.json on the hub (as the Hugging Face cache remembers)`
      : "the Hugging Face cache holds the model without its config.json",
  };
}

function withoutRef(id: string, repository: string): HfCacheAnswer {
  const snapshots = join(repository, "snapshots");
  const names = listDirectory(snapshots).filter((name) => REVISION.test(name));
  const usable = names
    .map((name) => ({ name, mtimeMs: entryInfo(join(snapshots, name))?.mtimeMs ?? 0 }))
    .filter(({ name }) =>
      ["config.json", "adapter_config.json"].some((file) => pathKind(join(snapshots, name, file)) === "file"),
    )
    // The wanted revision by name first, then the newest; equally new ones in the order of their names.
    .sort(
      (a, b) =>
        Number(b.name === "main") - Number(a.name === "main") ||
        b.mtimeMs - a.mtimeMs ||
        (a.name < b.name ? -1 : 1),
    );
  const first = usable[0];
  if (first === undefined)
    return { kind: "miss", why: "the Hugging Face cache holds the model without its config.json" };
  const note =
    first.name === "main"
      ? []
      : [`the Hugging Face cache has no refs/main; its newest snapshot ${first.name.slice(0, 12)} is used`];
  return atSnapshot(id, repository, first.name, note);
}
