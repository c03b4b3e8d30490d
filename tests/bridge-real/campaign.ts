/** A campaign in a rig: its files, its daemon (the compiled one), its clients, and what the cluster remembers of jobs. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EvaluationResult, JournalRecord } from "../../src/bridge/types.ts";
import { type Ended, type Rig, type Running, until } from "./rig.ts";

const BINARY = "/mnt/project/dist/neurarch-gate";

/**
 * What the cluster runs. Each start leaves a line in /tmp/starts of its node, which tells how often a job ran. While
 * /tmp/hold is there it prints a line every 0.2 s; it goes on to the end once it is gone, unless it was told to stay.
 */
const BENCH = `#!/bin/sh
echo "$SLURM_JOB_ID" >>/tmp/starts
echo "measuring $(cat candidate.txt)"
n=0
while [ -e /tmp/hold ]; do n=$((n + 1)); echo "tick $n"; sleep 0.2; done
while [ "$(cat /tmp/stay 2>/dev/null)" = "$SLURM_JOB_ID" ]; do n=$((n + 1)); echo "tick $n"; sleep 0.2; done
echo "measured $(cat candidate.txt)"
[ -z "\${2-}" ] || printf '{"candidate": "%s", "slurmJob": "%s"}' "$(cat candidate.txt)" "$SLURM_JOB_ID" >"$2"
[ ! -e last.sh ] || . ./last.sh
`;

export interface CampaignOptions {
  readonly name: string;
  /** Lines of the profile beside its runner. */
  readonly profile: string;
  readonly accelerators: number;
  readonly backend: "cuda" | "rocm";
  /** Further lines of the campaign. */
  readonly more?: string;
}

export const GPU: CampaignOptions = {
  name: "gpu",
  profile: `infra = "slurm/lab/gpu"
accelerator_backend = "cuda"
accelerator_type = "A10G"
accelerators_per_node = 4
cpus_per_node = 4
memory_gb_per_node = 4
allocation_time = "02:00:00"`,
  accelerators: 4,
  backend: "cuda",
};

/** Untyped cards by a partition map, an allocation of its own, and a nested step around the command. */
export const MI300: CampaignOptions = {
  name: "mi300",
  profile: `infra = "slurm/lab/mi300"
accelerator_backend = "rocm"
accelerator_type = "MI300A"
accelerators_per_node = 4
cpus_per_node = 8
memory_gb_per_node = 8
exclusive = true
command_prefix = ["srun", "--overlap", "--ntasks=1"]
allocation_time = "01:00:00"`,
  accelerators: 4,
  backend: "rocm",
};

export class Campaign {
  readonly folder: string;
  readonly inside: string;
  daemon: Running | null = null;
  /** What the daemons before said. */
  log = "";
  #calls = 0;

