import { executablePath, workingDirectory } from "../host/env.ts";
import { GateError } from "../lib/errors.ts";
import { entryOf, pyText } from "../skypilot/value.ts";
import { readYaml } from "../skypilot/yaml.ts";
import { type Check, type DoctorHost, failed, ok, skipped, warn } from "../slurm/doctor-types.ts";
import { checkClass } from "./doctor-sky-class.ts";
import { checkRest } from "./doctor-sky-rest.ts";

/** Where `admin_policy` stands, after SkyPilot's own order: the project's file lies over the user's. */
interface Configured {
  readonly checks: readonly Check[];
  readonly policy: string | null;
  readonly from: string;
}

/**
 * Checks what stands between `sky launch` and a verdict: SkyPilot's config, then the class policy or the REST policy
 * that it names. `shim` is the Python policy of this executable; `python` the Python to ask, null = that of `sky`.
 */
export async function examineSky(
  host: DoctorHost,
  shim: string,
  python: string | null,
): Promise<readonly Check[]> {
  const { checks, policy, from } = configured(host);
  if (policy === null) return checks;
  const named = ok("policy", `admin_policy: ${withoutPassword(policy)} (${from})`);
  const rest = /^https?:/i.test(policy)
    ? await checkRest(policy, host.version)
    : await checkClass(policy, shim, python, host, executablePath());
  return [...checks, named, ...rest, ...sideOf(host)];
}

function configured(host: DoctorHost): Configured {
  const checks: Check[] = [];
  let policy: string | null = null;
  let from = "";
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
    const found = policyIn(path, host);
    checks.push(found.check);
    if (found.policy !== undefined) {
      policy = found.policy;
      from = path;
    }
  }
  if (checks.some(({ status }) => status === "fail"))
    return {
      checks: [...checks, skipped("policy", "not looked at before the config is right")],
      policy: null,
      from,
    };
  if (policy === null)
    checks.push(
      failed(
        "policy",
        "no config of SkyPilot names an admin_policy, so nothing is judged",
        "Write `admin_policy: neurarch_gate.NeurarchPolicy` into ~/.sky/config.yaml, or the address of `neurarch-gate serve`.",
      ),
    );
  return { checks, policy, from };
}

function filesOf({ env }: DoctorHost): { path: string; variable: string | null }[] {
  const home = env.HOME ?? "/root";
  const whole = (path: string) => {
    const expanded = path.replace(/^~(?=\/|$)/, home);
    return expanded.startsWith("/") ? expanded : `${workingDirectory()}/${expanded}`;
  };
  return (
    [
      ["SKYPILOT_GLOBAL_CONFIG", "~/.sky/config.yaml"],
      ["SKYPILOT_PROJECT_CONFIG", ".sky.yaml"],
    ] as const
  ).map(([variable, usual]) => {
    const given = env[variable];
    return { path: whole(given ?? usual), variable: given === undefined ? null : variable };
  });
}

function policyIn(path: string, host: DoctorHost): { check: Check; policy?: string | null } {
  const text = host.read(path);
  if (text === null)
    return { check: failed("config", `${path} cannot be read`, `Make it a file that this user can read.`) };
  try {
    const map = readYaml(text, true)[0];
    const good = ok("config", path);
    if (map === undefined || map.kind === "null") return { check: good };
    if (map.kind !== "map")
      return { check: failed("config", `${path} is no YAML mapping`, "Write `key: value` lines.") };
    const value = entryOf(map, "admin_policy")?.value;
    if (value === undefined) return { check: good };
    if (value.kind === "null") return { check: good, policy: null };
    if (value.kind !== "str")
      return {
        check: failed("config", `admin_policy in ${path} is no text`, "Name a class or an address."),
      };
    return { check: good, policy: pyText(value) };
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    return {
      check: failed("config", `${path}: ${error.message}`, "Correct the file; `sky` refuses it too."),
    };
  }
}

/** Which half of SkyPilot this config speaks for. */
function sideOf({ env }: DoctorHost): Check[] {
  const endpoint = env.SKYPILOT_API_SERVER_ENDPOINT;
  if (endpoint === undefined || endpoint === "")
    return [ok("side", "this host's config is read by `sky` here and by an API server started here")];
  return [
    warn(
      "side",
      `the API server at ${withoutPassword(endpoint)} applies the policy of its own config, not this one`,
      "Run this on the API server's host too.",
    ),
  ];
}

/** SkyPilot prints an address with its password; we do not. */
export function withoutPassword(text: string): string {
  return text.replace(/\/\/[^/@]*@/, "//...@");
}
