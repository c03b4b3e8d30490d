import type { Words } from "../render/types.ts";
import { optionOf, type SlurmOptions } from "../request/slurm-options.ts";

export const SKYPILOT_WORDS: Words = {
  requestField: "`accelerators:`",
  batchField: "`NEURARCH_BATCH`",
  namingModel: "Add NEURARCH_MODEL under `envs:`.",
};
export const PLAIN_WORDS: Words = {
  requestField: "--request",
  batchField: "--batch",
  namingModel: "Add --model ID.",
};

/** The option a Slurm job wrote its GPUs in, in the order they outrank each other in a message. */
const REQUEST_OPTIONS = [
  "gres",
  "gpus-per-node",
  "gpus",
  "gpus-per-task",
  "gpus-per-socket",
  "tres-per-task",
  "ntasks-per-gpu",
] as const;

/** The option a Slurm job wrote its GPUs in; null where it asks for none. */
export function requestOption(options: SlurmOptions): string | null {
  const used = REQUEST_OPTIONS.find((name) => {
    const value = optionOf(options, name);
    return value !== null && (name !== "gres" || /gpu|shard|mps/.test(value));
  });
  return used ?? null;
}

/** The words for a Slurm job: the option it used, and where its batch is written. */
export function slurmWords(options: SlurmOptions, factsFromEnvironment: boolean): Words {
  return {
    requestField: `--${requestOption(options) ?? "gres"}`,
    batchField: factsFromEnvironment ? "`NEURARCH_BATCH`" : "batch= in #NEURARCH",
    namingModel: "Add a line #NEURARCH model=ID at the top of the script.",
  };
}
