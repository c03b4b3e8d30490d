import type { ResolvedResources } from "../bridge/types.ts";
import { fail, type Result } from "../lib/result.ts";
import type { Patience } from "./patience.ts";
import type { Sky, SkyProblem } from "./types.ts";

export interface LauncherOptions {
  readonly sky: Sky;
  readonly clusterName: string;
  readonly resources: ResolvedResources;
  readonly pollMs: number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: (line: string) => void;
}

/** Launches a cluster, and looks from time to time whether that is still under way. */
export class Launcher {
  #under: { readonly call: Promise<unknown>; readonly giveUp: AbortController } | null = null;

  constructor(readonly options: LauncherOptions) {}

  /** Ends with the launch, when `patience` is over, or at once where `stopped` comes first (null; it goes on then). */
  async launch(
    patience: Patience,
    tell: () => void,
    stopped: Promise<null>,
  ): Promise<Result<null, SkyProblem> | null> {
    const { sky, clusterName, resources, pollMs, sleep, log } = this.options;
    const { acceleratorType, acceleratorsPerNode, infra } = resources;
    log(`launching ${clusterName} (${acceleratorType}:${acceleratorsPerNode} on ${infra})`);
    const giveUp = new AbortController();
    const call = sky.launch(clusterName, resources, giveUp.signal).finally(() => {
      this.#under = null;
    });
    this.#under = { call, giveUp };
    for (let waitMs = pollMs / 3; ; waitMs = pollMs) {
      const ended = await Promise.race([call, stopped, sleep(waitMs).then(() => "look" as const)]);
      if (ended !== "look") return ended;
      // Without a refresh: the launch itself has the cluster's lock, and its own record is what is asked for.
      const view = await sky.cluster(clusterName, "plain");
      if (!view.ok) patience.unreachable();
      else if (view.value.state === "INIT") tell();
      else patience.unseen();
      const why = patience.over();
      if (why === null) continue;
      giveUp.abort();
      await call;
      return fail(why);
    }
  }

  /**
   * Ends a launch that is under way: one that is about to succeed is waited for `patienceMs`. True where there was one:
   * what it began may come yet.
   */
  async end(patienceMs: number): Promise<boolean> {
    const under = this.#under;
    if (under === null) return false;
    await Promise.race([under.call, this.options.sleep(patienceMs)]);
    under.giveUp.abort();
    await under.call;
    return true;
  }
}
