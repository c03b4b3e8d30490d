import { countHosts } from "./nodes.ts";
import { countOf, nodesOf, optionOf, type SlurmOptions } from "./slurm-options.ts";

/** How a job lies on the cluster, as far as its options say. */
export interface Layout {
  /** The fewest nodes it accepts. */
  readonly nodes: number;
  /** `--nodes` names one number, no range. */
  readonly nodesFixed: boolean;
  /** Tasks of the job; null when nothing says how many. */
  readonly tasks: number | null;
  /** Sockets over all nodes; null when nothing says how many. */
  readonly sockets: number | null;
}

/** GPUs per job, node and task where the options name one type each; they fix nodes and tasks that are not given. */
export interface GpuScales {
  readonly job: number | null;
  readonly node: number | null;
  readonly task: number | null;
}

const COUNTS = [
  "ntasks",
  "ntasks-per-node",
  "ntasks-per-socket",
  "sockets-per-node",
  "cores-per-socket",
  "threads-per-core",
  "cpus-per-task",
] as const;

/**
 * Nodes, tasks and sockets of a job by sbatch's rules (`_opt_verify` in `src/sbatch/opt.c`, `slurm_opt_create_job_desc`
 * in `src/common/slurm_opt.c`). Returns the name of an option that is no count in place of a layout.
 */
export function layoutOf(options: SlurmOptions, gpus: GpuScales, notes: string[]): Layout | string {
  const counts: Partial<Record<(typeof COUNTS)[number], number | null>> = {};
  for (const name of COUNTS) {
    const count = countOf(options, name);
    if (count === "unreadable") return name;
    counts[name] = count;
  }
  const asked = nodesOf(options);
  if (asked === "unreadable") return "nodes";
  const tasksAsked = counts.ntasks ?? null;
  const perNode = counts["ntasks-per-node"] ?? null;
  const listed = asked === null ? listedNodes(options) : null;
  let nodes = asked?.least ?? listed;
  if (nodes !== null && tasksAsked !== null && tasksAsked < nodes) {
    const tasks = tasksAsked === 1 ? "One task" : `${tasksAsked} tasks`;
    notes.push(`${tasks} cannot use ${nodes} nodes: Slurm lowers --nodes to ${tasksAsked}.`);
    nodes = tasksAsked;
  }
  if (nodes === null && tasksAsked !== null) {
    const each = ratio(gpus.node, gpus.task);
    nodes = perNode !== null ? Math.ceil(tasksAsked / perNode) : ratio(tasksAsked, each);
  }
  nodes = ratio(gpus.job, gpus.node) ?? nodes ?? 1;
  const sockets = counts["sockets-per-node"] ?? extraInfo(options)[0] ?? null;
  const fixed = asked?.fixed === true;
  const tasks = tasksAsked ?? impliedTasks(options, counts, nodes, fixed, listed !== null);
  const perSocket = counts["ntasks-per-socket"] ?? null;
  const bySocket = tasks === null || perSocket === null ? null : Math.ceil(tasks / perSocket);
  return { nodes, nodesFixed: fixed, tasks, sockets: sockets === null ? bySocket : sockets * nodes };
}

/** `--gpus=8 --gpus-per-node=4` fixes two nodes; `--gres=gpu:4 --gpus-per-task=2` two tasks a node. */
function ratio(whole: number | null, part: number | null): number | null {
  return whole !== null && part !== null && whole % part === 0 ? whole / part : null;
}

/** Tasks that follow from the nodes when `--ntasks` is not given. */
function impliedTasks(
  options: SlurmOptions,
  counts: Partial<Record<(typeof COUNTS)[number], number | null>>,
  nodes: number,
  fixed: boolean,
  listed: boolean,
): number | null {
  const perNode = counts["ntasks-per-node"] ?? null;
  if (perNode !== null) return perNode * nodes;
  const extra = extraInfo(options);
  const parts = [
    counts["sockets-per-node"] ?? extra[0] ?? null,
    counts["cores-per-socket"] ?? extra[1] ?? null,
    counts["threads-per-core"] ?? extra[2] ?? null,
  ].filter((part) => part !== null);
  if (parts.length > 0 && (fixed || listed || extra.length > 0))
    return parts.reduce((product, part) => product * part, nodes);
  return fixed && counts["cpus-per-task"] === null ? nodes : null;
}

/** A nodelist without --nodes asks for as many nodes as it names. */
function listedNodes(options: SlurmOptions): number | null {
  const list = optionOf(options, "nodelist");
  return list === null ? null : countHosts(list);
}

/** `-B 2:8:1` (`--extra-node-info`): sockets, cores per socket, threads per core; `*` and what is absent say nothing. */
function extraInfo(options: SlurmOptions): (number | null)[] {
  const text = optionOf(options, "extra-node-info");
  if (text === null) return [];
  return text.split(":", 3).map((part) => (/^[1-9]\d{0,3}$/.test(part.trim()) ? Number(part) : null));
}
