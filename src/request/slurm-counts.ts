import { type GpuEntry, type GresList, type GresSyntax, readGres } from "./gres.ts";
import { type Layout, layoutOf } from "./slurm-layout.ts";
import { countOf, optionOf, type SlurmOptions } from "./slurm-options.ts";
import type { RequestReason } from "./types.ts";

/** How many GPUs of which type a job asks for in all, and on how many nodes at least. */
export interface SlurmCounts {
  /** Total by type, as written; the key `""` is an untyped request. */
  readonly totals: ReadonlyMap<string, number>;
  readonly nodes: number;
  /** Shares of a GPU per node, when no whole GPU is asked for. */
  readonly shares: GresList["shares"];
  readonly notes: readonly string[];
}

/** Why the request cannot be counted: `label` names it, `message` says why. */
export interface UncountedRequest {
  readonly reason: RequestReason;
  readonly label: string;
  readonly message: string;
}

/** Options that count per node; where two name one type, Slurm keeps the later one. */
const PER_NODE: readonly (readonly [string, GresSyntax])[] = [
  ["gpus-per-node", "gpus"],
  ["tres-per-node", "tres"],
  ["gres", "gres"],
];
const PER_JOB: typeof PER_NODE = [["gpus", "gpus"]];
const PER_SOCKET: typeof PER_NODE = [["gpus-per-socket", "gpus"]];
const PER_TASK: typeof PER_NODE = [
  ["gpus-per-task", "gpus"],
  ["tres-per-task", "tres"],
];

/**
 * Counts a job's GPUs by Slurm's own rules (`gres_job_state_validate` and `_test_gres_cnt` in
 * `src/interfaces/gres.c`, `_opt_verify` in `src/sbatch/opt.c`; tried against sbatch 22.05): the total of a type is
 * the largest that any option comes to, per node x nodes, per socket x sockets, per task x tasks, or per job; the
 * options describe one request, they do not add up.
 */
export function countGpus(options: SlurmOptions): SlurmCounts | UncountedRequest {
  const notes: string[] = [];
  const scales = {
    node: gather(options, PER_NODE),
    job: gather(options, PER_JOB),
    socket: gather(options, PER_SOCKET),
    task: gather(options, PER_TASK),
  };
  const lists = Object.values(scales);
  const unreadable = lists.flatMap((list) => list.unreadable)[0];
  if (unreadable !== undefined) return notReadable(unreadable);
  const shares = lists.flatMap((list) => list.shares);
  const perGpu = impliedBy(options);
  if (perGpu === null && lists.every((list) => list.gpus.length === 0) && shares.length === 0)
    return { totals: new Map(), nodes: 1, shares: [], notes };
  const one = (list: GresList) => (list.gpus.length === 1 ? list.gpus[0]!.count : null);
  const gpus = { job: one(scales.job), node: one(scales.node), task: one(scales.task) };
  const layout = layoutOf(options, gpus, notes);
  if (typeof layout === "string") return badCount(layout, options);
  const totals = new Map<string, number>();
  const count = (entries: readonly GpuEntry[], times: number) => {
    for (const { type, count: each } of entries) {
      totals.set(type ?? "", Math.max(totals.get(type ?? "") ?? 0, each * times));
    }
  };
  count(scales.job.gpus, 1);
  count(scales.node.gpus, layout.nodes);
  if (layout.sockets !== null) count(scales.socket.gpus, layout.sockets);
  // The job's total stands where both are given: the number of tasks follows from it.
  if (scales.job.gpus.length > 0) nameType(totals, scales.task.gpus);
  else if (layout.tasks !== null) count(scales.task.gpus, layout.tasks);
  if (totals.size === 0) {
    if (scales.task.gpus.length > 0) return taskCountUnknown(scales.task.gpus);
    if (scales.socket.gpus.length > 0) return socketsUnknown(scales.socket.gpus);
    if (perGpu !== null) {
      const implied = impliedGpus(options, perGpu, layout);
      if (typeof implied !== "number") return implied;
      totals.set("", implied);
    }
  }
  const bySocket = scales.socket.gpus.length > 0 && scales.node.gpus.length === 0;
  if (bySocket && totals.size > 0 && countOf(options, "ntasks-per-socket") === null)
    notes.push(
      "GPUs per socket are counted for every socket; Slurm gives those of the sockets that tasks run on (--ntasks-per-socket=1 has one on each).",
    );
  if (totals.size > 0 && shares.length > 0)
    notes.push(
      `${shares.map((share) => share.kind).join(" and ")} shares beside whole GPUs are not counted.`,
    );
  return { totals, nodes: layout.nodes, shares: totals.size > 0 ? [] : shares, notes };
}

