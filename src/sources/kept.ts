import { readCache } from "./cache.ts";
import { endpointOf, PUBLIC_HUB } from "./hub-settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A config as the hub gave it. */
export interface HubConfig {
  readonly text: string;
  /** Commit, where the hub names it. */
  readonly revision: string | null;
  /** The repository holds an adapter, and `text` is its adapter_config.json. */
  readonly adapter: boolean;
}

/** A config with its age where it comes from our own cache; null = fetched just now. */
export interface FetchedConfig extends HubConfig {
  readonly ageMs: number | null;
}

/** The key of a model's config in our own cache: the id, with the hub's address where it is not the public one. */
export function configKey(id: string, env: Environment): string {
  const endpoint = endpointOf(env);
  return !endpoint.ok || endpoint.value.base === PUBLIC_HUB ? id : `${endpoint.value.base}/${id}`;
}

/** What our own cache holds under a model's key; null for none and for what is no config of ours. */
export function keptConfig(id: string, env: Environment): FetchedConfig | null {
  const kept = readCache(env, "config", configKey(id, env));
  const value = kept?.value as { text?: unknown; revision?: unknown; adapter?: unknown } | null | undefined;
  if (kept === null || typeof value?.text !== "string") return null;
  const revision = typeof value.revision === "string" ? value.revision : null;
  return { text: value.text, revision, adapter: value.adapter === true, ageMs: kept.ageMs };
}
