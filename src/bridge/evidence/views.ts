import { fail, ok, type Result } from "../../lib/result.ts";
import { withoutAnsi } from "./ansi.ts";
import { jsonIn } from "./json-output.ts";

export type ClusterState = "INIT" | "UP" | "STOPPED" | "DOWN" | "ABSENT" | "UNKNOWN";

export type JobState =
  | "INIT"
  | "PENDING"
  | "SETTING_UP"
  | "RUNNING"
  | "SUCCEEDED"
  | "FAILED"
  | "FAILED_SETUP"
  | "FAILED_DRIVER"
  | "CANCELLED";

/** One cluster as `sky status --output json NAME` told it. */
export interface ClusterFound {
  readonly state: ClusterState;
  /** `job<slurm id>-<node>`, from a status without refresh; null when sky did not say. */
  readonly nodeNames: string | null;
  /** What sky recorded of its resources, for the compatibility check; null = not said. */
  readonly resources: {
    readonly nodes: number | null;
    readonly infra: string | null;
    readonly accelerators: string | null;
  } | null;
  /** sky could not reach the cluster and answered from memory. */
  readonly stale: boolean;
  /** It did so without a word: as a rule because a launch of that very cluster, in a queue for hours maybe, has its lock. */
  readonly isSilent?: boolean;
  readonly launchedMs: number | null;
  /** Text around the JSON, for the evidence table. */
  readonly notice: string;
}

/** One cluster's jobs as `sky queue NAME --output json` told them. */
export interface QueueFound {
  readonly jobs: readonly {
    readonly id: number;
    readonly name: string;
    readonly state: JobState;
    readonly startedMs: number | null;
  }[];
  /** An answer without the cluster's key is no proof of anything; `notice` holds what sky said before it. */
  readonly complete: boolean;
  readonly notice: string;
}

const CLUSTER_STATES: readonly string[] = ["INIT", "UP", "STOPPED", "DOWN"];
const JOB_STATES: readonly string[] = [
  "INIT",
  "PENDING",
  "SETTING_UP",
  "RUNNING",
  "SUCCEEDED",
  "FAILED",
  "FAILED_SETUP",
  "FAILED_DRIVER",
  "CANCELLED",
];

/** Texts by which `status --refresh` says that it could not look, and answers from memory. */
const NOT_REFRESHED =
  /Failed to refresh status|Failed to query|\. Retrying\.|Unable to contact slurm controller/;

/** How much older than the question a refreshed record may be: whole seconds, and two clocks. */
const CLOCKS_MS = 5000;

/**
 * Reads `status --output json NAME` (a list, or `{clusters: [...]}` as other versions have it). A cluster that is not in
 * the answer is ABSENT, which after one answer proves nothing. `refreshedMs`: when a status with --refresh was asked;
 * null = without. A record that is older than that is `stale`: sky leaves the old one without a word when it gets no
 * lock on the cluster or no answer from Slurm. The error says what was malformed, without quoting it.
 */
export function readCluster(
  stdout: string,
  name: string,
  refreshedMs: number | null,
): Result<ClusterFound, string> {
  const found = jsonIn(stdout);
  if (!found.ok) return fail("status printed no JSON");
  const { value, notice } = found.value;
  const list = Array.isArray(value) ? value : (value as { clusters?: unknown }).clusters;
  if (!Array.isArray(list)) return fail("status JSON is not a list of clusters");
  if (!list.every((each) => isRecord(each) && typeof each.name === "string"))
    return fail("status JSON has an entry that is no cluster");
  const record = (list as Record<string, unknown>[]).find((each) => each.name === name);
  const updated = record?.status_updated_at;
  const failed = refreshedMs !== null && NOT_REFRESHED.test(notice);
  const isSilent =
    refreshedMs !== null &&
    !failed &&
    typeof updated === "number" &&
    updated * 1000 < refreshedMs - CLOCKS_MS;
  const stale = failed || isSilent;
  if (record === undefined)
    return ok({ state: "ABSENT", nodeNames: null, resources: null, stale, launchedMs: null, notice });
  const said = typeof record.status === "string" ? record.status.toUpperCase() : "";
  const launched = record.launched_at;
  return ok({
    state: CLUSTER_STATES.includes(said) ? (said as ClusterState) : "UNKNOWN",
    nodeNames: namesOf(record.node_names),
    resources: resourcesOf(record),
    stale,
    ...(isSilent ? { isSilent } : {}),
    launchedMs: typeof launched === "number" && launched > 0 ? Math.round(launched * 1000) : null,
    notice,
  });
}

function namesOf(said: unknown): string | null {
  if (typeof said === "string" && said !== "") return said;
  return Array.isArray(said) && said.length > 0 ? said.join(",") : null;
}

function resourcesOf(record: Record<string, unknown>): ClusterFound["resources"] {
  const cloud = typeof record.cloud === "string" ? record.cloud.toLowerCase() : null;
  const region = typeof record.region === "string" && record.region !== "" ? record.region : null;
  return {
    nodes: typeof record.nodes === "number" && Number.isInteger(record.nodes) ? record.nodes : null,
    infra: cloud === null ? null : region === null ? cloud : `${cloud}/${region}`,
    accelerators: acceleratorsOf(record.accelerators),
  };
}

/** `A10G:1` from the spelling of 0.13 (the text `{'A10G': 1}`), from a mapping, or from itself. */
function acceleratorsOf(said: unknown): string | null {
  if (isRecord(said)) {
    const [first] = Object.entries(said);
    return first === undefined ? null : `${first[0]}:${String(first[1])}`;
  }
  if (typeof said !== "string" || said === "") return null;
  const python = /^\{\s*['"]([^'"]+)['"]\s*:\s*([\d.]+)\s*\}$/.exec(said);
  return python === null ? said : `${python[1]}:${Number(python[2])}`;
}

/**
 * Reads `queue NAME --output json`: `{NAME: [...]}`. An answer without the cluster's key is incomplete: sky leaves with
 * 0 and `{}` alike for a cluster that is gone, dead, or out of reach, and only `notice` tells them apart.
 */
export function readQueue(stdout: string, name: string): Result<QueueFound, string> {
  const found = jsonIn(stdout);
  if (!found.ok) return fail("queue printed no JSON");
  const { value, notice } = found.value;
  if (Array.isArray(value)) return fail("queue JSON is not a mapping of clusters");
  const rows = (value as Record<string, unknown>)[name];
  if (rows === undefined) return ok({ jobs: [], complete: false, notice });
  if (!Array.isArray(rows)) return fail("queue JSON has no list of jobs");
  const jobs: QueueFound["jobs"][number][] = [];
  for (const row of rows as unknown[]) {
    if (!isRecord(row) || typeof row.job_id !== "number" || !Number.isInteger(row.job_id))
      return fail("queue JSON has a job without a numeric id");
    const state = typeof row.status === "string" ? row.status.replace(/^JobStatus\./, "").toUpperCase() : "";
    if (!JOB_STATES.includes(state)) return fail(`job ${row.job_id} has an unknown status`);
    jobs.push({
      id: row.job_id,
      name: typeof row.job_name === "string" ? row.job_name : "",
      state: state as JobState,
      startedMs: typeof row.start_at === "number" ? Math.round(row.start_at * 1000) : null,
    });
  }
  return ok({ jobs, complete: true, notice });
}

/** The id in `Job submitted, ID: 4`, the last one where there are several; null when sky did not say it. */
export function submittedId(stdout: string): number | null {
  const found = [...withoutAnsi(stdout).matchAll(/Job submitted, ID: (\d+)/g)].at(-1);
  return found === undefined ? null : Number(found[1]);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
