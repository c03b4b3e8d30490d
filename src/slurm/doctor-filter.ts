import { type Check, type DoctorHost, failed, ok, skipped, warn } from "./doctor-types.ts";
import { LUA_SETTINGS } from "./lua.ts";

/** Settings of the filter in force, as text. */
export type FilterSettings = Readonly<Record<string, string>>;

export interface Filter {
  readonly checks: readonly Check[];
  /** Null when the filter could not be loaded or is not ours. */
  readonly settings: FilterSettings | null;
}

const INSTALL =
  "Put it there: neurarch-gate print-lua >/tmp/cli_filter.lua && install -m 0644 /tmp/cli_filter.lua";

/** The Lua file: there, readable by everyone, in nobody else's hands, and loading under the Lua that Slurm links. */
export async function checkFilter(
  path: string,
  pluginDirs: readonly string[],
  host: DoctorHost,
): Promise<Filter> {
  const file = checkFile(path, host);
  if (file.status === "fail")
    return { checks: [file, skipped("filter-lua", "not looked at without the file")], settings: null };
  const { check, settings } = await checkLua(path, pluginDirs, host);
  return { checks: [file, check], settings };
}

function checkFile(path: string, host: DoctorHost): Check {
  const info = host.info(path);
  if (info === null)
    return failed(
      "filter-file",
      `${path} does not exist, so Slurm refuses every submit on this host`,
      `${INSTALL} ${path}`,
    );
  if (info.kind !== "file") return failed("filter-file", `${path} is no regular file`, `${INSTALL} ${path}`);
  if (info.size === 0)
    return failed(
      "filter-file",
      `${path} is empty, so Slurm refuses every submit on this host`,
      `${INSTALL} ${path}`,
    );
  const mode = info.mode.toString(8).padStart(4, "0");
  const folder = unreachableFolder(path, host);
  if ((info.mode & 0o004) === 0)
    return failed(
      "filter-file",
      `${path} has mode ${mode}: users cannot read it, so Slurm refuses their submits`,
      `chmod 0644 ${path}`,
    );
  if (folder !== null)
    return failed(
      "filter-file",
      `Users cannot enter ${folder}, so Slurm refuses their submits`,
      `chmod a+x ${folder}`,
    );
  const foreign = foreignHands("filter-file", path, host);
  if (foreign !== null) return foreign;
  return ok("filter-file", `${path}, owned by ${ownerOf(info.uid)}, mode ${mode}`);
}

/** The first folder above a path that others may not pass; null when they may pass all. */
export function unreachableFolder(path: string, host: DoctorHost): string | null {
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
    const folder = path.slice(0, at);
    const info = host.info(folder);
    if (info !== null && (info.mode & 0o001) === 0) return folder;
  }
  return null;
}

/**
 * Whoever besides root could change a file, as a finding; null when nobody. Everyone is a failure, an owner a warning:
 * sites do keep /etc/slurm in the hands of a service account.
 */
export function foreignHands(check: string, path: string, host: DoctorHost): Check | null {
  const real = host.real(path) ?? path;
  const info = host.info(real);
  if (info === null) return null;
  const folder = real.slice(0, real.lastIndexOf("/")) || "/";
  const above = host.info(folder);
  const then = "whoever that is runs code in every submit";
  const fix = `chown root: ${real} && chmod go-w ${real} ${folder}`;
  if ((info.mode & 0o002) !== 0) return failed(check, `Everyone can write ${real}: ${then}`, fix);
  // A sticky folder lets nobody replace a file of root.
  if (above !== null && (above.mode & 0o002) !== 0 && (above.mode & 0o1000) === 0)
    return failed(check, `Everyone can write into ${folder}: ${then}`, fix);
  const owner = [real, folder].find((each) => (host.info(each)?.uid ?? 0) !== 0);
  if (owner !== undefined)
    return warn(check, `${owner} belongs to ${ownerOf(host.info(owner)!.uid)}: ${then}`, fix);
  if ((info.mode & 0o020) !== 0 && info.gid !== 0)
    return warn(check, `Group ${info.gid} can write ${real}: ${then}`, fix);
  return null;
}

function ownerOf(uid: number): string {
  return uid === 0 ? "root" : `user ${uid}`;
}

