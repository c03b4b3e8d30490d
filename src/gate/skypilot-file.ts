import { readText } from "../host/fs.ts";
import { GateError } from "../lib/errors.ts";
import { readTasks, type TaskFile } from "../skypilot/task.ts";
import { MAX_TASK_BYTES, readTaskText } from "./input.ts";
import type { ParsedTaskFlags } from "./skypilot-flags.ts";

/** A task file as SkyPilot would read it, with what `sky launch` flags lay over it. */
export interface ReadTaskFile {
  readonly text: string;
  readonly file: TaskFile;
}

/**
 * Reads a task file. Throws `GateError` (`input-unreadable`, `input-invalid`, `usage`) with file, line and column.
 */
export function readTaskFile(
  path: string,
  flags: ParsedTaskFlags,
  environment: Readonly<Record<string, string | undefined>>,
): ReadTaskFile {
  const text = readTaskText(path);
  const envFiles = flags.envFiles.map((name) => {
    const read = readText(name, MAX_TASK_BYTES);
    if (!read.ok)
      throw new GateError("input-unreadable", `--env-file: ${read.error.message}`, "Name a readable file.");
    return read.value;
  });
  const file = readTasks(text, {
    env: flags.env,
    envFiles,
    gpus: flags.gpus,
    numNodes: flags.numNodes,
    environment,
  });
  if (!file.ok) {
    const { code, message, line, column } = file.error;
    throw new GateError(
      code,
      `${path}: ${message}`,
      null,
      line === null ? null : { line, column: column ?? 1 },
    );
  }
  return { text, file: file.value };
}
