import { type FilterSettings, foreignHands, unreachableFolder } from "./doctor-filter.ts";
import { type Check, type DoctorHost, failed, ok, skipped, warn } from "./doctor-types.ts";

/** The path that the filter gives the shell it starts. */
const FILTER_PATH = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

/** File systems that live on another machine: every judged submit would wait for it. */
const NETWORK =
  /^(?:nfs\d?|cifs|smb\d?|smbfs|afs|auristorfs|lustre|gpfs|beegfs|ceph|glusterfs|orangefs|pvfs2|panfs|wekafs|9p|dvs|fuse\.(?:sshfs|glusterfs|ceph|s3fs|cvmfs2?|juicefs|gcsfuse|rclone|nfs.*)|fuse\.cvmfs|cvmfs)$/;

/** A job that no single card holds, in a model that the binary knows by itself. */
export const TRIAL_MODEL = "deepseek-ai/DeepSeek-V2";

/** The executable that the filter names: there for everyone, local, of this version, and answering. */
export async function checkBinary(
  settings: FilterSettings | null,
  host: DoctorHost,
): Promise<readonly Check[]> {
  const path = settings?.binary ?? null;
  if (settings === null || path === null) {
    const why = "not looked at: the filter's settings are not known";
    return ["binary", "binary-filesystem", "timeout-program", "settings", "answer"].map((check) =>
      skipped(check, why),
    );
  }
  const file = checkProgram(path, host);
  const timeout =
    host.find("timeout", FILTER_PATH) === null
      ? failed(
          "timeout-program",
          `timeout is in none of ${FILTER_PATH}, and the filter runs nothing without it`,
          "Install coreutils.",
        )
      : ok("timeout-program", "timeout is there");
  if (file.status === "fail") {
    const why = "not looked at without the binary";
    return [
      file,
      skipped("binary-filesystem", why),
      timeout,
      await checkSettings(settings, host),
      ...(await checkLedger(settings, host)),
      skipped("answer", why),
    ];
  }
  return [
    file.status === "warn" ? file : await checkVersion(path, host),
    checkFileSystem(path, host),
    timeout,
    await checkSettings(settings, host),
    ...(await checkLedger(settings, host)),
    await checkAnswer(path, settings, host),
  ];
}

function checkProgram(path: string, host: DoctorHost): Check {
  const info = host.info(path);
  const install = `install -m 0755 neurarch-gate ${path}, or print the filter with --binary`;
  if (!path.startsWith("/"))
    return failed(
      "binary",
      `binary is ${path}, which is no whole path`,
      "Print the filter with --binary /usr/local/bin/neurarch-gate.",
    );
  if (info === null)
    return failed("binary", `${path}, which the filter names, does not exist on this host`, install);
  if (info.kind !== "file") return failed("binary", `${path} is no regular file`, install);
  if ((info.mode & 0o001) === 0 || (info.mode & 0o004) === 0)
    return failed(
      "binary",
      `${path} has mode ${info.mode.toString(8).padStart(4, "0")}: users cannot run it`,
      `chmod 0755 ${path}`,
    );
  const folder = unreachableFolder(host.real(path) ?? path, host) ?? unreachableFolder(path, host);
  if (folder !== null)
    return failed(
      "binary",
      `Users cannot enter ${folder}, so they cannot run ${path}`,
      `chmod a+x ${folder}, or keep the binary elsewhere`,
    );
  const foreign = foreignHands("binary", path, host);
  if (foreign !== null) return foreign;
  return ok("binary", path);
}

async function checkVersion(path: string, host: DoctorHost): Promise<Check> {
  const { exit, out, err, timedOut } = await host.run([path, "--version"]);
  const version = /^neurarch-gate (\S+)/.exec(out)?.[1];
  if (exit !== 0 || version === undefined) {
    const why = timedOut
      ? "gave no answer"
      : `ended ${exit ?? "by a signal"}: ${(err || out).trim().split("\n")[0] ?? ""}`;
    return failed("binary", `${path} --version ${why}`, "Install the neurarch-gate for this machine.");
  }
  if (version !== host.version)
    return warn(
      "binary",
      `${path} is ${version}, and this is ${host.version}`,
      "Install the same one on every host, or run its own doctor.",
    );
  return ok("binary", `${path} is neurarch-gate ${version}`);
}

function checkFileSystem(path: string, host: DoctorHost): Check {
  const real = host.real(path) ?? path;
  let best: { point: string; type: string; flags: string } | null = null;
  for (const row of (host.read("/proc/self/mounts") ?? "").split("\n")) {
    const [, point, type, flags] = row.split(" ");
    if (point === undefined || type === undefined || flags === undefined) continue;
    const place = point.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const holds = place === "/" || real === place || real.startsWith(`${place}/`);
    // Of mounts over one point the later one is seen.
    if (holds && place.length >= (best?.point.length ?? 0)) best = { point: place, type, flags };
  }
  if (best === null) return skipped("binary-filesystem", "its mount is not to be found on this host");
  const where = `${real} lies on ${best.type} (${best.point})`;
  if (best.flags.split(",").includes("noexec"))
    return failed(
      "binary-filesystem",
      `${where}, from which nothing can be run (noexec)`,
      "Keep the binary elsewhere.",
    );
  if (NETWORK.test(best.type))
    return warn(
      "binary-filesystem",
      `${where}, a network file system: when it hangs, every GPU submit waits for it`,
      "Copy the binary to a local disk of each host.",
    );
  return ok("binary-filesystem", where);
}

