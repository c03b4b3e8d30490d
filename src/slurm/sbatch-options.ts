/** Whether an option takes a value: always, only as `--name=value`, or never. */
export type Takes = "value" | "optional" | "nothing";

export interface SbatchOption {
  /** The long name it is known by here, whatever spelling was used. */
  readonly name: string;
  readonly takes: Takes;
  /** Kept from one component of a heterogeneous job to the next (`reset_each_pass` unset in `slurm_opt.c`). */
  readonly inherited: boolean;
}

/**
 * Every long option of sbatch, 22.05 to 26.05 (`src/common/slurm_opt.c`), because getopt also accepts a beginning
 * of a name that only one option has. `=` after a name: takes a value; `?`: may take one; `*`: inherited.
 */
const LONG = `
  account=* acctg-freq=* array=* batch=* bb= bbf=* begin=* chdir=* cluster=* cluster-constraint=* clusters=* comment=*
  consolidate-segments constraint= container=* container-id=* context=* contiguous core-spec= cores-per-socket=
  cpu-freq= cpus-per-gpu= cpus-per-task= deadline=* delay-boot=* dependency=* distribution= error=* exclude=*
  exclusive? export=* export-file=* external extra=* extra-node-info= get-user-env?* gid=* gpu-bind= gpu-freq= gpus=
  gpus-per-node= gpus-per-socket= gpus-per-task= gres= gres-flags= help* hint= hold* ignore-pbs* input=* job-name=*
  kill-on-invalid-dep=* licenses= mail-type= mail-user= mcs-label=* mem=* mem-bind= mem-per-cpu= mem-per-gpu=
  mem-update=* mincpus= network= nice?* no-kill?* no-requeue* nodefile= nodelist= nodes= ntasks= ntasks-per-core=
  ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= ntasks-per-tres= oom-kill-step?* open-mode=* output=* overcommit
  oversubscribe parsable* partition= power=* prefer=* priority=* profile=* propagate?* qos=* quiet* reboot* requeue?*
  reservation=* resources= resv-ports? runtime=* segment= signal=* sockets-per-node= spread-job spread-segments
  stepmgr* switches= tasks-per-node= test-only* thread-spec= threads-per-core= time=* time-min=* tmp= tres-bind=
  tres-per-task= uid=* usage* use-min-nodes verbose* version* wait* wait-all-nodes=* wckey=* wrap=*
`;

/** Short options and the long ones they stand for. */
const SHORT: Readonly<Record<string, string>> = {
  A: "account",
  a: "array",
  B: "extra-node-info",
  b: "begin",
  C: "constraint",
  c: "cpus-per-task",
  D: "chdir",
  d: "dependency",
  e: "error",
  F: "nodefile",
  G: "gpus",
  H: "hold",
  h: "help",
  i: "input",
  J: "job-name",
  k: "no-kill",
  L: "licenses",
  M: "clusters",
  m: "distribution",
  N: "nodes",
  n: "ntasks",
  O: "overcommit",
  o: "output",
  p: "partition",
  Q: "quiet",
  q: "qos",
  S: "core-spec",
  s: "oversubscribe",
  t: "time",
  V: "version",
  v: "verbose",
  W: "wait",
  w: "nodelist",
  x: "exclude",
};

/** Two spellings of one option. */
const SAME: Readonly<Record<string, string>> = { cluster: "clusters", "tasks-per-node": "ntasks-per-node" };

let table: ReadonlyMap<string, SbatchOption> | null = null;

/** Built at first use: the hook reads no script of its own on most submits. */
function longOptions(): ReadonlyMap<string, SbatchOption> {
  table ??= new Map(
    LONG.trim()
      .split(/\s+/)
      .map((word) => {
        const [, long = "", marks = ""] = /^([a-z-]+)(.*)$/.exec(word)!;
        const takes = marks.includes("=") ? "value" : marks.includes("?") ? "optional" : "nothing";
        return [long, { name: SAME[long] ?? long, takes, inherited: marks.includes("*") }] as const;
      }),
  );
  return table;
}

/** The option of a short letter; null when sbatch has none. */
export function shortOption(letter: string): SbatchOption | null {
  const long = Object.hasOwn(SHORT, letter) ? SHORT[letter]! : null;
  return long === null ? null : (longOptions().get(long) ?? null);
}

/** The option of a long name or of a beginning that only one option has (`getopt_long`); null when there is none. */
export function longOption(name: string): SbatchOption | null {
  const options = longOptions();
  const exact = options.get(name);
  if (exact !== undefined) return exact;
  if (name === "") return null;
  const meant = new Map<string, SbatchOption>();
  for (const [long, option] of options) if (long.startsWith(name)) meant.set(option.name, option);
  const [first] = meant.values();
  return meant.size === 1 ? (first ?? null) : null;
}

export function longOptionNames(): readonly string[] {
  return [...longOptions().keys()];
}
