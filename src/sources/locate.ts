import { nowMs } from "../host/clock.ts";
import { listDirectory, pathKind, readText } from "../host/fs.ts";
import { basename, join, resolve } from "../host/paths.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { findInCatalogue } from "../model/catalogue.ts";
import { parseConfig, readStructure } from "../model/read.ts";
import type { LocatedStructure } from "../model/types.ts";
import type { Unsized } from "../sizing/types.ts";
import { findInHubCache, MAX_CONFIG_BYTES } from "./hf-cache.ts";
import type { FetchedConfig } from "./kept.ts";
import { hubId, isCertainlyPath, pathOf } from "./names.ts";
import { type NotHere, notFound, notHere, stillMissing } from "./not-found.ts";

/** Where a model's structure is looked for. */
export interface LocateHost {
  /** Where relative paths start: the folder of the job. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds for asking the hub; absent = it is not asked. */
  readonly hubTimeoutMs?: number | undefined;
}

type Answer = Result<LocatedStructure, NotHere>;

/** A host with what was fetched for this look-up so far, by id. */
interface Host extends LocateHost {
  readonly fetched: ReadonlyMap<string, FetchedConfig>;
}

/** How often an adapter's base is followed: an adapter of an adapter is none. */
const MOST_BASES = 1;

/**
 * Finds and reads a model's structure, in this order: a path, the Hugging Face cache, the catalogue inside the
 * program, our own cache of hub answers, the hub. The first that has the model answers, and says so in `source`,
 * `from` and `revision`. Nothing is downloaded but a config, and no remote code is run.
 *
 * `model` is a path where something stands there, or where it can only be one (`./x`, `/x`, `~/x`, `x.json`);
 * else a hub id. A folder in the working directory comes before the hub's model of the same name, as in
 * transformers, if it holds a config.
 */
export async function locate(model: string, host: LocateHost): Promise<Result<LocatedStructure, Unsized>> {
  const name = model.trim();
  const fetched = new Map<string, FetchedConfig>();
  const untilMs = host.hubTimeoutMs === undefined ? null : nowMs() + host.hubTimeoutMs;
  for (;;) {
    const answer = locateFollowing(name, { ...host, fetched }, MOST_BASES, []);
    if (answer.ok || answer.error.missing === undefined) return answer;
    const { missing } = answer.error;
    // What follows reads our cache and then speaks to the hub; no model of the catalogue has to load it.
    const { keptConfig } = await import("./kept.ts");
    const kept = keptConfig(missing.id, host.env);
    if (kept !== null) {
      fetched.set(missing.id, kept);
      continue;
    }
    if (untilMs === null) return stillMissing(missing, null);
    const { fetchHubConfig } = await import("./hub.ts");
    const config = await fetchHubConfig(missing.id, { env: host.env, timeoutMs: untilMs - nowMs() });
    if (!config.ok) return stillMissing(missing, config.error);
    fetched.set(missing.id, { ...config.value, ageMs: null });
  }
}

/** The same for a model that neither our cache nor the hub is needed for; null for any other. */
export function locateHere(model: string, host: LocateHost): LocatedStructure | null {
  const answer = locateFollowing(model.trim(), { ...host, fetched: new Map() }, MOST_BASES, []);
  return answer.ok ? answer.value : null;
}

function locateFollowing(model: string, host: Host, basesLeft: number, notes: readonly string[]): Answer {
  if (model === "") return notFound(model, ["no model is named"]);
  const path = pathOf(model, host);
  const certain = isCertainlyPath(model);
  if (path !== null && (certain || pathKind(path) !== "none")) {
    const answer = fromPath(model, path, host, basesLeft, notes, certain);
    if (answer !== null) return answer.ok ? ok({ ...answer.value, local: true }) : answer;
  }
  const id = hubId(model);
  if (id === null) return notFound(model, [`${shown(model, 200)} is neither a path nor a Hugging Face id`]);
  const looked: string[] = [];
  let broken: Answer | null = null;
  const cached = findInHubCache(id, host.env);
  if (cached.kind === "miss") looked.push(cached.why);
  else {
    const { config } = cached;
    const answer = config.adapter
      ? fromAdapter(model, config.text, host, basesLeft, [...notes, ...config.notes])
      : structured(model, config.text, {
          source: "hf-cache",
          revision: config.revision,
          from: `config.json of ${shown(id, 200)} in the Hugging Face cache`,
          notes: [...notes, ...config.notes],
        });
    if (answer.ok) return answer;
    // A broken copy does not hide what the catalogue knows.
    broken = answer;
  }
  const fallback = fromCatalogue(model, id, notes) ?? fromHub(model, id, host, basesLeft, notes);
  if (fallback !== null) return fallback;
  if (broken !== null) return broken;
  return notHere({ id, name: model, looked: [...looked, "not in the catalogue"] });
}

/** What stands at a path; null where it is a folder without a config that might as well be a hub id. */
function fromPath(
  model: string,
  path: string,
  host: Host,
  basesLeft: number,
  notes: readonly string[],
  certain: boolean,
): Answer | null {
  const kind = pathKind(path);
  if (kind === "directory") return fromFolder(model, path, host, basesLeft, notes, certain);
  if (path.endsWith(".neurarch.json")) return fromGraph(model, path, notes);
  if (basename(path) === "adapter_config.json")
    return fromFolder(model, resolve(path, ".."), host, basesLeft, notes, true);
  const text = readText(path, MAX_CONFIG_BYTES);
  if (!text.ok) return fail({ reason: "model-not-found", message: `${shown(text.error.message, 300)}.` });
  const raw = parseConfig(text.value);
  if (raw.ok && typeof raw.value === "object" && raw.value !== null && isGraph(raw.value))
    return fromGraph(model, path, notes);
  return structured(model, text.value, {
    source: "path",
    revision: null,
    from: `${shown(path, 300)}`,
    notes,
  });
}

