import type { RunRecord } from "../bridge/campaign/run-record.ts";
import { clusterName, resourceFingerprint } from "../bridge/names.ts";
import type { Campaign, JournalRecord } from "../bridge/types.ts";
import { endChildren } from "../host/child-stream.ts";
import { monotonicMs, nowMs } from "../host/clock.ts";
import { dirname, join } from "../host/paths.ts";
import { digest, writePrivateFile } from "../host/private-files.ts";
import { randomHex } from "../host/random.ts";
import { removeQuietly } from "../host/remove.ts";
import { prepareSocket } from "../host/socket-folder.ts";
import { Sleeper } from "../host/turn.ts";
import { GateError } from "../lib/errors.ts";
import { makeAllocations } from "./allocation.ts";
import type { Context } from "./context.ts";
import { openFileStore } from "./file-store.ts";
import { openJournal } from "./journal.ts";
import { clustersOf, type Left, readLeft } from "./left.ts";
import { LIMITS, type Limits } from "./limits.ts";
import { placesOf, pointerFile } from "./places.ts";
import { writeRunRecord } from "./run-record.ts";
import { type RunningDaemon, startDaemon } from "./server.ts";
import { secretsOf, skyOf } from "./sky-host.ts";
import { openStaging } from "./staging.ts";

export interface BridgeOptions {
  readonly campaign: Campaign;
  readonly record: RunRecord;
  readonly version: string;
  readonly pid: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userId: number;
  readonly log: (line: string) => void;
  readonly limits?: Partial<Limits>;
  readonly onTransition?: (record: JournalRecord) => void;
}

/**
 * A daemon that holds its state folder and listens on its sockets; nothing is asked of a cluster yet. Throws a
 * `GateError` that says what is in the way, and leaves nothing behind then.
 */
export async function startBridge(options: BridgeOptions): Promise<RunningDaemon> {
  const { campaign, env, log } = options;
  const places = placesOf(campaign.stateDir, digest, env, options.userId);
  const journal = await openJournal(campaign.stateDir);
  const pointer = pointerFile(campaign.socketPath, digest, env, options.userId);
  const forget = () => {
    removeQuietly(join(pointer.folder, pointer.name));
    removeQuietly(places.daemonFile);
  };
  try {
    for (const notice of journal.notices) log(notice);
    writeRunRecord(campaign.stateDir, options.record);
    for (const path of [campaign.socketPath, places.operatorSocket]) {
      const place = await prepareSocket(path, log);
      if (!place.ok) throw new GateError("settings-invalid", place.error.message, place.error.remedy);
    }
    const closing = new AbortController();
    const staging = await openStaging(join(campaign.stateDir, "snapshots"), {
      workspace: campaign.workspace,
      // Whatever of ours lies in the workspace is no part of the candidate.
      hide: [...campaign.hide, campaign.stateDir, campaign.socketPath],
      include: campaign.include,
      env,
    });
    const sleeper = new Sleeper();
    const context = contextOf(options, journal, staging, closing.signal, sleeper.sleep);
    const before = clustersOf(readLeft(campaign.stateDir)).filter((name) => name !== context.clusterName);
    const daemon = startDaemon({
      context,
      left: before,
      operatorSocket: places.operatorSocket,
      pid: options.pid,
      version: options.version,
      beginClosing: () => closing.abort(),
    });
    const left: Left & { readonly version: 1 } = {
      version: 1,
      pid: options.pid,
      runId: campaign.runId,
      workspaceId: campaign.workspaceId,
      profile: campaign.profile.name,
      socket: campaign.socketPath,
      operatorSocket: places.operatorSocket,
      clusterName: context.clusterName,
      otherClusters: before,
      sky: campaign.skyPath,
    };
    writePrivateFile(dirname(places.daemonFile), "daemon.json", `${JSON.stringify(left)}\n`);
    writePrivateFile(pointer.folder, pointer.name, `${JSON.stringify({ stateDir: campaign.stateDir })}\n`);
    return {
      ...daemon,
      close: async (reason) => {
        await daemon.close(reason);
        sleeper.end();
        endChildren();
        forget();
      },
    };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

function contextOf(
  options: BridgeOptions,
  journal: Context["journal"],
  staging: Context["staging"],
  closing: AbortSignal,
  sleep: Context["sleep"],
): Context {
  const { campaign, log } = options;
  const limits = { ...LIMITS, ...options.limits };
  const fingerprint = resourceFingerprint(campaign.resources, campaign.profile.acceleratorBackend, digest);
  const name = clusterName(campaign.runId, fingerprint, digest);
  const { allow, set } = campaign.environment;
  const sky = skyOf(campaign.skyPath, campaign.stateDir, options.env, secretsOf(campaign, options.env), [
    ...allow,
    ...Object.keys(set),
  ]);
  return {
    campaign,
    clusterName: name,
    sky,
    journal,
    staging: staging,
    files: openFileStore(join(campaign.stateDir, "files")),
    allocations: makeAllocations({
      campaign,
      clusterName: name,
      sky,
      limits,
      nowMs,
      awakeMs: monotonicMs,
      sleep,
      log,
      closing,
      isBusy: () => journal.all().some(({ phase }) => ["SUBMITTING", "SUBMITTED", "RUNNING"].includes(phase)),
    }),
    limits,
    nowMs,
    awakeMs: monotonicMs,
    sleep,
    randomHex,
    sha256: digest,
    env: options.env,
    log,
    onTransition: options.onTransition ?? (() => {}),
    closing,
  };
}
