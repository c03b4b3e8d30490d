/**
 * The world behind the stand-in `sky`: one folder, plain files, no daemon. A job really runs (under bash, in a process
 * group of its own); what it printed and how it ended are files that it leaves behind itself.
 *
 * `WORLD/scenario.json`   what goes wrong and when (`Scenario`), written by the test
 * `WORLD/clusters/NAME/`  cluster.json, home/ (what the job sees as HOME, with sky_workdir in it), jobs/ID/
 * `WORLD/slurm/ID.json`   each allocation and its state as Slurm sees it: one that is RUNNING at the end has leaked
 * `WORLD/flags/`          sshd-down, controller-down, certificate-expired, cut (followers lose their connection)
 * `WORLD/calls.jsonl`     every call with its arguments and task document; exits.jsonl how each ended
 */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/** Why an allocation ends; `vanished` = nobody says. */
export type Cause = "time-limit" | "cancelled" | "preempted" | "node-failure" | "vanished";

/** A change of the world, made by a rule or by `ctl`. `cluster`: a name, or "*" for each. */
export type Change =
  | { readonly do: "end"; readonly cluster: string; readonly cause: Cause; readonly purge?: boolean }
  | { readonly do: "status"; readonly cluster: string; readonly status: string }
  | { readonly do: "drop"; readonly cluster: string }
  | {
      readonly do: "job";
      readonly cluster: string;
      readonly job: number | "last";
      readonly status: string;
    }
  | { readonly do: "flag"; readonly flag: Flag; readonly on: boolean }
  | { readonly do: "cut" };

export type Flag = "sshd-down" | "controller-down" | "certificate-expired";

/** One intervention: the first rule that fits a call is used. */
export interface Rule {
  /** Sub-command, or "*". */
  readonly on: string;
  /** Which call of that sub-command, from 1; absent = each. */
  readonly nth?: number;
  /** A regular expression that the joined arguments must contain. */
  readonly match?: string;
  readonly delayS?: number;
  readonly hang?: boolean;
  /** Starts a child that holds the pipes open and ignores being asked to end, then hangs. */
  readonly hangChild?: boolean;
  readonly stdout?: string;
  readonly stderr?: string;
  /** Prints so many bytes of nonsense first. */
  readonly flood?: number;
  readonly before?: readonly Change[];
  readonly after?: readonly Change[];
  /** Leaves with this code instead of doing the work. */
  readonly exit?: number;
  /** Does the work silently, prints nothing of it, and leaves with `exitAfter`: the reply is lost. */
  readonly mute?: boolean;
  readonly exitAfter?: number;
  /** logs: stops after so many lines or bytes of the job's output, then `after`, and leaves with `exitAfter` (255). */
  readonly cutLines?: number;
  readonly cutBytes?: number;
}

export interface Scenario {
  /** `decorated` is what SkyPilot 0.13 prints on Slurm. */
  readonly style?: "plain" | "decorated";
  /** Lines printed before every JSON document and every log. */
  readonly banner?: readonly string[];
  /** What `queue` does about a cluster that is gone: `{}` with exit 0 as 0.13 does, or exit 1. */
  readonly queueMissing?: "empty" | "error";
  /** Every call takes at least so long. */
  readonly delayS?: number;
  /** An allocation ends by itself after so many seconds. */
  readonly allocationS?: number;
  readonly allocationCause?: Cause;
  readonly launchStatus?: "UP" | "INIT";
  /** A launch waits so long in the cluster's queue; its cluster is INIT and its allocation PENDING meanwhile. */
  readonly pendingS?: number;
  /** Status calls until INIT becomes UP (2). */
  readonly initPolls?: number;
  /** Queue calls in which a new job does not show yet. */
  readonly visibleAfter?: number;
  /** Seconds a job has between being asked to end and being killed when its allocation ends (0.3). */
  readonly killWaitS?: number;
  /** A result file under /tmp of the benchmark is kept inside the world, so that it can only come in-band (true). */
  readonly privateTmp?: boolean;
  /** Exec of a task whose resources differ from the cluster's fails (true). */
  readonly strictResources?: boolean;
  /** Whether a plain status names the nodes (true). */
  readonly nodeNames?: boolean;
  readonly clusters?: Readonly<
    Record<string, { status?: string; num_nodes?: number; resources?: Record<string, unknown> }>
  >;
  readonly rules?: readonly Rule[];
}

