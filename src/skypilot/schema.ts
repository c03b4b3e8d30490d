import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import {
  above,
  bool,
  type Check,
  type Complaint,
  dict,
  dictOf,
  firstOf,
  int,
  isInteger,
  listOf,
  matching,
  number,
  orNull,
  str,
  strOrDict,
  strOrInt,
  typed,
} from "./checks.ts";
import { entryOf, pyText, type YamlMap } from "./value.ts";

/**
 * The fields of a task file and their types, as SkyPilot 0.13 checks them (`sky/utils/schemas.py`). Only what
 * decides whether a task loads is checked; the inside of `service`, `config`, volumes and storages is left to
 * SkyPilot, and so are the names of clouds.
 */

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

const AUTOSTOP_FIELDS: Readonly<Record<string, Check>> = {
  idle_minutes: int,
  down: bool,
  wait_for: str,
  hook: str,
  hook_timeout: int,
};

/** `TIME_PATTERN` and `MEMORY_SIZE_PATTERN` of SkyPilot (sky/skylet/constants.py). */
const TIME = /^[0-9]+[mhdw]?$/i;
const SIZE = /^[0-9]+(?:[kmgtp][bi])?$/i;

const autostop: Check = (value, path) =>
  value.kind === "map"
    ? checkFields(value, AUTOSTOP_FIELDS, "autostop", path)
    : typed(
        "true, false, minutes, a time such as 10m, or a mapping",
        (one) => one.kind === "bool" || isInteger(one) || (one.kind === "str" && TIME.test(one.value)),
      )(value, path);

const size = typed(
  "a size such as 256 or 1TB",
  (value) => (isInteger(value) || value.kind === "str") && above(value, SIZE),
);

/** What Python's `float()` takes, as far as people write it. */
const FLOAT = "\\s*[+]?(?:[0-9][0-9_]*\\.?[0-9]*|\\.[0-9]+)(?:e[+-]?[0-9]+)?\\s*";
const cpus = typed("a number above 0, or one with a + behind it", (value) =>
  above(value, new RegExp(`^${FLOAT}[+]?$`, "i")),
);
/** Slurm takes 0 too: it then asks for no memory at all. */
const memory = typed("a number of GB, or a size such as 64GB, 64GB+", (value) =>
  value.kind === "int" || value.kind === "float"
    ? value.value >= 0
    : value.kind === "str" && new RegExp(`^${FLOAT}(?:[kmgtp][bi])?[+]?x?$`, "i").test(value.value),
);

const DISK_TIER = matching("one of low, medium, high, ultra, best", /^(?:low|medium|high|ultra|best)$/i);
const NETWORK_TIER = matching("one of standard, best", /^(?:standard|best)$/i);
/** `cloud[/region[/zone]]`, or a context of Kubernetes with slashes of its own; which clouds there are SkyPilot knows. */
const INFRA = matching(
  "a cloud, with a region and a zone behind slashes",
  /^(?:(?:kubernetes|k8s)(?:\/.+)?|[^/\s]+(?:\/[^/]+(?:\/[^/]+)?)?)$/i,
);
const priority = typed(
  "a whole number from -1000 to 1000",
  (value) => isInteger(value) && "value" in value && Math.abs(Number(value.value)) <= 1000,
);
const cost = typed("a number above 0", (value) => above(value));

const ACCELERATOR_ARGS: Readonly<Record<string, Check>> = {
  runtime_version: str,
  tpu_name: str,
  tpu_vm: bool,
  gcp_queued_resource: bool,
};
const acceleratorArgs: Check = (value, path) =>
  value.kind === "map" ? checkFields(value, ACCELERATOR_ARGS, "accelerator_args", path) : dict(value, path);

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
  infra: INFRA,
  cpus,
  memory,
  accelerators: oneAccelerator,
  instance_type: str,
  use_spot: bool,
  job_recovery: strOrDict,
  volumes: listOf(dict),
  disk_size: size,
  ephemeral_storage: size,
  disk_tier: DISK_TIER,
  network_tier: NETWORK_TIER,
  local_disk: str,
  max_hourly_cost: cost,
  ports,
  labels: dictOf(str),
  accelerator_args: acceleratorArgs,
  _no_missing_accel_warnings: bool,
  image_id: orNull(strOrDict),
  autostop,
  priority,
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