  constructor(
    readonly rig: Rig,
    readonly options: CampaignOptions,
  ) {
    const { name } = options;
    this.inside = `/mnt/${name}`;
    this.folder = join(rig.folder, name);
    mkdirSync(join(this.folder, "workspace"), { recursive: true });
    writeFileSync(
      join(this.folder, "clusters.toml"),
      `[profiles.${name}]\nrunner = "skypilot"\n${options.profile}\n`,
    );
    writeFileSync(
      join(this.folder, "campaign.toml"),
      `run_id = "real-${name}"
workspace = "${this.inside}/workspace"
socket = "${this.inside}/s/bridge.sock"
state = "${this.inside}/state"
clusters = "${this.inside}/clusters.toml"
profile = "${name}"
sky = "/mnt/bin/sky"
accuracy = "sh bench.sh"
benchmark = "sh bench.sh"
benchmark_output_flag = "--output-json"
error_frames = "campaign"
${options.more ?? ""}
[resources]
nodes = 1
accelerators_per_node = ${options.accelerators}
accelerator_backend = "${options.backend}"
`,
    );
    this.write("bench.sh", BENCH);
    this.write("candidate.txt", "first");
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, "workspace", name), text);
  }

  remove(name: string): void {
    rmSync(join(this.folder, "workspace", name), { force: true });
  }

  /** Starts the daemon and waits until it serves. */
  async serve(): Promise<Running> {
    const daemon = this.rig.spawn([BINARY, "bridge", "--campaign", `${this.inside}/campaign.toml`]);
    this.daemon = daemon;
    let over = false;
    void daemon.ended.then(() => {
      over = true;
    });
    await until("the daemon serves", () => over || daemon.err().includes("serving run"), 600);
    if (over) throw new Error(`the daemon ended: ${daemon.err()}`);
    return daemon;
  }

  /** The same from its sources, which kills itself where a record comes to `phase`. */
  serveUntil(phase: JournalRecord["phase"]): Running {
    const entry = { values: {}, campaign: `${this.inside}/campaign.toml`, limits: {}, crashAt: phase };
    const bun = "/mnt/project/node_modules/.bin/bun";
    this.daemon = this.rig.spawn([bun, "/mnt/project/tests/bridge/daemon-entry.ts"], {
      DAEMON_ENTRY: JSON.stringify(entry),
    });
    return this.daemon;
  }

  /** Sends a signal to the daemon itself and waits for its end. */
  async end(signal: "TERM" | "KILL" = "TERM"): Promise<Ended> {
    const { pid } = JSON.parse(this.rig.text(`${this.inside}/state/daemon.json`)) as { pid: number };
    await this.rig.ask("kill", `-${signal}`, String(pid));
    const ended = await this.daemon!.ended;
    this.log += ended.err;
    return ended;
  }

  /** `evaluate`, as the sandbox runs it. */
  evaluating(kind: "accuracy" | "benchmark", result?: string): Running {
    const words = result === undefined ? [] : ["--output-json", result];
    return this.rig.spawn(
      [BINARY, "evaluate", kind, ...words, "--socket", `${this.inside}/s/bridge.sock`],
      this.sandbox,
    );
  }

  /** The environment of a sandbox. */
  get sandbox(): Record<string, string> {
    return { VIBESYS_SKYPILOT_CALLER_STATE: `${this.inside}/caller` };
  }

  /** A benchmark and its result file. */
  async benchmark(): Promise<Ended & { readonly result: { candidate: string; slurmJob: string } | null }> {
    const path = `/tmp/vibesys-framework-benchmark-${this.options.name}-${++this.#calls}.json`;
    const ended = await this.evaluating("benchmark", path).ended;
    const text = this.rig.text(path);
    return { ...ended, result: text === "" ? null : JSON.parse(text) };
  }

  bridge(...words: string[]): Promise<Ended> {
    return this.rig.run([BINARY, "bridge", ...words]);
  }

  /** The newest word of the journal on each evaluation, in the order of their beginning. */
  records(): readonly JournalRecord[] {
    const latest = new Map<string, JournalRecord>();
    for (const line of this.rig.text(`${this.inside}/state/journal`).split("\n")) {
      const at = line.indexOf("{");
      if (at === -1) continue;
      try {
        const { put } = JSON.parse(line.slice(at)) as { put?: JournalRecord };
        if (put !== undefined) latest.set(put.invocationId, put);
      } catch {
        // a line that is being written
      }
    }
    return [...latest.values()].sort((a, b) => a.createdMs - b.createdMs);
  }

  get last(): JournalRecord {
    return this.records().at(-1)!;
  }

  get result(): EvaluationResult | null {
    return this.last.result;
  }

  /** Waits until the newest evaluation has printed so much that it surely runs, and gives its Slurm job. */
  async ticking(client: Running): Promise<string> {
    await until("the job prints", () => client.out().includes("tick 5\n"), 600);
    return this.starts.at(-1)!;
  }

  /** Slurm job of each start of the program, oldest first. */
  get starts(): readonly string[] {
    return this.rig.text("/mnt/cluster-tmp/starts").split("\n").filter(Boolean);
  }

  /** Jobs that start from now on print until they are let go. */
  hold(): void {
    writeFileSync(join(this.rig.folder, "cluster-tmp/hold"), "");
  }

  /** Lets jobs go; that of one Slurm job stays as it is. */
  letGo(but = ""): void {
    writeFileSync(join(this.rig.folder, "cluster-tmp/stay"), but);
    rmSync(join(this.rig.folder, "cluster-tmp/hold"), { force: true });
  }

  /** State files that are not of a whole state: unusable or damaged parts of the journal, calls that were never ended. */
  unwhole(): readonly string[] {
    const state = join(this.folder, "state");
    const names = readdirSync(state).filter((name) => /unusable|damaged|\.new$/.test(name));
    const left = ["changes"].flatMap((folder) => {
      try {
        return readdirSync(join(state, folder)).map((name) => `${folder}/${name}`);
      } catch {
        return [];
      }
    });
    return [...names, ...left];
  }
}

/** The ticks of an output: consecutive from 1, each once. */
export function ticks(out: string): readonly number[] {
  return [...out.matchAll(/^tick (\d+)$/gm)].map((found) => Number(found[1]));
}

export const counted = (n: number) => Array.from({ length: n }, (_, index) => index + 1);