/** Loads the file as Slurm does, behind a stand-in for its `slurm` table, and prints what it then has. */
const LOADER = `
local path = os.getenv("NEURARCH_DOCTOR_FILE")
local nothing = function() end
slurm = setmetatable({ SUCCESS = 0, ERROR = -1, FAILURE = -1, CLUSTER_NAME = "doctor" }, { __index = function(_, key)
  if tostring(key):find("^log") then return nothing end
end })
local chunk, why = loadfile(path)
if not chunk then print("syntax " .. tostring(why)) return end
local ok, fault = pcall(chunk)
if not ok then print("raised " .. tostring(fault)) return end
for _, name in ipairs({ "slurm_cli_setup_defaults", "slurm_cli_pre_submit", "slurm_cli_post_submit" }) do
  if type(_G[name]) ~= "function" then print("missing " .. name) end
end
if type(neurarch) == "table" and type(neurarch.pre_submit) == "function" then
  print("ours")
  for name, value in pairs(neurarch) do
    if type(value) ~= "function" and type(value) ~= "table" then print("set " .. tostring(name) .. "=" .. (tostring(value):gsub("%c", " "))) end
  end
end
`;

async function checkLua(
  path: string,
  pluginDirs: readonly string[],
  host: DoctorHost,
): Promise<{ check: Check; settings: FilterSettings | null }> {
  const linked = linkedLua(pluginDirs, host);
  const wanted = linked === null ? ["5.4", "5.3", "5.2", "5.1"] : [linked];
  const programs = wanted
    .flatMap((version) => [`lua${version}`, `lua-${version}`])
    .concat(linked === null ? ["lua"] : []);
  const search = host.env.PATH ?? "";
  const program = programs.map((name) => host.find(name, search)).find((each) => each !== null) ?? null;
  const which = linked === null ? "a Lua" : `Lua ${linked}, which this Slurm links`;
  if (program === null) {
    const text = host.read(path) ?? "";
    const settings = settingsInText(text);
    return {
      check: warn(
        "filter-lua",
        `${which[0]!.toUpperCase()}${which.slice(1)}, is not here as a program, so the file was not loaded`,
        `Install lua${linked ?? "5.4"} to have it tried, or rely on the dry submit below.`,
      ),
      settings,
    };
  }
  const { out, err, exit } = await host.run([program, "-e", LOADER], { NEURARCH_DOCTOR_FILE: path });
  const told = (kind: string) =>
    out
      .split("\n")
      .filter((line) => line.startsWith(`${kind} `))
      .map((line) => line.slice(kind.length + 1));
  const [wrong] = [...told("syntax"), ...told("raised")];
  if (wrong !== undefined || exit !== 0)
    return {
      check: failed(
        "filter-lua",
        `${path} does not load under ${which}: ${wrong ?? err.trim()}; Slurm then refuses every submit`,
        "Print the filter anew with neurarch-gate print-lua, or correct the line.",
      ),
      settings: null,
    };
  const missing = told("missing");
  if (missing.length > 0)
    return {
      check: failed(
        "filter-lua",
        `${path} does not define ${missing.join(", ")}, so Slurm refuses every submit`,
        "Define all three functions, as docs/slurm.md shows.",
      ),
      settings: null,
    };
  if (!out.split("\n").includes("ours"))
    return {
      check: failed(
        "filter-lua",
        `${path} is a filter of the site's own that does not load ours`,
        "Add pcall(dofile, ...) of our file and a call of neurarch.pre_submit, as docs/slurm.md shows.",
      ),
      settings: null,
    };
  const settings = Object.fromEntries(
    told("set").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  return { check: ok("filter-lua", `loads under ${which} (${program})`), settings };
}

/** Which Lua the plugin is linked against: the name of the library stands in its file. */
function linkedLua(pluginDirs: readonly string[], host: DoctorHost): string | null {
  const multiarch = host
    .list("/usr/lib")
    .filter((name) => name.endsWith("-linux-gnu"))
    .map((name) => `/usr/lib/${name}`);
  const usual = [...multiarch, "/usr/lib64", "/usr/lib", "/usr/local/lib", "/opt/slurm/lib"].flatMap(
    (lib) => [`${lib}/slurm-wlm`, `${lib}/slurm`],
  );
  for (const dir of [...pluginDirs, ...usual]) {
    const versions = new Set(
      [...(host.read(`${dir}/cli_filter_lua.so`) ?? "").matchAll(/liblua-?(5\.[1-4])(?:\.so|-)/g)].map(
        ([, version]) => version!,
      ),
    );
    if (versions.size === 1) return [...versions][0]!;
    if (versions.size > 1) return null;
  }
  return null;
}

/** The settings as they stand in the file's table, where no Lua can be asked. */
function settingsInText(text: string): FilterSettings | null {
  if (!/^neurarch = \{/m.test(text)) return null;
  const found = Object.keys(LUA_SETTINGS).flatMap((name) => {
    const match = new RegExp(`^ *${name} = (?:"((?:[^"\\\\]|\\\\.)*)"|([\\w.]+)),`, "m").exec(text);
    const value = match?.[1]?.replace(/\\(.)/g, "$1") ?? match?.[2];
    return value === undefined || value === "nil" ? [] : [[name, value] as const];
  });
  return Object.fromEntries(found);
}
