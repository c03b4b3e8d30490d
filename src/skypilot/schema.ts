import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { entryOf, pyText, type YamlMap, type YamlValue } from "./value.ts";

/**
 * The fields of a task file and their types, as SkyPilot 0.13 checks them (`sky/utils/schemas.py`). Only what
 * decides whether a task loads is checked; the inside of `service`, `config`, volumes and storages is left to
 * SkyPilot, and so are the names of clouds.
 */

/** What is wrong with a field: `message` is a sentence without its place. */
export interface Complaint {
  readonly at: number;
  readonly message: string;
}

type Check = (value: YamlValue, path: string) => Complaint | null;

/** Python's name of a value's type, as SkyPilot's own messages say it. */
export function typeName(value: YamlValue): string {
  const names = { null: "None", map: "dict", other: "date" } as const;
  return value.kind in names ? names[value.kind as keyof typeof names] : value.kind;
}

/** Fields whose values may be told: what else a task holds can be a secret, or stand beside one. */
const TOLD =
  /^(?:resources|num_nodes|name|inputs|outputs|api_server_access)(?![^.[])(?!.*_docker_login_config)/;

function typed(what: string, test: (value: YamlValue) => boolean): Check {
  return (value, path) => {
    if (test(value)) return null;
    const told = TOLD.test(path)
      ? `${shown(pyText(value), 40) || "empty"} (${typeName(value)})`
      : typeName(value);
    return { at: value.at, message: `\`${path}\` must be ${what}, and it is ${told}.` };
  };
}

function isInteger(value: YamlValue): boolean {
  return value.kind === "int" || (value.kind === "float" && Number.isInteger(value.value));
}

const str = typed("text (quote it)", (value) => value.kind === "str");
const bool = typed("true or false", (value) => value.kind === "bool");
const int = typed("a whole number", isInteger);
const number = typed("a number", (value) => value.kind === "int" || value.kind === "float");
const dict = typed("a mapping", (value) => value.kind === "map" && !value.set);
const strOrInt = typed("text or a whole number", (value) => value.kind === "str" || isInteger(value));
const strOrNumber = typed(
  "text or a number",
  (value) => value.kind === "str" || value.kind === "int" || value.kind === "float",
);
const strOrDict = typed(
  "text or a mapping",
  (value) => value.kind === "str" || (value.kind === "map" && !value.set),
);

function orNull(check: Check): Check {
  return (value, path) => (value.kind === "null" ? null : check(value, path));
}

function listOf(check: Check): Check {
  return (value, path) => {
    if (value.kind !== "list") return { at: value.at, message: `\`${path}\` must be a list.` };
    return firstOf(value.items, (item, index) => check(item, `${path}[${index}]`));
  };
}

function dictOf(check: Check): Check {
  return (value, path) => {
    if (value.kind !== "map") return dict(value, path);
    return firstOf(value.entries, (entry) => check(entry.value, `${path}.${pyText(entry.key)}`));
  };
}

function firstOf<T>(
  items: readonly T[],
  check: (item: T, index: number) => Complaint | null,
): Complaint | null {
  for (const [index, item] of items.entries()) {
    const complaint = check(item, index);
    if (complaint !== null) return complaint;
  }
  return null;
}

/** One input or output: its place and its size in GB. */
const oneNumber: Check = (value, path) => {
  const complaint = dictOf(number)(value, path);
  if (complaint !== null || (value.kind === "map" && value.entries.length === 1)) return complaint;
  return { at: value.at, message: `\`${path}\` must have one entry.` };
};

const workdir: Check = (value, path) => {
  if (value.kind !== "map") return strOrDict(value, path);
  if (entryOf(value, "url") === null) return { at: value.at, message: `\`${path}\` needs a \`url\`.` };
  return checkFields(value, { url: str, ref: str }, "workdir", path);
};

const secretReference = typed(
  "text that begins with `secrets:`",
  (value) => value.kind === "str" && value.value.startsWith("secrets:"),
);

/** A mapping of names to values, or a list of names that a server keeps (`sky.Task.from_yaml_config`). */
const secrets: Check = (value, path) =>
  value.kind === "list"
    ? listOf(secretReference)(value, path)
    : typed("a mapping or a list", (one) => one.kind === "map")(value, path);

const autostop = typed(
  "true, false, a time or a mapping",
  (value) => ["bool", "str", "map"].includes(value.kind) || isInteger(value),
);

const ports: Check = (value, path) =>
  value.kind === "list" ? listOf(strOrInt)(value, path) : orNull(strOrInt)(value, path);

const TASK_FIELDS: Readonly<Record<string, Check>> = {
  name: str,
  workdir,
  event_callback: str,
  num_nodes: int,
  resources: dict,
  file_mounts: dictOf(strOrDict),
  service: dict,
  pool: dict,
  setup: str,
  run: str,
  envs: dict,
  secrets,
  managed_secrets: listOf(strOrDict),
  inputs: oneNumber,
  outputs: oneNumber,
  file_mounts_mapping: dict,
  config: dict,
  volumes: dict,
  volume_mounts: listOf(dict),
  api_server_access: bool,
  _metadata: dict,
};

/** Accelerators of one candidate in `any_of` or `ordered`: a name, or one name with its count. */
const oneAccelerator: Check = (value, path) => {
  if (value.kind !== "map" || value.set) {
    return typed("text or a mapping of one name to its count", (one) => one.kind === "str")(value, path);
  }
  if (value.entries.length > 1)
    return { at: value.at, message: `\`${path}\` may name one accelerator here.` };
  return dictOf(number)(value, path);
};

const accelerators: Check = (value, path) => {
  if (value.kind === "list") return listOf(str)(value, path);
  if (value.kind === "map" && !value.set) return dictOf(orNull(number))(value, path);
  return typed("text, a list or a mapping of names to counts", (one) => one.kind === "str")(value, path);
};

const CANDIDATE_FIELDS: Readonly<Record<string, Check>> = {
  cloud: str,
  region: str,
  zone: str,
  infra: str,
  cpus: strOrNumber,
  memory: strOrNumber,
  accelerators: oneAccelerator,
  instance_type: str,
  use_spot: bool,
  job_recovery: strOrDict,
  volumes: listOf(dict),
  disk_size: strOrInt,
  ephemeral_storage: strOrInt,
  disk_tier: str,
  network_tier: str,
  local_disk: str,
  max_hourly_cost: number,
  ports,
  labels: dictOf(str),
  accelerator_args: dict,
  _no_missing_accel_warnings: bool,
  image_id: orNull(strOrDict),
  autostop,
  priority: int,
  priority_class: str,
  _docker_login_config: dict,
  _is_image_managed: bool,
  _requires_fuse: bool,
  _cluster_config_overrides: dict,
};

const RESOURCE_FIELDS: Readonly<Record<string, Check>> = {
  ...CANDIDATE_FIELDS,
  accelerators,
  any_of: listOf(dict),
  ordered: listOf(dict),
};

/** Checks the top level of a task; values that are null count as absent, as in SkyPilot. */
export function checkTask(task: YamlMap): Complaint | null {
  return checkFields(present(task), TASK_FIELDS, "task");
}

/** Checks `resources`; `gpus` is an alias of `accelerators`. */
export function checkResources(resources: YamlMap): Complaint | null {
  return checkFields(present(resources), aliased(RESOURCE_FIELDS), "resources", "resources");
}

/** Checks one entry of `any_of` or `ordered`; null is not "absent" there. */
export function checkCandidate(candidate: YamlMap, path: string): Complaint | null {
  return checkFields(candidate, aliased(CANDIDATE_FIELDS), "resources", path);
}

function aliased(fields: Readonly<Record<string, Check>>): Readonly<Record<string, Check>> {
  return { ...fields, gpus: fields.accelerators! };
}

function present(map: YamlMap): YamlMap {
  return { ...map, entries: map.entries.filter(({ value }) => value.kind !== "null") };
}

function checkFields(
  map: YamlMap,
  fields: Readonly<Record<string, Check>>,
  what: string,
  path = "",
): Complaint | null {
  return firstOf(map.entries, ({ key, value }) => {
    const name = pyText(key);
    const check = Object.hasOwn(fields, name) && key.kind === "str" ? fields[name] : undefined;
    if (check !== undefined) return check(value, path === "" ? name : `${path}.${name}`);
    const near = nearest(name, Object.keys(fields));
    const hint = near === null ? "" : ` Did you mean \`${near}\`?`;
    return { at: key.at, message: `SkyPilot knows no ${what} field \`${shown(name)}\`.${hint}` };
  });
}
