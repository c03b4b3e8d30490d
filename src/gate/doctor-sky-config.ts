import { workingDirectory } from "../host/env.ts";
import { GateError } from "../lib/errors.ts";
import { entryOf, pyText, type YamlMapValue } from "../skypilot/value.ts";
import { readYaml } from "../skypilot/yaml.ts";
import { type Check, type DoctorHost, failed, ok, skipped, warn } from "../slurm/doctor-types.ts";

/** The API server that `sky` speaks to, and what says so. */
export interface Endpoint {
  readonly url: string;
  readonly from: string;
}

/** What SkyPilot's config comes to. */
export interface Configured {
  readonly checks: readonly Check[];
  /** Null where it cannot be looked at, or none is named. */
  readonly policy: string | null;
  /** The file that names it. */
  readonly from: string;
  readonly endpoint: Endpoint;
}

const VARIABLE = "SKYPILOT_API_SERVER_ENDPOINT";
/** `AVAILABLE_LOCAL_API_SERVER_URLS` of SkyPilot 0.13 (sky/server/common.py): one that it starts by itself. */
const HERE = ["0.0.0.0", "localhost", "127.0.0.1"].map((host) => `http://${host}:46580`);

/** Whether the API server is the one that `sky` starts on this host. */
export function isHere({ url }: Endpoint): boolean {
  return HERE.includes(url);
}

/**
 * Reads SkyPilot's config as its client does (sky/skypilot_config.py, `reload_config`): the project's file lies over the
 * user's, key by key; over both the variable of the endpoint. `SKYPILOT_CONFIG`, which is meant for its own controllers,
 * takes the place of all files.
 */
export function configured(host: DoctorHost): Configured {
  const checks: Check[] = [];
  let policy: string | null = null;
  let from = "";
  let endpoint: Endpoint = { url: HERE[2]!, from: "SkyPilot's own" };
  for (const { path, variable } of filesOf(host)) {
    if (host.info(path) === null) {
      if (variable !== null)
        checks.push(
          failed(
            "config",
            `${variable} names ${path}, which does not exist: SkyPilot stops there`,
            `Unset ${variable}, or correct it.`,
          ),
        );
      continue;
    }
    const found = readConfig(path, host);
    checks.push(found.check);
    if (found.policy !== undefined) {
      policy = found.policy;
      from = path;
    }
    if (found.endpoint !== undefined)
      endpoint = { url: found.endpoint, from: `api_server.endpoint of ${path}` };
  }
  const own = host.env[VARIABLE];
  if (own !== undefined) endpoint = { url: own, from: VARIABLE };
  if (!/^https?:\/\//.test(endpoint.url)) checks.push(noAddress(endpoint));
  endpoint = { ...endpoint, url: endpoint.url.replace(/\/+$/, "") };
  if (checks.some(({ status }) => status === "fail"))
    return {
      checks: [...checks, skipped("policy", "not looked at before the config is right")],
      policy: null,
      from,
      endpoint,
    };
  if (policy === null) checks.push(noPolicy(endpoint));
  return { checks, policy, from, endpoint };
}

function noAddress({ url, from }: Endpoint): Check {
  const said = url === "" ? "empty, and SkyPilot takes that for an address" : "no http or https address";
  return failed("config", `${from} is ${said}`, `Unset ${VARIABLE}, or write http://HOST:46580.`);
}

function noPolicy(endpoint: Endpoint): Check {
  if (!isHere(endpoint))
    return warn(
      "policy",
      `no config here names an admin_policy; the API server at ${withoutPassword(endpoint.url)} (${endpoint.from}) applies that of its own`,
      "Run this on the API server's host. A policy here as well judges models that are files of yours.",
    );
  return failed(
    "policy",
    "no config of SkyPilot names an admin_policy, so nothing is judged",
    "Write `admin_policy: neurarch_gate.NeurarchPolicy` into ~/.sky/config.yaml, or the address of `neurarch-gate serve`.",
  );
}

function filesOf({ env }: DoctorHost): { path: string; variable: string | null }[] {
  const home = env.HOME ?? "/root";
  const whole = (path: string) => {
    const expanded = path.replace(/^~(?=\/|$)/, home);
    return expanded.startsWith("/") ? expanded : `${workingDirectory()}/${expanded}`;
  };
  const { SKYPILOT_CONFIG: only } = env;
  if (only !== undefined) return [{ path: only === "" ? "" : whole(only), variable: "SKYPILOT_CONFIG" }];
  return (
    [
      ["SKYPILOT_GLOBAL_CONFIG", "~/.sky/config.yaml"],
      ["SKYPILOT_PROJECT_CONFIG", ".sky.yaml"],
    ] as const
  ).map(([variable, usual]) => {
    const given = env[variable];
    // An empty one counts as none.
    const set = given !== undefined && given !== "";
    return { path: whole(set ? given : usual), variable: set ? variable : null };
  });
}

interface ReadConfig {
  readonly check: Check;
  readonly policy?: string;
  readonly endpoint?: string;
}

function readConfig(path: string, host: DoctorHost): ReadConfig {
  const wrong = (what: string, fix: string): ReadConfig => ({ check: failed("config", what, fix) });
  const text = host.read(path);
  if (text === null) return wrong(`${path} cannot be read`, "Make it a file that this user can read.");
  try {
    const map = readYaml(text, true)[0];
    const check = ok("config", path);
    if (map === undefined || map.kind === "null") return { check };
    if (map.kind !== "map") return wrong(`${path} is no YAML mapping`, "Write `key: value` lines.");
    const policy = textAt(map, "admin_policy");
    if (policy === null)
      return wrong(
        `admin_policy in ${path} is no text, and SkyPilot refuses the file`,
        "Name a class or an address, or take the line out.",
      );
    const server = entryOf(map, "api_server")?.value;
    if (server !== undefined && server.kind !== "map")
      return wrong(
        `api_server in ${path} is no mapping, and SkyPilot refuses the file`,
        "Write `api_server: {endpoint: http://HOST:46580}`, or take it out.",
      );
    const endpoint = server === undefined ? undefined : textAt(server, "endpoint");
    if (endpoint === null || (endpoint !== undefined && !/^https?:\/\//.test(endpoint)))
      return wrong(
        `api_server.endpoint in ${path} is no http or https address, and SkyPilot refuses the file`,
        "Write http://HOST:46580, or take it out.",
      );
    return {
      check,
      ...(policy === undefined ? {} : { policy }),
      ...(endpoint === undefined ? {} : { endpoint }),
    };
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    return wrong(`${path}: ${error.message}`, "Correct the file; `sky` refuses it too.");
  }
}

/** A text at a key; null for anything else there, undefined for nothing. */
function textAt(map: Pick<YamlMapValue, "kind" | "entries" | "set">, key: string): string | null | undefined {
  const value = entryOf(map, key)?.value;
  return value === undefined ? undefined : value.kind === "str" ? pyText(value) : null;
}

/** SkyPilot prints an address with its password; we do not. */
export function withoutPassword(text: string): string {
  return text.replace(/\/\/[^/@]*@/, "//...@");
}
