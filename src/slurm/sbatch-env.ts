/** Input variables of sbatch that bear on a request, and the option each one sets (`env_vars` in `src/sbatch/opt.c`). */
const VARIABLES: Readonly<Record<string, string>> = {
  SBATCH_ACCOUNT: "account",
  SBATCH_ARRAY_INX: "array",
  SBATCH_CLUSTERS: "clusters",
  SLURM_CLUSTERS: "clusters",
  SBATCH_CONSTRAINT: "constraint",
  SBATCH_CPUS_PER_GPU: "cpus-per-gpu",
  SBATCH_EXCLUSIVE: "exclusive",
  SBATCH_GPUS: "gpus",
  SBATCH_GPUS_PER_NODE: "gpus-per-node",
  SBATCH_GPUS_PER_SOCKET: "gpus-per-socket",
  SBATCH_GPUS_PER_TASK: "gpus-per-task",
  SBATCH_GRES: "gres",
  SBATCH_JOB_NAME: "job-name",
  SBATCH_PARTITION: "partition",
  SBATCH_QOS: "qos",
  SBATCH_TIMELIMIT: "time",
  SBATCH_TRES_PER_TASK: "tres-per-task",
};

/**
 * The options that `SBATCH_*` variables set. sbatch lays them over the script's own lines, in every component, and
 * under the command line: `{ ...component.options, ...environmentOptions(env), ...flags }`. There is none for
 * `--nodes` or `--ntasks`. An empty variable sets nothing, except `SBATCH_EXCLUSIVE`.
 */
export function environmentOptions(
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const options: Record<string, string> = {};
  for (const [variable, option] of Object.entries(VARIABLES)) {
    const value = Object.hasOwn(env, variable) ? env[variable] : undefined;
    if (value === undefined) continue;
    if (value.trim() !== "") options[option] = value;
    else if (option === "exclusive") options[option] = "exclusive";
  }
  return options;
}

/** The names of the variables that `environmentOptions` would read, for a note that they were not. */
export function environmentVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.keys(VARIABLES).filter((name) => Object.hasOwn(env, name) && env[name] !== undefined);
}
