import { localDay, utcDay } from "../host/clock.ts";
import { dirname } from "../host/paths.ts";
import { absolute, findPolicyFile } from "./policy-find.ts";
import type { RewriteCards, TaskPolicy } from "./policy-task.ts";
import type { Settings } from "./settings.ts";

export type { RewriteCards, TaskPolicy };

/** What finding a job's policy file needs of the host. */
export interface PolicyHost {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The job's own file (a batch script, a task file); null where it has none. */
  readonly file: string | null;
  /**
   * Only the file that the site names counts: where the policy runs in a server, neither its folder nor its
   * environment is the user's.
   */
  readonly siteOnly?: boolean;
}

/** Finds and reads the policy file of one job; null when none applies. `workdir` is the folder that the job names. */
export type PolicyOf = (workdir: string | null) => Promise<TaskPolicy | null>;

/**
 * The policy file's way to a job: `--policy-file` (or the site's), else `NEURARCH_POLICY_FILE`, else the nearest
 * `.neurarch.yml` from the job's workdir, its file and the working directory. Without one this costs a few stat
 * calls; the reader is loaded only when there is one.
 */
export function makePolicy(settings: Settings, host: PolicyHost): PolicyOf {
  const { cwd, env, file } = host;
  if (settings.repoPolicy === "ignore") return async () => null;
  const whole = (path: string) => absolute(path, cwd, env.HOME);
  // Of a script on standard input there is no path to hold against a scope, nor a folder to look from.
  const jobFile = file === null || file === "-" || /^\/(?:proc|dev)\//.test(file) ? null : whole(file);
  const named = settings.policyFile ?? (host.siteOnly ? null : env.NEURARCH_POLICY_FILE) ?? null;
  const open = async (path: string): Promise<TaskPolicy> => {
    const { openTaskPolicy } = await import("./policy-task.ts");
    return openTaskPolicy(path, {
      utcDay: utcDay(),
      localDay,
      cluster: settings.cluster ?? (host.siteOnly ? null : clusterOf(env)),
      repoPolicy: settings.repoPolicy,
      table: settings.table,
      jobFile,
      cwd,
    });
  };
  const opened = new Map<string, Promise<TaskPolicy>>();
  return async (workdir) => {
    const path =
      named !== null && named !== ""
        ? whole(named)
        : host.siteOnly
          ? null
          : findPolicyFile([
              ...(workdir === null ? [] : [whole(workdir)]),
              ...(jobFile === null ? [] : [dirname(jobFile)]),
              cwd,
            ]);
    if (path === null) return null;
    const known = opened.get(path) ?? open(path);
    opened.set(path, known);
    return known;
  };
}

/** The cluster's name as the environment has it, where neither the scheduler nor the site says. */
function clusterOf(env: PolicyHost["env"]): string | null {
  return env.NEURARCH_CLUSTER || env.SLURM_CLUSTER_NAME || null;
}
