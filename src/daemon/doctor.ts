import type { Campaign } from "../bridge/types.ts";
import type { doctorHost } from "../gate/doctor.ts";
import { dirname } from "../host/paths.ts";
import { socketPathProblem } from "../host/socket-folder.ts";
import type { Finding } from "../render/doctor.ts";
import { certificateEnd, sshSettings } from "./doctor-ssh.ts";

type Host = ReturnType<typeof doctorHost> & { readonly uid: number };

/** A finding; `unreachable` = something cannot be reached, not set up wrongly. */
export interface BridgeFinding extends Finding {
  readonly unreachable?: true;
}

/** Versions of SkyPilot that the bridge was tried with. */
const TESTED = /\b0\.13\.\d+/;
/** A certificate that ends sooner is told before it does. */
const SOON_MS = 8 * 3_600_000;

const ok = (check: string, message: string): BridgeFinding => ({ check, status: "ok", message, fix: null });
const warn = (check: string, message: string, fix: string): BridgeFinding => ({
  check,
  status: "warn",
  message,
  fix,
});
const failed = (check: string, message: string, fix: string): BridgeFinding => ({
  check,
  status: "fail",
  message,
  fix,
});
const skipped = (check: string, message: string): BridgeFinding => ({
  check,
  status: "skipped",
  message,
  fix: null,
});

/**
 * What stands between a bridge and its cluster: SkyPilot and its version, the places of socket and state, ssh to the
 * login node and the certificates that it takes. Without a campaign only what does not depend on one.
 */
export async function examineBridge(
  host: Host,
  campaign: Campaign | null,
  sky: string,
  nowMs: number,
): Promise<readonly BridgeFinding[]> {
  return [
    await checkSky(host, campaign?.skyPath ?? sky),
    ...(campaign === null
      ? [skipped("socket", "no campaign is named"), skipped("state", "no campaign is named")]
      : [checkSocket(host, campaign.socketPath), checkState(host, campaign.stateDir)]),
    ...(await checkSsh(host, campaign, nowMs)),
  ];
}

async function checkSky(host: Host, program: string): Promise<BridgeFinding> {
  const install = "Install it with `uv tool install 'skypilot[slurm]==0.13.0'`, or name it with --sky.";
  const ran = await host.run([program, "--version"]);
  if (ran.exit === null && !ran.timedOut)
    return failed("sky", `${program} cannot be started: ${ran.err}`, install);
  if (ran.timedOut)
    return failed("sky", `\`${program} --version\` did not end`, "Look at what it waits for.");
  const version = /\d+\.\d+\.\d+\S*/.exec(ran.out)?.[0];
  if (ran.exit !== 0 || version === undefined)
    return failed("sky", `${program} does not tell its version (exit code ${ran.exit})`, install);
  return TESTED.test(version)
    ? ok("sky", `${program} is SkyPilot ${version}`)
    : warn(
        "sky",
        `${program} is SkyPilot ${version}; the bridge was tried with 0.13`,
        "Install skypilot[slurm]==0.13.0, or try a short evaluation first.",
      );
}

function checkSocket(host: Host, path: string): BridgeFinding {
  const long = socketPathProblem(path);
  if (long !== null) return failed("socket", long.message, long.remedy);
  return checkFolder(host, "socket", dirname(path), "Name a socket in a folder of its own (mkdir -m 700).");
}

function checkState(host: Host, path: string): BridgeFinding {
  return checkFolder(host, "state", path, "Name another folder with --state.");
}

function checkFolder(host: Host, check: string, folder: string, fix: string): BridgeFinding {
  const info = host.info(folder);
  if (info === null) return ok(check, `${folder} will be made, closed to other users`);
  if (info.kind !== "directory") return failed(check, `${folder} is no folder`, fix);
  if (info.uid !== host.uid) return failed(check, `${folder} belongs to another user`, fix);
  return (info.mode & 0o077) === 0
    ? ok(check, `${folder} is closed to other users`)
    : warn(
        check,
        `${folder} is open to other users (${info.mode.toString(8).padStart(4, "0")})`,
        `chmod 700 ${folder}`,
      );
}

/** SkyPilot's own ssh file for Slurm: each Host in it is a cluster. */
async function checkSsh(host: Host, campaign: Campaign | null, nowMs: number): Promise<BridgeFinding[]> {
  const [cloud, cluster] = campaign?.resources.infra.split("/") ?? [];
  if (cloud !== "slurm" || cluster === undefined)
    return [skipped("ssh", campaign === null ? "no campaign is named" : "the profile does not go to Slurm")];
  const config = `${host.env.HOME ?? ""}/.slurm/config`;
  if (host.read(config) === null) {
    return [
      failed("ssh", `${config} cannot be read`, `Write a Host ${cluster} with HostName and User there.`),
    ];
  }
  const asked = await host.run(["ssh", "-F", config, "-G", cluster]);
  if (asked.exit !== 0)
    return [failed("ssh", `ssh does not take ${config}: ${lastLine(asked.err)}`, "Correct the file.")];
  const settings = sshSettings(asked.out, host.env.HOME ?? "");
  const findings: BridgeFinding[] = [];
  for (const path of settings.certificates) {
    if (host.info(path) === null) continue;
    const told = await host.run(["ssh-keygen", "-L", "-f", path]);
    findings.push(certificateFinding(path, told.exit === 0 ? certificateEnd(told.out) : null, nowMs));
  }
  if (findings.some(({ status }) => status === "fail"))
    return [...findings, skipped("ssh", "not tried with a certificate that is over")];
  const reach = await host.run([
    "ssh",
    "-F",
    config,
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=8",
    cluster,
    "true",
  ]);
  if (reach.exit === 0) findings.push(ok("ssh", `${cluster} (${settings.host}) answers`));
  else {
    const why = reach.timedOut ? "it did not answer in time" : lastLine(reach.err);
    findings.push({
      ...failed(
        "ssh",
        `${cluster} (${settings.host}) cannot be reached: ${why}`,
        `Try \`ssh -F ${config} ${cluster}\`.`,
      ),
      unreachable: true,
    });
  }
  return findings;
}

function certificateFinding(path: string, end: number | "forever" | null, nowMs: number): BridgeFinding {
  if (end === null)
    return warn("certificate", `${path} is no certificate that ssh-keygen reads`, "Renew it.");
  if (end === "forever") return ok("certificate", `${path} does not expire`);
  const hours = (end - nowMs) / 3_600_000;
  if (hours <= 0)
    return failed("certificate", `${path} expired ${Math.abs(hours).toFixed(1)} h ago`, "Renew it.");
  return end - nowMs < SOON_MS
    ? warn("certificate", `${path} expires in ${hours.toFixed(1)} h`, "Renew it before a long run.")
    : ok("certificate", `${path} is valid for ${hours.toFixed(1)} h`);
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
