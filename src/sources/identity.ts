import { pathKind, readText } from "../host/fs.ts";
import { join } from "../host/paths.ts";
import type { LocatedStructure } from "../model/types.ts";
import { findInHubCache, MAX_CONFIG_BYTES } from "./hf-cache.ts";
import { hubId, isCertainlyPath, pathOf } from "./names.ts";

/** Where `locate` would read a model's structure, and all that it would read there. */
export interface Identity {
  readonly source: LocatedStructure["source"];
  /** Path, revision, config, ...: equal texts are the same structure, told in the same words. */
  readonly basis: readonly unknown[];
}

/**
 * What a model's structure will be read from, in the order of `locate` and without reading it; null where that takes
 * more than a look: adapters, graphs, what is on the hub. `catalogue` only says that neither a path nor the Hugging
 * Face cache has it: whether the catalogue does is known once it was sized.
 */
export function identityOf(
  model: string,
  host: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> },
): Identity | null {
  const name = model.trim();
  const path = name === "" ? null : pathOf(name, host);
  if (path === null || path.endsWith(".neurarch.json") || path.endsWith("adapter_config.json")) return null;
  const kind = pathKind(path);
  if (kind !== "none" || isCertainlyPath(name)) {
    const file = kind === "directory" ? join(path, "config.json") : path;
    const text = readText(file, MAX_CONFIG_BYTES);
    return text.ok ? { source: "path", basis: [name, file, text.value] } : null;
  }
  const id = hubId(name);
  if (id === null) return null;
  const cached = findInHubCache(id, host.env);
  if (cached.kind === "miss") return { source: "catalogue", basis: [name] };
  const { adapter, revision, notes, text } = cached.config;
  return adapter ? null : { source: "hf-cache", basis: [name, revision, notes, text] };
}
