import type { ResolvedResources } from "./types.ts";

/** A job on an allocation that is there already. */
export interface ExecTask {
  readonly run: string;
  readonly name: string;
  /** The snapshot's folder on this host; null = the job needs none. */
  readonly workdir: string | null;
}

/**
 * SkyPilot's task as a JSON text, which is YAML as well. YAML 1.1, which sky reads, takes an unquoted 12:00:00 for
 * 43,200; in JSON every text is quoted. Without `exec` it is the task that only makes the allocation.
 */
export function taskDocument(resources: ResolvedResources, exec: ExecTask | null): string {
  const { cpusPerNode, memoryGbPerNode, runtimeImage } = resources;
  const options = {
    ...(resources.exclusive ? { exclusive: true } : {}),
    ...(resources.allocationTime === null ? {} : { time: resources.allocationTime }),
  };
  const isSlurm = resources.infra === "slurm" || resources.infra.startsWith("slurm/");
  const document = {
    num_nodes: resources.nodes,
    resources: {
      infra: resources.infra,
      accelerators: `${resources.acceleratorType}:${resources.acceleratorsPerNode}`,
      ...(cpusPerNode === null ? {} : { cpus: cpusPerNode }),
      ...(memoryGbPerNode === null ? {} : { memory: memoryGbPerNode }),
      ...(runtimeImage === null ? {} : { image_id: runtimeImage }),
    },
    run: exec?.run ?? "true",
    ...(exec === null ? {} : { name: exec.name }),
    ...(isSlurm && Object.keys(options).length > 0 ? { config: { slurm: { sbatch_options: options } } } : {}),
    ...(exec === null || exec.workdir === null ? {} : { workdir: exec.workdir }),
  };
  return `${JSON.stringify(document)}\n`;
}