function isGraph(raw: object): boolean {
  const { model, graph } = raw as Record<string, unknown>;
  return [raw, model, graph].some(
    (one) => typeof one === "object" && one !== null && "components" in one && "connections" in one,
  );
}

function fromFolder(
  model: string,
  folder: string,
  host: Host,
  basesLeft: number,
  notes: readonly string[],
  certain: boolean,
): Answer | null {
  const path = join(folder, "config.json");
  const text = readText(path, MAX_CONFIG_BYTES);
  if (text.ok)
    return structured(model, text.value, { source: "path", revision: null, from: shown(path, 300), notes });
  const adapter = readText(join(folder, "adapter_config.json"), MAX_CONFIG_BYTES);
  if (adapter.ok) return fromAdapter(model, adapter.value, host, basesLeft, notes);
  const graphs = listDirectory(folder).filter((name) => name.endsWith(".neurarch.json"));
  const [graph] = graphs;
  if (graphs.length > 1)
    return fail({
      reason: "model-not-found",
      message: `${shown(folder, 300)} holds ${graphs.length} graphs; name one of them.`,
    });
  if (graph !== undefined) return fromGraph(model, join(folder, graph), notes);
  if (text.error.kind !== "missing")
    return fail({ reason: "model-not-found", message: `${shown(text.error.message, 300)}.` });
  if (!certain) return null;
  return fail({
    reason: "model-not-found",
    message: `${shown(folder, 300)} holds no config.json. Name the folder or the file of the model's config.`,
  });
}

/** An adapter is sized as its base model; the rank is the job's own fact. */
function fromAdapter(
  model: string,
  text: string,
  host: Host,
  basesLeft: number,
  notes: readonly string[],
  remote = false,
): Answer {
  const raw = parseConfig(text);
  const base =
    raw.ok && typeof raw.value === "object" && raw.value !== null
      ? (raw.value as Record<string, unknown>).base_model_name_or_path
      : undefined;
  if (typeof base !== "string" || base === "" || basesLeft === 0) {
    return fail({
      reason: "config-invalid",
      message: `${shown(model, 200)} is an adapter whose base model is not named. Name the base model instead.`,
    });
  }
  if (remote && hubId(base.trim()) === null) {
    return fail({
      reason: "config-invalid",
      message: `${shown(model, 200)} is an adapter whose base model, ${shown(base, 200)}, is a path on another machine. Name the base model instead.`,
    });
  }
  const note = `${shown(model, 200)} is an adapter; its base ${shown(base, 200)} is sized`;
  const answer = locateFollowing(base.trim(), host, basesLeft - 1, [...notes, note]);
  return answer.ok ? ok({ ...answer.value, model }) : answer;
}

function fromCatalogue(model: string, id: string, notes: readonly string[]): Answer | null {
  const entry = findInCatalogue(id);
  if (entry === null) return null;
  const read = readStructure(entry.config, {
    recorded: { params: entry.params, activeParams: entry.activeParams },
  });
  if (!read.ok) return null;
  const copy = entry.id === id ? [] : [`${shown(id, 200)} has the structure of ${entry.id}`];
  return ok({
    structure: { ...read.value, notes: [...read.value.notes, ...notes, ...copy] },
    model,
    source: "catalogue",
    revision: null,
    from: "the catalogue inside neurarch-gate",
  });
}

/** A config that the hub gave, now or before. */
function fromHub(
  model: string,
  id: string,
  host: Host,
  basesLeft: number,
  notes: readonly string[],
): Answer | null {
  const config = host.fetched.get(id);
  if (config === undefined) return null;
  const { text, revision, adapter, ageMs } = config;
  if (adapter) return fromAdapter(model, text, host, basesLeft, notes, true);
  const name = shown(id, 200);
  const hours = Math.floor((ageMs ?? 0) / 3_600_000);
  return structured(model, text, {
    source: ageMs === null ? "hub" : "cache",
    revision,
    from:
      ageMs === null ? `config.json of ${name} on the hub` : `the config of ${name} fetched ${hours} h ago`,
    notes,
  });
}

interface Origin {
  readonly source: LocatedStructure["source"];
  readonly revision: string | null;
  readonly from: string;
  readonly notes: readonly string[];
}

function structured(model: string, text: string, origin: Origin): Answer {
  const raw = parseConfig(text);
  const id = hubId(model);
  const entry = raw.ok && id !== null ? findInCatalogue(id) : null;
  const read = raw.ok
    ? readStructure(raw.value, {
        recorded: entry && { params: entry.params, activeParams: entry.activeParams },
      })
    : raw;
  if (!read.ok) {
    const hint = read.error.hint === null ? "" : ` ${read.error.hint}`;
    return fail({
      reason: "config-invalid",
      message: `${origin.from} cannot be used: ${shown(read.error.message, 300)}.${hint}`,
    });
  }
  const { notes, ...where } = origin;
  const structure = { ...read.value, notes: [...read.value.notes, ...notes] };
  return ok({ structure, model, ...where });
}

/** A graph is read by code that no other model needs. */
function fromGraph(model: string, path: string, notes: readonly string[]): Answer {
  const { graphAt } = require("./graph-file.ts") as typeof import("./graph-file.ts");
  return graphAt(model, path, notes);
}
