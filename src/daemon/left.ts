import { join } from "../host/paths.ts";
import { readPrivateFile } from "../host/private-files.ts";
import { probeUnix, takeAway } from "../host/socket.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import type { DaemonStatus } from "./operator.ts";
import { releaseCluster } from "./release.ts";
import { skyOf } from "./sky-host.ts";

/** What a daemon writes down for those who come after it was killed. */
export interface Left {
  readonly pid: number;
  readonly runId: string;
  readonly workspaceId: string;
  readonly profile: string;
  readonly socket: string;
  readonly operatorSocket?: string;
  readonly clusterName: string;
  /** What daemons before it had left, under other names: resources that changed name another cluster. */
  readonly otherClusters?: readonly string[];
  readonly sky: string;
}

/** What the last daemon of a state folder left; null where none did, or it ended in order. */
export function readLeft(stateDir: string): Left | null {
  const text = readPrivateFile(join(stateDir, "daemon.json"), 65_536);
  if (text === null) return null;
  try {
    const left = JSON.parse(text) as Left;
    return typeof left.clusterName === "string" && typeof left.sky === "string" ? left : null;
  } catch {
    return null;
  }
}

/** The clusters that may still be there, its own first. */
export function clustersOf(left: Left | null): readonly string[] {
  if (left === null) return [];
  const others = Array.isArray(left.otherClusters) ? left.otherClusters : [];
  return [...new Set([left.clusterName, ...others.filter((name) => typeof name === "string")])];
}

/** The status of a daemon that is gone: what it was. */
export function leftStatus(stateDir: string): DaemonStatus | null {
  const left = readLeft(stateDir);
  if (left === null) return null;
  const { pid, runId, workspaceId, profile, clusterName, socket } = left;
  return {
    pid,
    program: "",
    state: "gone",
    runId,
    workspaceId,
    profile,
    clusterName,
    socket,
    evaluations: [],
  };
}

/**
 * Gives back what a killed daemon left, its sockets too where provably nobody listens on them; a sentence, or null where
 * there is nothing.
 */
export async function releaseLeft(
  stateDir: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Result<string, string> | null> {
  const left = readLeft(stateDir);
  if (left === null) return null;
  const sky = skyOf(left.sky, stateDir, env, []);
  for (const name of clustersOf(left)) {
    const released = await releaseCluster(sky, name);
    const isGone = !released.ok && released.error.kind === "no-cluster" && name !== left.clusterName;
    if (!released.ok && !isGone)
      return fail(`the allocation ${name} could not be released: ${released.error.message}`);
  }
  for (const path of [left.socket, left.operatorSocket ?? ""])
    if (path !== "" && (await probeUnix(path)) === "dead") await takeAway(path);
  return ok(`The allocation ${left.clusterName} is released.`);
}
