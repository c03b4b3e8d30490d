import { type Check, type DoctorHost, failed, ok, warn } from "./doctor-types.ts";
import { pluginNames, readSlurmConf } from "./slurm-conf.ts";

/** Where packages and configless clusters keep it (`default_slurm_config_file`, `/run/slurm/conf`). */
const USUAL_PLACES = [
  "/etc/slurm/slurm.conf",
  "/run/slurm/conf/slurm.conf",
  "/etc/slurm-llnl/slurm.conf",
  "/usr/local/etc/slurm.conf",
  "/opt/slurm/etc/slurm.conf",
];

export interface Conf {
  readonly checks: readonly Check[];
  /** slurm.conf; null when none was found. */
  readonly path: string | null;
  /** The Lua file that Slurm loads: beside slurm.conf, or as `CliFilterParameters` says (25.11). */
  readonly filter: string | null;
  /** Folders of plugins, most likely first. */
  readonly pluginDirs: readonly string[];
}

/** Finds slurm.conf as the commands do, and looks for the filter in it. */
export async function checkConf(host: DoctorHost, given: string | null): Promise<Conf> {
  const named = given ?? (host.env.SLURM_CONF === "" ? undefined : host.env.SLURM_CONF) ?? null;
  const usualPath = USUAL_PLACES.find((place) => host.info(place)?.kind === "file") ?? null;
  // scontrol is asked last: where it finds no configuration it looks for one on the network for a while.
  const path = named ?? usualPath ?? (await shownConf(host));
  const usual = USUAL_PLACES.join(", ");
  if (path === null) {
    const check = failed(
      "slurm-conf",
      `No slurm.conf was found: SLURM_CONF is not set, scontrol names none, and none is at ${usual}`,
      "Run this on a host that people submit from, or name the file with --slurm-conf.",
    );
    return { checks: [{ ...check, unreachable: true }], path: null, filter: null, pluginDirs: [] };
  }
  if (host.read(path) === null) {
    const why = host.info(path) === null ? "does not exist" : "cannot be read";
    const fix =
      given !== null ? "Correct --slurm-conf." : named !== null ? "Correct SLURM_CONF." : "Make it readable.";
    return {
      checks: [failed("slurm-conf", `${path} ${why}`, fix)],
      path: null,
      filter: null,
      pluginDirs: [],
    };
  }
  const from = given !== null ? "--slurm-conf" : named !== null ? "SLURM_CONF" : "the usual place";
  const values = readSlurmConf(path, (file) => host.read(file));
  const last = (key: string) => values.get(key)?.at(-1)?.value ?? null;
  const parameter = /(?:^|,)cli_filter_lua_path=([^,]+)/i.exec(last("clifilterparameters") ?? "")?.[1];
  return {
    checks: [ok("slurm-conf", `${path} (${from})`), checkPlugin(values.get("clifilterplugins") ?? [], path)],
    path,
    filter: parameter ?? `${path.slice(0, path.lastIndexOf("/"))}/cli_filter.lua`,
    pluginDirs: (last("plugindir") ?? "").split(":").filter((dir) => dir !== ""),
  };
}

function checkPlugin(lines: readonly { value: string; file: string; line: number }[], path: string): Check {
  const inForce = lines.at(-1);
  if (inForce === undefined)
    return failed(
      "plugin",
      `${path} has no CliFilterPlugins line`,
      "Add CliFilterPlugins=cli_filter/lua, once the filter is in place.",
    );
  const where = `${inForce.file}:${inForce.line}`;
  if (!pluginNames(inForce.value).includes("lua")) {
    const earlier = lines.find(({ value }) => pluginNames(value).includes("lua"));
    return failed(
      "plugin",
      `CliFilterPlugins=${inForce.value} (${where}) does not name lua${earlier === undefined ? "" : `, and replaces the line ${earlier.file}:${earlier.line}, which does`}`,
      `Write CliFilterPlugins=${[...pluginNames(inForce.value), "lua"].map((name) => `cli_filter/${name}`).join(",")}.`,
    );
  }
  if (lines.length > 1)
    return warn(
      "plugin",
      `CliFilterPlugins stands ${lines.length} times; only ${where} counts`,
      "Leave one line.",
    );
  return ok("plugin", `CliFilterPlugins=${inForce.value} (${where})`);
}

/** slurm.conf as `scontrol show config` names it; null where it cannot say. */
async function shownConf(host: DoctorHost): Promise<string | null> {
  const { exit, out } = await host.run(["scontrol", "show", "config"]);
  return exit === 0 ? (/^SLURM_CONF\s*=\s*(\/.*?)\s*$/m.exec(out)?.[1] ?? null) : null;
}
