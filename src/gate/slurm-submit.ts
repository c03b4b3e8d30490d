import { GateError } from "../lib/errors.ts";
import { optionOf, type SlurmOptions } from "../request/slurm-options.ts";
import { readDirectives } from "../slurm/comments.ts";
import { readScriptText } from "./input.ts";
import type { Settings } from "./settings.ts";
import { slurmJob } from "./slurm-job.ts";
import type { TaskJob } from "./task.ts";

/** What the filter hands over of a submit. */
export interface Submit {
  readonly script: string | null;
  /** Slurm's options as sbatch merged them; empty = the script's own lines are the request. */
  readonly options: SlurmOptions;
  readonly flags: Readonly<Record<string, string>>;
}

/** Options that say what is asked for; with none of them given the script is read for itself. */
const REQUEST_OPTIONS = [
  "gres",
  "gpus",
  "gpus-per-node",
  "gpus-per-socket",
  "gpus-per-task",
  "tres-per-task",
  "tres-per-node",
  "ntasks-per-gpu",
];

/**
 * The job of a submit, or the components of a script read for itself. A script that cannot be read is said in a
 * note: the environment may still name the model. Throws `GateError("input-unreadable")` where it cannot.
 */
export function submitJobs(
  submit: Submit,
  env: Readonly<Record<string, string | undefined>>,
  settings: Settings,
): TaskJob[] {
  const asked = REQUEST_OPTIONS.some((name) => optionOf(submit.options, name) !== null);
  const { text, problem } = textOf(submit.script);
  if (problem !== null && (!asked || (env.NEURARCH_MODEL === undefined && submit.flags.model === undefined)))
    throw problem;
  const common = { env, flags: submit.flags, notes: [] };
  if (asked || text === null) {
    // What sbatch merged is the request; notes about #SBATCH lines are sbatch's own to tell.
    const directives = text === null ? [] : readDirectives(text);
    return [slurmJob({ ...common, directives, name: null, options: submit.options }, settings)];
  }
  // The filter hands over what sbatch read; only a script that is read for itself needs its options' grammar.
  const { readScript } = require("../slurm/script.ts") as typeof import("../slurm/script.ts");
  const script = readScript(text);
  return script.components.map((component, offset) =>
    slurmJob(
      {
        ...common,
        directives: script.neurarch,
        name: script.components.length > 1 ? `component ${offset}` : null,
        options: { ...component.options, ...submit.options },
      },
      settings,
    ),
  );
}

function textOf(path: string | null): { text: string | null; problem: GateError | null } {
  if (path === null) return { text: null, problem: null };
  try {
    return { text: readScriptText(path), problem: null };
  } catch (error) {
    if (error instanceof GateError) return { text: null, problem: error };
    throw error;
  }
}
