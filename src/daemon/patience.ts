import type { SkyProblem } from "./types.ts";

/** Minutes of waiting at which it is said again that it goes on; after the last of them each hour. */
const NOTICES_MIN = [1, 5, 15, 30, 60];

export interface PatienceOptions {
  readonly clusterName: string;
  /** The campaign's own bound; null = none. */
  readonly boundMs: number | null;
  /** For an allocation of which nothing is seen, and for one that cannot be asked about. */
  readonly unseenMs: number;
  readonly unreachableMs: number;
  readonly nowMs: () => number;
  /** Does not go on while this machine sleeps: it hears nothing then, and that is nobody's silence. */
  readonly awakeMs: () => number;
}

/**
 * How long an allocation is waited for. A Slurm queue may hold one for hours: that is no fault, as long as sky says
 * that it is being made. What ends the waiting is the campaign's bound, or that nothing is heard of it any more.
 */
export class Patience {
  readonly #startMs: number;
  #heardMs: number;
  #reached = true;
  #told = -1;

  constructor(readonly options: PatienceOptions) {
    this.#startMs = options.nowMs();
    this.#heardMs = options.awakeMs();
  }

  /** Sky says that the allocation is being made. A sentence for those who wait, when it is time for one. */
  pending(): string | null {
    const { nowMs, awakeMs } = this.options;
    this.#heardMs = awakeMs();
    this.#reached = true;
    const minutes = Math.max(0, Math.floor((nowMs() - this.#startMs) / 60_000));
    const stage =
      NOTICES_MIN.filter((one) => one <= minutes).length + Math.max(0, Math.floor(minutes / 60) - 1);
    if (stage === this.#told) return null;
    const isFirst = this.#told === -1;
    this.#told = stage;
    return isFirst
      ? "The allocation is being made; the cluster's own queue decides how long it takes."
      : `The allocation is still waited for, ${minutes} min so far; the cluster's own queue decides how long it takes.`;
  }

  /** Sky could not be asked. */
  unreachable(): void {
    this.#reached = false;
  }

  /** Sky was asked, and knows of nothing that is being made. */
  unseen(): void {
    this.#reached = true;
  }

  /** Why it is not waited any longer; null = it is. */
  over(): SkyProblem | null {
    const { clusterName, boundMs, unseenMs, unreachableMs, nowMs, awakeMs } = this.options;
    const late = (message: string): SkyProblem => ({
      kind: "timeout",
      error: "SkyPilotClusterNotReadyError",
      message: `the cluster ${clusterName} ${message}`,
    });
    const waitedMs = nowMs() - this.#startMs;
    if (boundMs !== null && waitedMs >= boundMs)
      return late(`was not ready within ${boundMs / 1000} s (\`launch_timeout\`); it is given up`);
    const silentMs = awakeMs() - this.#heardMs;
    if (silentMs < (this.#reached ? unseenMs : unreachableMs)) return null;
    return late(
      this.#reached
        ? `was not ready within ${Math.round(waitedMs / 1000)} s, and nothing is seen of it in the cluster's queue`
        : `could not be asked about for ${Math.round(silentMs / 1000)} s while it was being made`,
    );
  }
}
