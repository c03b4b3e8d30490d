import { allocationSeconds } from "../bridge/campaign/allocation-time.ts";
import type { ClusterFound } from "../bridge/evidence/views.ts";
import type { Allocation, Campaign } from "../bridge/types.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import type { Allocations } from "./context.ts";
import type { Limits } from "./limits.ts";
import type { Sky, SkyProblem } from "./types.ts";

export interface AllocationOptions {
  readonly campaign: Campaign;
  readonly clusterName: string;
  readonly sky: Sky;
  readonly limits: Limits;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: (line: string) => void;
  /** Aborted when nothing is to be launched any more. */
  readonly closing?: AbortSignal;
  /** Whether a job may be on it: such an allocation is not replaced for being short of time. */
  readonly isBusy?: () => boolean;
}

/** How long an allocation that was looked at counts as there, as far as SkyPilot without a refresh says so too. */
const TRUST_MS = 600_000;
/** Less wall time than this is none. */
const LEAST_S = 90;

/** Looks at a cluster that could not be read, before that is an answer. */
const READ_TRIES = 3;

/** The one allocation of a run: made where there is none, looked at before it is used, given back in the right order. */
export function makeAllocations(options: AllocationOptions): Allocations {
  const { campaign, clusterName, sky, limits, nowMs, sleep, log } = options;
  const { resources, timeoutS } = campaign;
  let isTouched = false;
  let isDistrusted = false;
  let launching: Promise<unknown> | null = null;
  let known: {
    readonly allocation: Allocation;
    readonly launchedMs: number | null;
    readonly seenMs: number;
  } | null = null;

  const release = async (): Promise<Result<null, SkyProblem>> => {
    if (!isTouched) return ok(null);
    known = null;
    // What is given back before it is there comes all the same.
    if (launching !== null) await Promise.race([launching, sleep(limits.closeMs)]);
    const released = await releaseCluster(sky, clusterName);
    if (released.ok) {
      isTouched = false;
      isDistrusted = false;
    }
    return released;
  };
  const seen = async (): Promise<Result<ClusterFound, SkyProblem>> => {
    for (let tries = 1; ; tries++) {
      const view = await sky.cluster(clusterName);
      if (view.ok && view.value.state !== "ABSENT") isTouched = true;
      if (view.ok && !view.value.stale) return view;
      if (tries >= READ_TRIES || (!view.ok && !["transport", "timeout"].includes(view.error.kind))) {
        if (!view.ok) return view;
        return fail({
          kind: "transport",
          error: "SkyPilotControlPlaneError",
          message: `the cluster ${clusterName} cannot be reached; what SkyPilot remembers of it is not used`,
        });
      }
      await sleep(limits.reconnectMs);
    }
  };
  /** Why an allocation that is up has to be made anew first; null = it can be used. */
  const staleness = ({ launchedMs }: ClusterFound): string | null => {
    if (isDistrusted) return "its last job was lost with it";
    if (launchedMs === null || resources.allocationTime === null || options.isBusy?.() === true) return null;
    const wholeS = allocationSeconds(resources.allocationTime);
    const neededS = Math.max(timeoutS ?? 0, LEAST_S);
    const leftS = Math.round((launchedMs - nowMs()) / 1000 + wholeS);
    if (leftS >= neededS || wholeS < neededS) return null;
    return `it ends in ${Math.max(0, leftS)} s, and an evaluation may take ${timeoutS ?? "longer"}${timeoutS === null ? "" : " s"}`;
  };
  /**
   * The allocation of the last time, when one question without a refresh (half as long as one with) finds the same
   * nodes up: what a second evaluation costs beside its own calls.
   */
  const sameAsBefore = async (): Promise<Allocation | null> => {
    if (known === null || isDistrusted || nowMs() - known.seenMs > TRUST_MS) return null;
    const view = await sky.cluster(clusterName, "plain");
    if (!view.ok || view.value.state !== "UP" || staleness(view.value) !== null) return null;
    const { nodeNames, launchedMs } = view.value;
    if (nodeNames !== known.allocation.nodeNames || launchedMs !== known.launchedMs) return null;
    return incompatibility(campaign, clusterName, view.value) === null ? known.allocation : null;
  };

  const ensure = async (notice: (text: string) => void): Promise<Result<Allocation, SkyProblem>> => {
    const untilMs = nowMs() + limits.launchMs;
    const late = (): SkyProblem => ({
      kind: "timeout",
      error: "SkyPilotClusterNotReadyError",
      message: `the cluster ${clusterName} was not ready within ${limits.launchMs / 1000} s`,
    });
    let wasInit = false;
    const same = await sameAsBefore();
    if (same !== null) return ok(same);
    known = null;
    for (;;) {
      if (options.closing?.aborted === true)
        return fail({ kind: "refused", error: "RuntimeError", message: "the bridge is closing" });
      const view = await seen();
      if (!view.ok) return view;
      const { state } = view.value;
      if (state === "UP") {
        const stale = staleness(view.value);
        if (stale === null) {
          const wrong = incompatibility(campaign, clusterName, view.value);
          if (wrong !== null) return fail(wrong);
          const allocation = { clusterName, nodeNames: view.value.nodeNames };
          known = { allocation, launchedMs: view.value.launchedMs, seenMs: nowMs() };
          return ok(allocation);
        }
        notice(`The allocation is replaced: ${stale}.`);
        const released = await release();
        if (!released.ok) return released;
      } else if (state === "INIT") {
        if (nowMs() >= untilMs) return fail(late());
        if (!wasInit)
          notice("The allocation is being made; the cluster's own queue decides how long it takes.");
        wasInit = true;
        await sleep(limits.queuePollMs);
        continue;
      } else if (state === "UNKNOWN") {
        return fail({
          kind: "output",
          error: "SkyPilotClusterNotReadyError",
          message: `the cluster ${clusterName} is in a state that is not known`,
        });
      } else if (state === "DOWN" || state === "STOPPED") {
        if (wasInit) {
          return fail({
            kind: "refused",
            error: "SkyPilotClusterNotReadyError",
            message: `the cluster ${clusterName} became ${state} while it was being made`,
          });
        }
        const down = await sky.down(clusterName);
        if (!down.ok) return down;
      }
      const leftS = (untilMs - nowMs()) / 1000;
      if (leftS <= 0) return fail(late());
      log(
        `launching ${clusterName} (${resources.acceleratorType}:${resources.acceleratorsPerNode} on ${resources.infra})`,
      );
      isTouched = true;
      isDistrusted = false;
      const launch = sky.launch(clusterName, resources, leftS);
      launching = launch;
      const launched = await launch;
      launching = null;
      if (launched.ok) continue;
      // A launch that failed may have left a cluster that looks usable and is not; a slow one is undone as well.
      const released = await release();
      if (!released.ok) isDistrusted = true;
      return launched;
    }
  };

  const look = async (allocation: Allocation): Promise<"same" | "gone" | "unreachable"> => {
    for (let absent = 0; ; ) {
      const view = await sky.cluster(allocation.clusterName);
      if (!view.ok || view.value.stale) return "unreachable";
      const { state, nodeNames } = view.value;
      if (state === "UP") {
        const other =
          allocation.nodeNames !== null && nodeNames !== null && allocation.nodeNames !== nodeNames;
        return other ? "gone" : "same";
      }
      if (state === "INIT" || state === "UNKNOWN") return "same";
      absent++;
      if (absent >= 2) return "gone";
      await sleep(limits.secondLookMs);
    }
  };
  return {
    ensure,
    look,
    release,
    distrust: () => {
      known = null;
      isDistrusted = true;
    },
  };
}