/** `--gpus=4 --gpus-per-task=h100:1`: the total says how many, the tasks of which type. */
function nameType(totals: Map<string, number>, tasks: readonly GpuEntry[]): void {
  const total = totals.get("");
  const [only, second] = tasks.map(({ type }) => type);
  if (total === undefined || totals.size > 1 || second !== undefined || only === undefined || only === null)
    return;
  totals.delete("");
  totals.set(only, total);
}

function gather(options: SlurmOptions, names: typeof PER_NODE): GresList {
  const gpus = new Map<string, GpuEntry>();
  const shares = new Map<string, GresList["shares"][number]>();
  const unreadable: GresList["unreadable"][number][] = [];
  for (const [name, syntax] of names) {
    const text = optionOf(options, name);
    if (text === null) continue;
    const list = readGres(text, syntax);
    for (const entry of list.gpus) gpus.set(entry.type ?? "", entry);
    for (const share of list.shares) shares.set(`${share.kind}:${share.type ?? ""}`, share);
    unreadable.push(...list.unreadable.map((item) => ({ ...item, text: `--${name}=${item.text}` })));
  }
  return { gpus: [...gpus.values()], shares: [...shares.values()], unreadable };
}

/** The option that counts tasks per GPU, when one is given. */
function impliedBy(options: SlurmOptions): string | null {
  return ["ntasks-per-gpu", "ntasks-per-tres"].find((name) => countOf(options, name) !== null) ?? null;
}

/** `--ntasks-per-gpu` without any GPU option asks for as many GPUs as the tasks need. */
function impliedGpus(options: SlurmOptions, name: string, layout: Layout): number | UncountedRequest {
  const each = countOf(options, name);
  if (each === "unreadable" || each === null) return badCount(name, options);
  const ntasks = countOf(options, "ntasks");
  if (typeof ntasks === "number" && ntasks % each === 0) return ntasks / each;
  if (typeof ntasks === "number") {
    const then = ntasks < each ? "for which Slurm gives no GPU" : "which Slurm refuses";
    return {
      reason: "unreadable-request",
      label: "gpu",
      message: `--ntasks=${ntasks} is no multiple of --${name}=${each}, ${then}.`,
    };
  }
  if (layout.nodesFixed) return layout.nodes;
  return {
    reason: "task-count-unknown",
    label: "gpu",
    message: `--${name}=${each} asks for one GPU per ${each} tasks, and nothing says how many tasks there are.`,
  };
}

function notReadable({ text, fraction }: GresList["unreadable"][number]): UncountedRequest {
  return fraction
    ? {
        reason: "fractional",
        label: text,
        message: `${text} asks for a part of a card, and what a part holds is not known.`,
      }
    : {
        reason: "unreadable-request",
        label: text,
        message: `${text} is not a GPU request that Slurm reads.`,
      };
}

function badCount(name: string, options: SlurmOptions): UncountedRequest {
  const label = `--${name}=${optionOf(options, name) ?? ""}`;
  return { reason: "unreadable-request", label, message: `${label} is not a count.` };
}

function taskCountUnknown(entries: readonly GpuEntry[]): UncountedRequest {
  const label = `${entriesLabel(entries)} per task`;
  return {
    reason: "task-count-unknown",
    label,
    message: `${label} is asked for, and nothing says how many tasks there are (--ntasks, --ntasks-per-node, --gpus).`,
  };
}

function socketsUnknown(entries: readonly GpuEntry[]): UncountedRequest {
  const label = `${entriesLabel(entries)} per socket`;
  return {
    reason: "unreadable-request",
    label,
    message: `${label} is asked for without --sockets-per-node, which Slurm refuses.`,
  };
}

function entriesLabel(entries: readonly GpuEntry[]): string {
  return entries.map(({ type, count }) => `${type ?? "gpu"}:${count}`).join(" + ");
}
