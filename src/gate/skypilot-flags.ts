import { GateError } from "../lib/errors.ts";

/** What `sky launch` itself may lay over a task file. */
export interface ParsedTaskFlags {
  readonly env: readonly string[];
  readonly envFiles: readonly string[];
  readonly gpus: string | null;
  readonly numNodes: number | null;
}

/** Reads `--env`, `--env-file`, `--gpus` and `--num-nodes`. Throws `GateError("usage")`. */
export function taskFlags(
  values: Readonly<Record<string, string>>,
  lists: Readonly<Record<string, readonly string[]>>,
): ParsedTaskFlags {
  const nodes = values["num-nodes"];
  if (nodes !== undefined && !/^[1-9]\d{0,5}$/.test(nodes)) {
    throw new GateError(
      "usage",
      `--num-nodes is \`${nodes}\`, not a number of nodes`,
      "Write `--num-nodes 2`.",
    );
  }
  return {
    env: lists.env ?? [],
    envFiles: lists["env-file"] ?? [],
    gpus: values.gpus ?? null,
    numNodes: nodes === undefined ? null : Number(nodes),
  };
}