/**
 * Cancels all jobs, then gives the cluster back: `down` alone leaves the allocation of a busy one behind. While the
 * cluster cannot be reached nothing is given back, since SkyPilot would forget what goes on.
 */
export async function releaseCluster(sky: Sky, clusterName: string): Promise<Result<null, SkyProblem>> {
  const cancelled = await sky.cancel(clusterName, "all");
  if (!cancelled.ok && ["transport", "timeout", "certificate", "missing-cli"].includes(cancelled.error.kind))
    return cancelled;
  return await sky.down(clusterName);
}

/** What of an existing cluster is not what the campaign needs; null where all that sky says fits. */
function incompatibility(campaign: Campaign, clusterName: string, view: ClusterFound): SkyProblem | null {
  const { resources } = campaign;
  const has = view.resources;
  if (has === null) return null;
  const wanted = `${resources.acceleratorType}:${resources.acceleratorsPerNode}`;
  const infra = resources.infra.toLowerCase().split("/").slice(0, 2).join("/");
  const wrong =
    has.accelerators !== null && has.accelerators.toLowerCase() !== wanted.toLowerCase()
      ? `has ${has.accelerators}, not ${wanted}`
      : has.nodes !== null && has.nodes !== resources.nodes
        ? `has ${has.nodes} nodes, not ${resources.nodes}`
        : has.infra !== null && !sameInfra(has.infra.toLowerCase(), infra)
          ? `is on ${has.infra}, not on ${resources.infra}`
          : null;
  if (wrong === null) return null;
  return {
    kind: "refused",
    error: "SkyPilotClusterIncompatible",
    message: `the existing cluster ${clusterName} ${wrong}; release it, or name another run`,
  };
}

function sameInfra(has: string, wanted: string): boolean {
  return has === wanted || wanted.startsWith(`${has}/`) || has.startsWith(`${wanted}/`);
}