/** Settings of the table that are a file or a value of the binary, by its flag. */
const FLAGS = [
  "mode",
  "config",
  "gpu_map",
  "default_gpu_type",
  "partition_map",
  "cards",
  "prices",
  "max_cost_usd",
  "headroom",
  "sizing",
  "cli",
  "plan_url",
];
const FILES = ["config", "gpu_map", "partition_map", "cards", "prices", "policy_file"];

async function checkSettings(settings: FilterSettings, host: DoctorHost): Promise<Check> {
  for (const name of FILES) {
    const path = settings[name];
    if (path === undefined) continue;
    const info = host.info(path);
    if (info === null)
      return failed(
        "settings",
        `${name} = ${path} does not exist on this host, so no job is judged`,
        "Put the file there, or leave the setting out.",
      );
    const folder = unreachableFolder(path, host);
    if ((info.mode & 0o004) === 0 || folder !== null)
      return failed(
        "settings",
        `${name} = ${path} cannot be read by users, so no job of theirs is judged`,
        folder === null ? `chmod 0644 ${path}` : `chmod a+x ${folder}`,
      );
  }
  const flags = FLAGS.filter((name) => settings[name] !== undefined).map((name) => [
    name.replaceAll("_", "-"),
    settings[name]!,
  ]);
  const problem = await host.settingsProblem(Object.fromEntries(flags));
  if (problem !== null)
    return failed("settings", `${problem.message}, so no job is judged`, problem.hint ?? "Correct it.");
  const mode = settings.mode ?? "that of the site file, or warn";
  const map = settings.gpu_map === undefined ? "; no gpu_map, so type names are matched to cards" : "";
  if (settings.mode === "reject" && settings.gpu_map === undefined && settings.config === undefined)
    return warn(
      "settings",
      `mode = reject without a gpu_map: a bare a100 is judged as the 40 GB card`,
      "Name the cluster's own types with --gpu-map.",
    );
  return ok("settings", `mode: ${mode}${map}`);
}

/**
 * The ledger of the filter, or of the site file that it names. A folder is written by every user under their own name,
 * so it has to be one like /tmp.
 */
async function checkLedger(settings: FilterSettings, host: DoctorHost): Promise<Check[]> {
  const path = settings.ledger;
  if (path?.startsWith("/") === true) {
    const make = `install -d -m 1733 ${path}`;
    const info = host.info(path);
    if (info?.kind !== "directory")
      return [warn("ledger", `${path} is no folder on this host, so verdicts are not recorded`, make)];
    if ((info.mode & 0o003) !== 0o003 || unreachableFolder(path, host) !== null)
      return [warn("ledger", `users cannot write into ${path}, so verdicts are not recorded`, make)];
    if ((info.mode & 0o1000) === 0)
      return [warn("ledger", `${path} has no sticky bit, so nothing is recorded there`, `chmod +t ${path}`)];
  }
  const flags = {
    ...(path === undefined ? {} : { ledger: path }),
    ...(settings.config === undefined ? {} : { config: settings.config }),
  };
  const states = (await host.ledger?.(flags)) ?? null;
  if (states === null) return path === undefined ? [] : [ok("ledger", `verdicts are recorded in ${path}`)];
  return states.map(({ problem, message, fix }) =>
    problem ? warn("ledger", message, fix ?? "") : ok("ledger", message),
  );
}

async function checkAnswer(path: string, settings: FilterSettings, host: DoctorHost): Promise<Check> {
  const words = [
    "slurm",
    "--lua-contract",
    "1",
    "--gres",
    "gpu:H100:1",
    "--model",
    TRIAL_MODEL,
    "--mode",
    "warn",
  ];
  const { exit, out, timedOut } = await host.run([path, ...words], { HF_HUB_OFFLINE: "1" });
  const seconds = settings.timeout_s ?? "5";
  if (timedOut)
    return failed(
      "answer",
      `${path} gave no answer to a request like the filter's`,
      `It has ${seconds} s in a submit; look at what holds it up.`,
    );
  if (exit === 0 && /^decision=warn$/m.test(out) && /^end$/m.test(out))
    return ok("answer", "judges a request as the filter makes it");
  return failed(
    "answer",
    `${path} did not answer a request like the filter's: ${out.trim().split("\n")[0] ?? ""}`,
    "Install the neurarch-gate that printed the filter.",
  );
}
