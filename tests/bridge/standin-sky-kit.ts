/** Worlds of the stand-in `sky` for tests: made, watched, changed in mid-run and taken down again. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ACTIVE, type Change, type Cluster, killGroup, type Scenario, World } from "./standin-sky-world.ts";

export interface Call {
  readonly n: number;
  readonly command: string;
  readonly argv: readonly string[];
  readonly pid: number;
  /** Names of the environment it was given. */
  readonly env: readonly string[];
  readonly cwd: string;
  readonly task?: Record<string, unknown>;
  readonly taskText?: string;
  /** Null while it runs, and when it was killed. */
  readonly exit: number | null;
}

export interface Standin {
  readonly root: string;
  /** The executable, for `--sky`. It knows its world; no environment is needed. */
  readonly sky: string;
  calls(): Call[];
  /** The sub-commands called so far, in order. */
  commands(): string[];
  scenario(scenario: Scenario): void;
  change(...changes: Change[]): void;
  cluster(name: string): Cluster | null;
  /** Makes an allocation so many seconds older. */
  age(name: string, seconds: number): void;
  /** Allocations that Slurm still has: none may be left after a release. */
  running(): number[];
  slurm(): { job: number; state: string; cluster: string }[];
  /** Ends every job and removes the folder. */
  remove(): void;
}

export function standin(scenario: Scenario = {}): Standin {
  const root = mkdtempSync(join(tmpdir(), "standin-sky-"));
  const sky = join(root, "sky");
  const bun = resolve(import.meta.dir, "../../node_modules/.bin/bun");
  const script = join(import.meta.dir, "standin-sky.ts");
  const world = join(root, "world");
  mkdirSync(world);
  writeFileSync(sky, `#!/bin/sh\nSTANDIN_SKY_WORLD='${world}' exec '${bun}' '${script}' "$@"\n`);
  chmodSync(sky, 0o755);
  const lines = <T>(name: string): T[] => {
    try {
      return readFileSync(join(world, name), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as T);
    } catch {
      return [];
    }
  };
  const calls = (): Call[] => {
    const exits = new Map(lines<{ n: number; exit: number }>("exits.jsonl").map((row) => [row.n, row.exit]));
    return lines<Omit<Call, "exit">>("calls.jsonl").map((call) => ({
      ...call,
      exit: exits.get(call.n) ?? null,
    }));
  };
  const put = (next: Scenario) => writeFileSync(join(world, "scenario.json"), JSON.stringify(next));
  put(scenario);
  return {
    root: world,
    sky,
    calls,
    commands: () => calls().map((call) => call.command),
    scenario: put,
    change: (...changes) => new World(world).change(changes),
    cluster: (name) => new World(world).cluster(name),
    age: (name, seconds) => {
      const is = new World(world);
      const cluster = is.cluster(name);
      if (cluster !== null) is.save({ ...cluster, launchedAt: cluster.launchedAt - seconds });
    },
    running: () =>
      new World(world)
        .slurmStates()
        .filter((row) => row.state === "RUNNING" || row.state === "PENDING")
        .map((row) => row.job),
    slurm: () => new World(world).slurmStates(),
    remove: () => {
      const is = new World(world);
      for (const name of is.names())
        for (const job of is.jobs(name))
          if (ACTIVE.includes(is.status(name, job.id))) killGroup(job.pid, "SIGKILL");
      rmSync(root, { recursive: true, force: true });
    },
  };
}
