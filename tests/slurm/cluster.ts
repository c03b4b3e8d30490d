import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type LuaSettings, luaWithSettings } from "../../src/slurm/lua.ts";

const SCRIPT = resolve(import.meta.dir, "cluster.sh");
const FILTER = readFileSync(resolve(import.meta.dir, "../../lua/cli_filter.lua"), "utf8");

/** The version of the Slurm that is here, `22.05.8`; empty without one. */
export function slurmVersion(): string {
  const path = `${process.env.PATH}:/usr/sbin:/sbin`;
  // sbatch of newer versions tells it only where it finds a cluster.
  const program = Bun.which("slurmd", { PATH: path });
  return program === null ? "" : (/[\d.]+/.exec(Bun.spawnSync([program, "-V"]).stdout.toString())?.[0] ?? "");
}

/** How a Slurm command ended. */
export interface Submitted {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  readonly ms: number;
}

export interface Surroundings {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A file that becomes stdin. */
  readonly stdin?: string;
  /** Text that becomes stdin through a pipe. */
  readonly piped?: string;
}

/** True where a cluster can be started; under CI a missing Slurm is an error, not a reason to skip. */
export const slurmIsHere =
  ["slurmctld", "slurmd", "munged", "slurmdbd", "mariadbd"].every(
    (name) => Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }) !== null,
  ) && process.getuid?.() === 0;

/** A running private cluster whose filter can be replaced between submits. */
export class Cluster {
  readonly folder = mkdtempSync(join(tmpdir(), "gate-slurm-"));
  /** A user's home and working directory. */
  readonly home = mkdtempSync(join(tmpdir(), "gate-user-"));

  /**
   * With `accounting` a data base and slurmdbd run too, for `sacct` and for GPUs in a job's TRES; with `memory` jobs are
   * killed above the memory that they asked for.
   */
  static start({ accounting = false, memory = false } = {}): Cluster {
    const cluster = new Cluster();
    const words = [
      "bash",
      SCRIPT,
      "start",
      cluster.folder,
      ...(memory ? ["--accounting-memory"] : accounting ? ["--accounting"] : []),
    ];
    const child = Bun.spawnSync(words, { timeout: 120_000 });
    if (child.exitCode !== 0) {
      rmSync(cluster.folder, { recursive: true, force: true });
      throw new Error(`the cluster did not start: ${child.stderr.toString()}`);
    }
    return cluster;
  }

  stop(): void {
    const child = Bun.spawnSync(["bash", SCRIPT, "stop", this.folder], { timeout: 60_000 });
    if (child.exitCode !== 0) throw new Error(`the cluster did not stop: ${child.stderr.toString()}`);
    for (const folder of [this.folder, this.home]) rmSync(folder, { recursive: true, force: true });
  }

  /** Puts the shipped filter in force with these settings. */
  install(settings: LuaSettings): void {
    this.installText(luaWithSettings(FILTER, settings));
  }

  installText(lua: string): void {
    writeFileSync(join(this.folder, "etc/cli_filter.lua"), lua, { mode: 0o644 });
  }

  /** Runs a Slurm command as a user would; every variable of the test's own environment stays outside. */
  run(argv: readonly string[], { cwd, env, stdin, piped }: Surroundings = {}): Submitted {
    const started = performance.now();
    // A buffer as stdin would be a file in memory; only `cat` makes a pipe of it.
    const command = piped === undefined ? argv : ["sh", "-c", 'cat | exec "$@"', "sh", ...argv];
    const child = Bun.spawnSync([...command], {
      cwd: cwd ?? this.home,
      env: {
        PATH: process.env.PATH ?? "/usr/bin:/bin",
        HOME: this.home,
        USER: "root",
        HF_HUB_OFFLINE: "1",
        SLURM_CONF: join(this.folder, "etc/slurm.conf"),
        ...env,
      },
      stdin: stdin !== undefined ? Bun.file(stdin) : piped !== undefined ? Buffer.from(piped) : "ignore",
      timeout: 30_000,
    });
    return {
      exit: child.exitCode,
      out: child.stdout.toString(),
      err: child.stderr.toString(),
      ms: performance.now() - started,
    };
  }

  /** `sbatch --hold --parsable`: nothing runs, and stdout is the job's id and nothing else. */
  sbatch(words: readonly string[], surroundings?: Surroundings): Submitted {
    return this.run(["sbatch", "--hold", "--parsable", ...words], surroundings);
  }

  /** One field of `scontrol show job` for each component of a job. */
  field(jobId: string, name: string): (string | null)[] {
    const text = this.run(["scontrol", "show", "job", jobId.trim()]).out;
    return text
      .split(/\n\s*\n/)
      .filter((job) => job.includes("JobId="))
      .map((job) => new RegExp(`(?:^|\\s)${name}=(.*)$`, "m").exec(job)?.[1]?.trimEnd() ?? null);
  }

  /** All of `scontrol -d show job`, by job id; of an array the first record. */
  records(): ReadonlyMap<string, string> {
    const records = new Map<string, string>();
    for (const record of this.run(["scontrol", "-d", "show", "job"]).out.split(/\n\s*\n/)) {
      const id = /ArrayJobId=(\d+)/.exec(record)?.[1] ?? /JobId=(\d+)/.exec(record)?.[1];
      if (id !== undefined && !records.has(id)) records.set(id, record);
    }
    return records;
  }

  /** Waits until every job that is not held has run. */
  settle(patienceMs: number): void {
    const end = performance.now() + patienceMs;
    const rows = () => this.run(["squeue", "-h", "-o", "%r"]).out.split("\n").filter(Boolean);
    while (rows().some((reason) => reason !== "JobHeldUser") && performance.now() < end) Bun.sleepSync(300);
  }

  jobs(): number {
    return this.run(["squeue", "-h", "-o", "%A"]).out.split("\n").filter(Boolean).length;
  }
}
