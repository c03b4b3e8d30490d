import { readNodes, readTasks } from "./nodes.ts";

/** A job's options under Slurm's long names, as typed, as a script has them or as a cli_filter reads them. */
export type SlurmOptions = Readonly<Record<string, string>>;

/**
 * What an option reads as when it was not given: nil, `unset` (flags), `invalid-context` (another command's option),
 * `-2` and its unsigned forms (counts), `(null)`. Seen with `options[...]` in cli_filter/lua of 22.05 and 24.11.
 */
const UNSET = new Set(["", "unset", "invalid-context", "(null)", "nil", "-2", "65534", "4294967294"]);

/** The value of an option; null when it was not given. */
export function optionOf(options: SlurmOptions, name: string): string | null {
  const value = Object.hasOwn(options, name) ? options[name] : undefined;
  if (typeof value !== "string") return null;
  const text = value.trim();
  return UNSET.has(text.toLowerCase()) ? null : text;
}

/** A positive count; null when it was not given or is 0, `unreadable` when it is no number. */
export function countOf(options: SlurmOptions, name: string): number | "unreadable" | null {
  const text = optionOf(options, name);
  if (text === null || /^0+$/.test(text)) return null;
  return readTasks(text) ?? "unreadable";
}

/** `--nodes`; `1-0` is how an unset one reads. */
export function nodesOf(options: SlurmOptions): ReturnType<typeof readNodes> | "unreadable" {
  const text = optionOf(options, "nodes");
  if (text === null || text === "1-0" || /^0+$/.test(text)) return null;
  return readNodes(text) ?? "unreadable";
}

/** Whether the job asks for whole nodes: `--exclusive` alone, not `=user`, `=mcs`, `=topo` or `=oversubscribe`. */
export function wantsWholeNodes(options: SlurmOptions): boolean {
  // A bare `--exclusive` can reach us as an empty value, which is otherwise an option that was not given.
  const value = Object.hasOwn(options, "exclusive") ? options.exclusive : undefined;
  if (typeof value !== "string") return false;
  return ["", "exclusive", "allocation", "set", "yes", "true", "1"].includes(value.trim().toLowerCase());
}
