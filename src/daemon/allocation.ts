import { allocationSeconds } from "../bridge/campaign/allocation-time.ts";
import type { ClusterFound } from "../bridge/evidence/views.ts";
import type { Allocation, Campaign } from "../bridge/types.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import type { Allocations } from "./context.ts";
import { incompatibility } from "./incompatibility.ts";
import { Launcher } from "./launcher.ts";
import type { Limits } from "./limits.ts";
import { Patience } from "./patience.ts";
import { releaseCluster } from "./release.ts";
import type { Sky, SkyProblem } from "./types.ts";

export interface AllocationOptions {
  readonly campaign: Campaign;
  readonly clusterName: string;
  readonly sky: Sky;
  readonly limits: Limits;
  readonly nowMs: () => number;
  readonly awakeMs: () => number;
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
/** Launches in a row that say they made a cluster, and there is none. */
const MOST_LAUNCHES = 3;

const CLOSING: SkyProblem = { kind: "refused", error: "RuntimeError", message: "the bridge is closing" };
const isAway = ({ kind }: SkyProblem) => kind === "transport" || kind === "timeout";

/** The one allocation of a run: made where there is none, looked at before it is used, given back in the right order. */
export function makeAllocations(options: AllocationOptions): Allocations {
  const { campaign, clusterName, sky, limits, nowMs, sleep, log } = options;
  const { resources, timeoutS } = campaign;
  let isTouched = false;
  let isDistrusted = false;
  let making: Promise<Result<Allocation, SkyProblem>> | null = null;
  const launcher = new Launcher({ sky, clusterName, resources, pollMs: limits.pendingPollMs, sleep, log });
  const waiting = new Set<(text: string) => void>();
  const say = (text: string) => {
    for (const notice of [...waiting]) notice(text);
  };
  const isClosing = () => options.closing?.aborted === true;
  const closed = new Promise<null>((done) =>
    options.closing?.addEventListener("abort", () => done(null), { once: true }),
  );
  const pause = async (ms: number): Promise<null> => {
    await Promise.race([sleep(ms), closed]);
    return null;
  };
  let known: {
    readonly allocation: Allocation;
    readonly launchedMs: number | null;
    readonly seenMs: number;
  } | null = null;

  /** `again` = what was begun may come behind its release, so it is looked for once more. */
  const release = async (again = false): Promise<Result<null, SkyProblem>> => {
    if (!isTouched) return ok(null);
    known = null;
    // What waits in the queue is not waited for, but what is about to be there is.
    const wasLaunching = await launcher.end(limits.closeMs);
    let released = await releaseCluster(sky, clusterName);
    if (released.ok && (again || wasLaunching)) {
      const view = await sky.cluster(clusterName);
      if (view.ok && view.value.state !== "ABSENT") released = await releaseCluster(sky, clusterName);
    }
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
      if (view.ok && (!view.value.stale || (view.value.state === "INIT" && view.value.isSilent === true)))
        return view;
      if (tries >= READ_TRIES || (!view.ok && !isAway(view.error))) {
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

  /** It is not waited for any more, and must not come when nobody wants it. */
  const givenUp = async (why: SkyProblem): Promise<Result<never, SkyProblem>> => {
    const released = await release(why.kind === "timeout");
    if (released.ok) return fail(why);
    isDistrusted = true;
    return fail({
      ...why,
      message: `${why.message}, but it could not be given back: ${released.error.message}`,
    });
  };
  const tell = (patience: Patience) => {
    const notice = patience.pending();
    if (notice !== null) say(notice);
  };
  const make = async (): Promise<Result<Allocation, SkyProblem>> => {
    const same = await sameAsBefore();
    if (same !== null) return ok(same);
    known = null;
    const { launchTimeoutS } = campaign;
    const patience = new Patience({
      clusterName,
      boundMs: launchTimeoutS === null ? null : launchTimeoutS * 1000,
      unseenMs: limits.launchMs,
      unreachableMs: Math.max(limits.launchMs, limits.reconnectPatienceMs),
      nowMs,
      awakeMs: options.awakeMs,
    });
    let waitMs = 0;
    for (let launches = 0; ; ) {
      if (isClosing()) return fail(CLOSING);
      const view = await seen();
      if (!view.ok) {
        // One that waits in the queue keeps its place while the way to it is lost for a while.
        if (waitMs === 0 || !isAway(view.error)) return view;
        patience.unreachable();
        if (patience.over() !== null) return view;
        await pause(waitMs);
        continue;
      }
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
        say(`The allocation is replaced: ${stale}.`);
        const released = await release();
        if (!released.ok) return released;
      } else if (state === "INIT") {
        tell(patience);
        const why = patience.over();
        if (why !== null) return await givenUp(why);
        waitMs = Math.min(Math.max(limits.queuePollMs, waitMs * 1.5), limits.pendingPollMs);
        await pause(waitMs);
        continue;
      } else if (state === "UNKNOWN") {
        return fail({
          kind: "output",
          error: "SkyPilotClusterNotReadyError",
          message: `the cluster ${clusterName} is in a state that is not known`,
        });
      } else if (state === "DOWN" || state === "STOPPED") {
        if (waitMs > 0) {
          return fail({
            kind: "refused",
            error: "SkyPilotClusterNotReadyError",
            message: `the cluster ${clusterName} became ${state} while it was being made`,
          });
        }
        const down = await sky.down(clusterName);
        if (!down.ok) return down;
      }
      if (launches++ >= MOST_LAUNCHES) {
        return fail({
          kind: "refused",
          error: "SkyPilotClusterNotReadyError",
          message: `the cluster ${clusterName} was launched ${MOST_LAUNCHES} times, and is not there`,
        });
      }
      isTouched = true;
      isDistrusted = false;
      const launch = await launcher.launch(patience, () => tell(patience), closed);
      if (launch === null) return fail(CLOSING);
      // A launch that failed may have left a cluster that looks usable and is not; a slow one is undone as well.
      if (!launch.ok) return await givenUp(launch.error);
    }
  };
  const ensure = (notice: (text: string) => void, until?: AbortSignal) => {
    if (making !== null) notice("The allocation is still being made.");
    waiting.add(notice);
    until?.addEventListener("abort", () => waiting.delete(notice), { once: true });
    making ??= make().finally(() => {
      making = null;
      waiting.clear();
    });
    return making;
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
    release: () => release(),
    distrust: () => {
      known = null;
      isDistrusted = true;
    },
  };
}
