import type { Result } from "../lib/result.ts";
import { taskDocuments } from "./documents.ts";
import { applyEdits, insertPair, spelled } from "./edits.ts";
import { DROP, editsOf, KEEP, now, type Wanted } from "./plan.ts";
import { type Problem, Unreadable } from "./problem.ts";
import type { ExpandedResources } from "./resources.ts";
import { expandedOf, guarded, requestDocument } from "./task.ts";
import { entryOf, pyText, type YamlMap, type YamlMapValue, type YamlValue } from "./value.ts";

/** What becomes of a task's candidates, by their index in `Task.candidates`. At least one must stay. */
export interface TaskChange {
  readonly drop: readonly number[];
  readonly replace: readonly {
    readonly candidate: number;
    readonly accelerator: string;
    /** Per node. */
    readonly count: number;
  }[];
}

type Expanded = ExpandedResources["candidates"];

/**
 * Rewrites the accelerators of one task of a file by changing only the ranges of the text that differ: comments,
 * order, quotes and every other task stay as they are. The result is read again, and a text in which anything
 * else came out changed is not returned.
 *
 * @param taskIndex among the file's tasks, as in `TaskFile.tasks`
 */
export function rewriteTask(text: string, taskIndex: number, change: TaskChange): Result<string, Problem> {
  return guarded(() => rewritten(text, change, (source) => mapsOf(source), taskIndex));
}

/** The same for the task of an admin-policy request, which SkyPilot wrote. */
export function rewriteRequestTask(text: string, change: TaskChange): Result<string, Problem> {
  return guarded(() => rewritten(text, change, (source) => [requestDocument(source)], 0));
}

/**
 * The task of a request with other cards *beside* the ones it asks for, of which SkyPilot takes what a cluster has.
 * Only a task that asks for one card by name can be told so; any other is returned as it is.
 */
export function offerRequestTask(text: string, accelerator: string, count: number): Result<string, Problem> {
  return guarded(() => {
    const resources = entryOf(requestDocument(text), "resources");
    const asked = resources?.value.kind === "map" ? entryOf(resources.value, "accelerators") : null;
    const node = asked?.pair?.value ?? null;
    const { candidates } = expandedOf(text, resources, false);
    if (node === null || candidates.length !== 1) return text;
    const edit = insertPair(text, node, spelled(`${accelerator}:${count}`, undefined), "x");
    if (edit === null) return text;
    return applyEdits(text, [{ ...edit, text: edit.text.replace(": x", () => ": null") }]) ?? text;
  });
}

/** The answer where a text cannot be rewritten in place. */
export const NOT_REWRITABLE = "The request cannot be rewritten where it stands in the task.";

function mapsOf(text: string): readonly YamlMapValue[] {
  return taskDocuments(text).tasks;
}

function rewritten(
  text: string,
  change: TaskChange,
  read: (text: string) => readonly YamlMapValue[],
  index: number,
): string {
  const before = read(text);
  const map = before[index];
  if (map === undefined) throw new Unreadable(`The file holds no task ${index + 1}.`);
  const resources = entryOf(map, "resources");
  const { candidates } = expandedOf(text, resources, false);
  const wanted = wantedOf(candidates, change);
  if (wanted.every((one) => one === KEEP)) return text;
  const edits = wanted.every((one) => one === DROP)
    ? null
    : editsOf(text, map, resources, candidates, wanted);
  const result = edits === null ? null : applyEdits(text, edits);
  if (result === null || !holds(text, result, read, index, wanted)) throw new Unreadable(NOT_REWRITABLE);
  return result;
}

/** One wish a candidate; a rewrite that repeats another candidate of the same place drops this one. */
function wantedOf(candidates: Expanded, change: TaskChange): Wanted[] {
  const wanted: Wanted[] = candidates.map(() => KEEP);
  for (const { candidate, accelerator, count } of change.replace) {
    if (candidate in wanted) wanted[candidate] = { accelerator, count };
  }
  for (const candidate of change.drop) if (candidate in wanted) wanted[candidate] = DROP;
  const seen = new Set<string>();
  const itemOf = (index: number): unknown => candidates[index]?.origin.item?.index ?? null;
  for (const [index, wish] of wanted.entries())
    if (wish === KEEP) seen.add(`${itemOf(index)} ${now(candidates, index)}`);
  for (const [index, wish] of wanted.entries()) {
    if (wish === KEEP || wish === DROP) continue;
    const name = `${itemOf(index)} ${wish.accelerator}:${wish.count}`;
    if (now(candidates, index) === `${wish.accelerator}:${wish.count}`) wanted[index] = KEEP;
    else if (seen.has(name)) wanted[index] = DROP;
    seen.add(name);
  }
  return wanted;
}

/** The text read again: the wanted candidates, and everything else as it was. */
function holds(
  before: string,
  after: string,
  read: (text: string) => readonly YamlMapValue[],
  index: number,
  wanted: readonly Wanted[],
): boolean {
  try {
    return picture(before, read, index, wanted) === picture(after, read, index, null);
  } catch (error) {
    if (error instanceof Unreadable) return false;
    throw error;
  }
}

/** Everything a text says, with the wanted changes applied when they are given. */
function picture(
  text: string,
  read: (text: string) => readonly YamlMapValue[],
  index: number,
  wanted: readonly Wanted[] | null,
): string {
  const maps = read(text);
  const others = maps.map((map, task) => pyText(asValue(task === index ? without(map, ["resources"]) : map)));
  const resources = entryOf(maps[index]!, "resources");
  const { candidates } = expandedOf(text, resources, false);
  const base = resources?.value.kind === "map" ? without(resources.value, REWRITTEN) : null;
  const kept = candidates.flatMap(({ candidate, origin }, at) => {
    const wish = wanted?.[at] ?? KEEP;
    if (wish === DROP) return [];
    const { accelerator, ...rest } = candidate;
    const asked = wish === KEEP ? now(candidates, at) : `${wish.accelerator}:${wish.count}`;
    const own = origin.item === null ? "" : pyText(asValue(without(origin.item.map, REWRITTEN)));
    return [JSON.stringify([asked, rest, own])];
  });
  return JSON.stringify([others, base === null ? "{}" : pyText(asValue(base)), kept]);
}

const REWRITTEN = ["accelerators", "gpus", "any_of", "ordered"];

function without(map: YamlMap, names: readonly string[]): YamlMap {
  const entries = map.entries.filter(({ key }) => !(key.kind === "str" && names.includes(key.value)));
  return { ...map, entries };
}

function asValue(map: YamlMap): YamlValue {
  return { ...map, at: 0, node: null, alias: false };
}
