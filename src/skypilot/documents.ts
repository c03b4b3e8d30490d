import { shown } from "../lib/shown.ts";
import { Unreadable, unreadableAt } from "./problem.ts";
import { entryOf, pyText, type YamlMap, type YamlMapValue } from "./value.ts";
import { readYaml } from "./yaml.ts";

/** The documents of a file sorted into header and tasks; `tasks` are in the file's order. */
export interface TaskDocuments {
  readonly kind: "task" | "pipeline" | "job-group";
  readonly name: string | null;
  readonly header: YamlMapValue | null;
  readonly tasks: readonly YamlMapValue[];
}

/** @throws Unreadable */
export function taskDocuments(text: string): TaskDocuments {
  try {
    return sorted(text, true);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    // SkyPilot refuses a repeated key in every file but a job group's, where the last one counts.
    const lenient = sorted(text, false);
    if (lenient.kind !== "job-group") throw error;
    return lenient;
  }
}

function sorted(text: string, refuseDuplicates: boolean): TaskDocuments {
  const maps: (YamlMapValue | null)[] = readYaml(text, refuseDuplicates).map((value, index) => {
    if (value.kind === "null") return null;
    if (value.kind !== "map" || value.set) {
      throw unreadableAt(text, value.at, `document ${index + 1} is not a mapping of task fields.`);
    }
    return value;
  });
  if (!maps.some((map) => map !== null && map.entries.length > 0)) {
    throw new Unreadable("The file holds no task.", null, null, "Add at least a run: field");
  }
  const first = maps[0] ?? null;
  const execution = first === null ? null : entryOf(first, "execution");
  const mode = execution === null ? null : pyText(execution.value);
  const group = maps.length > 1 && mode === "parallel";
  const header = first !== null && (group || isHeader(first)) ? first : null;
  if (header !== null && !group && execution !== null && mode !== "serial" && mode !== "None") {
    throw unreadableAt(
      text,
      execution.value.at,
      "a pipeline's `execution` is `serial`, a job group's `parallel`.",
    );
  }
  const named = header ?? (maps.length === 1 ? first : null);
  const name = named === null ? null : textField(named, "name");
  // A file that is only a header still makes one task of that name.
  const rest = header === null ? maps : maps.length === 1 ? [header] : maps.slice(1);
  const tasks = rest
    .filter((map) => map !== null)
    .map((map) => (map === header ? withoutExecution(map) : map));
  if (tasks.length === 0) throw new Unreadable("The file holds no task after its header.");
  return { kind: group ? "job-group" : tasks.length > 1 ? "pipeline" : "task", name, header, tasks };
}

function isHeader(map: YamlMap): boolean {
  const keys = map.entries.map(({ key }) => pyText(key)).sort();
  return keys.join() === "name" || keys.join() === "execution,name";
}

function withoutExecution(map: YamlMapValue): YamlMapValue {
  return { ...map, entries: map.entries.filter(({ key }) => pyText(key) !== "execution") };
}

/**
 * What SkyPilot asks of a job group: names, and no name twice (`dag_utils._load_job_group`).
 *
 * @throws Unreadable
 */
export function refuseGroup(text: string, { header, tasks: maps }: TaskDocuments): void {
  const at = (map: YamlMap): number => map.entries[0]?.key.at ?? 0;
  const safe = /^[\p{L}\p{N}_-]+$/u;
  const groupName = textField(header!, "name");
  if (groupName === null || !safe.test(groupName)) {
    throw unreadableAt(text, at(header!), "a job group needs a `name` of letters, digits, - and _.");
  }
  const names = new Set<string>();
  for (const map of maps) {
    const name = textField(map, "name");
    if (name === null) throw unreadableAt(text, at(map), "each job of a job group needs a `name`.");
    if (name !== "" && !safe.test(name)) {
      throw unreadableAt(text, at(map), "a job's `name` in a job group is made of letters, digits, - and _.");
    }
    if (names.has(name)) throw unreadableAt(text, at(map), `the job name ${shown(name)} stands twice.`);
    names.add(name);
  }
  const primary = entryOf(header!, "primary_tasks")?.value;
  if (primary === undefined || primary.kind === "null") return;
  if (primary.kind !== "list")
    throw unreadableAt(text, primary.at, "`primary_tasks` must be a list of job names.");
  for (const one of primary.items) {
    if (one.kind !== "str" || !names.has(one.value)) {
      throw unreadableAt(text, one.at, `\`primary_tasks\` names no job of this file: ${shown(pyText(one))}.`);
    }
  }
}

/** A field as text; null when it is absent or empty. */
export function textField(map: YamlMap, name: string): string | null {
  const entry = entryOf(map, name);
  return entry === null || entry.value.kind === "null" ? null : pyText(entry.value);
}
