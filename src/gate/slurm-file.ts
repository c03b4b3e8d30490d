import { environmentOptions, environmentVariables } from "../slurm/sbatch-env.ts";
import { readScript, type ScriptComponent } from "../slurm/script.ts";
import { readScriptText } from "./input.ts";
import type { Settings } from "./settings.ts";
import { slurmJob } from "./slurm-job.ts";
import type { TaskJob } from "./task.ts";

/** How a batch script is read offline. */
export interface ScriptReading {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Also read `SBATCH_*`, which sbatch would put over the script's own lines. */
  readonly readEnv: boolean;
  readonly flags: Readonly<Record<string, string>>;
}

/** The jobs of a batch script, one a heterogeneous component. Throws `GateError("input-unreadable")`. */
export function scriptJobs(path: string, reading: ScriptReading, settings: Settings): TaskJob[] {
  return textJobs(readScriptText(path), reading, settings);
}

/** The same of a script's text. */
export function textJobs(text: string, reading: ScriptReading, settings: Settings): TaskJob[] {
  const script = readScript(text);
  const fromEnvironment = reading.readEnv ? environmentOptions(reading.environment) : {};
  const several = script.components.length > 1;
  const notes = script.notes.map((note) => note.message);
  const unread = reading.readEnv ? [] : environmentVariables(reading.environment);
  if (unread.length > 0)
    notes.push(`${unread.join(", ")} in the environment is not read; --read-env reads it, as sbatch would`);
  return script.components.map((component, offset) =>
    slurmJob(
      {
        name: component.options["job-name"] ?? (several ? `component ${offset}` : null),
        options: { ...component.options, ...fromEnvironment },
        directives: script.neurarch,
        env: reading.environment,
        flags: reading.flags,
        notes: offset === 0 ? notes : [],
        placeOf: (option) => {
          const [line, column] = [component.lines[option], component.columns[option]];
          // What the environment sets instead stands nowhere in the script.
          const own = fromEnvironment[option] === undefined;
          return line === undefined || column === undefined || !own ? null : { line, column };
        },
        begins: { line: firstLine(component) ?? script.neurarch[0]?.line ?? 1, column: 1 },
      },
      settings,
    ),
  );
}

/** The first line that sets something of a component. */
function firstLine({ lines }: ScriptComponent): number | null {
  const all = Object.values(lines);
  return all.length === 0 ? null : Math.min(...all);
}
