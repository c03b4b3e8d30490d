import type { Result } from "../lib/result.ts";
import type { Sky, SkyProblem } from "./types.ts";

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