export interface Cluster {
  name: string;
  status: string;
  launchedAt: number;
  numNodes: number;
  resources: Record<string, unknown>;
  slurmJob: number;
  /** Why the allocation ended; null while it lives. */
  ended: Cause | null;
  polls: number;
  /** When the cluster's queue lets it run, seconds since the epoch; absent = it did not wait. */
  pendingUntil?: number;
}

export interface Job {
  id: number;
  name: string;
  pid: number;
  submittedAt: number;
  slurmJob: number;
  resources: string;
  hidden: number;
}

export const ACTIVE = ["INIT", "PENDING", "SETTING_UP", "RUNNING"];

export class World {
  readonly scenario: Scenario;

  constructor(readonly root: string) {
    mkdirSync(join(root, "clusters"), { recursive: true });
    mkdirSync(join(root, "slurm"), { recursive: true });
    mkdirSync(join(root, "flags"), { recursive: true });
    mkdirSync(join(root, "counts"), { recursive: true });
    const path = join(root, "scenario.json");
    this.scenario = existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Scenario) : {};
    for (const [name, is] of Object.entries(this.scenario.clusters ?? {})) {
      if (this.claim(`given-${name}`) !== 1) continue;
      this.newCluster(name, is.resources ?? {}, is.num_nodes ?? 1, is.status ?? "UP");
    }
    this.expire();
  }

  /** The next number of a counter, from 1; two processes never get the same. */
  claim(counter: string): number {
    const folder = join(this.root, "counts", counter);
    mkdirSync(folder, { recursive: true });
    for (let number = readdirSync(folder).length + 1; ; number++) {
      try {
        mkdirSync(join(folder, String(number)));
        return number;
      } catch (error) {
        if ((error as { code?: string }).code !== "EEXIST") throw error;
      }
    }
  }

  flag(name: Flag): boolean {
    return existsSync(join(this.root, "flags", name));
  }

  folder(name: string): string {
    return join(this.root, "clusters", name);
  }

  names(): string[] {
    return readdirSync(join(this.root, "clusters")).filter((name) => this.cluster(name) !== null);
  }

  cluster(name: string): Cluster | null {
    return readJson<Cluster>(join(this.folder(name), "cluster.json"));
  }

  save(cluster: Cluster): void {
    mkdirSync(this.folder(cluster.name), { recursive: true });
    writeJson(join(this.folder(cluster.name), "cluster.json"), cluster);
  }

  newCluster(name: string, resources: Record<string, unknown>, numNodes: number, status: string): Cluster {
    const slurmJob = this.claim("slurm");
    const cluster: Cluster = {
      name,
      status,
      launchedAt: Date.now() / 1000,
      numNodes,
      resources,
      slurmJob,
      ended: null,
      polls: 0,
    };
    this.slurm(slurmJob, "RUNNING", name);
    this.save(cluster);
    return cluster;
  }

  /** Its allocation, where its turn has come. */
  admit(cluster: Cluster): Cluster {
    if (cluster.pendingUntil === undefined || Date.now() / 1000 < cluster.pendingUntil) return cluster;
    const { pendingUntil: _, ...rest } = cluster;
    const up: Cluster = { ...rest, status: "UP", launchedAt: Date.now() / 1000 };
    this.slurm(cluster.slurmJob, "RUNNING", cluster.name);
    this.save(up);
    return up;
  }

  slurm(job: number, state: string, cluster: string): void {
    writeJson(join(this.root, "slurm", `${job}.json`), { job, state, cluster });
  }

  slurmStates(): { job: number; state: string; cluster: string }[] {
    return readdirSync(join(this.root, "slurm"))
      .map((name) =>
        readJson<{ job: number; state: string; cluster: string }>(join(this.root, "slurm", name)),
      )
      .filter((row) => row !== null)
      .sort((a, b) => a.job - b.job);
  }

  jobFolder(cluster: string, id: number): string {
    return join(this.folder(cluster), "jobs", String(id));
  }

  /** Newest first, as `sky queue` has them. */
  jobs(cluster: string): Job[] {
    const folder = join(this.folder(cluster), "jobs");
    if (!existsSync(folder)) return [];
    return readdirSync(folder)
      .map((id) => readJson<Job>(join(folder, id, "job.json")))
      .filter((job) => job !== null)
      .sort((a, b) => b.id - a.id);
  }

  status(cluster: string, id: number): string {
    const folder = this.jobFolder(cluster, id);
    const said = readText(join(folder, "status"));
    if (said !== null) return said;
    const exit = readText(join(folder, "exit"));
    if (exit === null || !exit.endsWith("\n")) return "RUNNING";
    return exit.trim() === "0" ? "SUCCEEDED" : "FAILED";
  }

  setStatus(cluster: string, id: number, status: string): void {
    writeFileSync(join(this.jobFolder(cluster, id), "status"), status);
  }

  change(changes: readonly Change[] | undefined): void {
    for (const one of changes ?? []) {
      if (one.do === "flag") {
        const path = join(this.root, "flags", one.flag);
        if (one.on) writeFileSync(path, "");
        else rmSync(path, { force: true });
      } else if (one.do === "cut") {
        writeFileSync(join(this.root, "flags", "cut"), String(Date.now() + Math.random()));
      } else {
        for (const name of one.cluster === "*" ? this.names() : [one.cluster]) this.changeCluster(name, one);
      }
    }
  }

  private changeCluster(name: string, one: Exclude<Change, { do: "flag" } | { do: "cut" }>): void {
    const cluster = this.cluster(name);
    if (one.do === "job") {
      const id = one.job === "last" ? this.jobs(name)[0]?.id : one.job;
      const job = this.jobs(name).find((each) => each.id === id);
      if (job === undefined) return;
      if (!ACTIVE.includes(one.status)) killGroup(job.pid, "SIGKILL");
      this.setStatus(name, job.id, one.status);
    } else if (one.do === "status") {
      const is = cluster ?? this.newCluster(name, {}, 1, one.status);
      if (["STOPPED", "DOWN"].includes(one.status) && is.ended === null) this.endAllocation(is, "vanished");
      this.save({ ...is, status: one.status });
    } else if (cluster !== null) {
      if (cluster.ended === null) this.endAllocation(cluster, one.do === "drop" ? "vanished" : one.cause);
      if (one.do === "drop" || one.purge === true) this.forget(name);
    }
  }

  /** Slurm takes the allocation away: SkyPilot still says UP until its next refresh. */
  endAllocation(cluster: Cluster, cause: Cause): void {
    cluster.ended = cause;
    this.save(cluster);
    const waitS = this.scenario.killWaitS ?? 0.3;
    for (const job of this.jobs(cluster.name)) {
      if (this.status(cluster.name, job.id) !== "RUNNING" || job.slurmJob !== cluster.slurmJob) continue;
      if (cause === "node-failure") killGroup(job.pid, "SIGKILL");
      else {
        killGroup(job.pid, "SIGTERM");
        for (let waited = 0; waited < waitS && isAlive(job.pid); waited += 0.01) Bun.sleepSync(10);
        killGroup(job.pid, "SIGKILL");
      }
      // SkyPilot's driver outlives the step for a moment and calls it the program's failure.
      this.setStatus(cluster.name, job.id, "FAILED");
    }
    const state = {
      "time-limit": "TIMEOUT",
      cancelled: "CANCELLED",
      preempted: "PREEMPTED",
      "node-failure": "NODE_FAIL",
      vanished: "CANCELLED",
    }[cause];
    this.slurm(cluster.slurmJob, state, cluster.name);
  }

  /** SkyPilot's record goes; the job database stays behind on the node. */
  forget(name: string): void {
    rmSync(join(this.folder(name), "cluster.json"), { force: true });
  }

  private expire(): void {
    const limit = this.scenario.allocationS;
    if (limit === undefined) return;
    for (const name of this.names()) {
      const cluster = this.cluster(name);
      if (cluster === null || cluster.ended !== null || Date.now() / 1000 - cluster.launchedAt < limit)
        continue;
      this.endAllocation(cluster, this.scenario.allocationCause ?? "time-limit");
    }
  }

  record(file: string, line: Record<string, unknown>): void {
    appendFileSync(join(this.root, file), `${JSON.stringify(line)}\n`);
  }
}

export function killGroup(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // ended already
  }
}

function isAlive(pid: number): boolean {
  const stat = readText(`/proc/${pid}/stat`);
  return stat !== null && !/\) [ZX] /.test(stat);
}

export function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function readJson<T>(path: string): T | null {
  const text = readText(path);
  return text === null ? null : (JSON.parse(text) as T);
}

function writeJson(path: string, value: unknown): void {
  const temporary = `${path}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify(value));
  renameSync(temporary, path);
}
