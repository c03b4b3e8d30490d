import type { Origin } from "../facts/types.ts";
import type { Place } from "../lib/place.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { readAccelerator, type SkypilotResources } from "../request/skypilot.ts";
import { readBlock } from "./block.ts";
import { refuseGroup, taskDocuments, textField } from "./documents.ts";
import { type EnvFlags, envFlags, readEnvs, type TaskOverrides, usage } from "./envs.ts";
import { leanRequestText } from "./lean.ts";
import { type Problem, placeOf, Unreadable, unreadableAt } from "./problem.ts";
import { expandResources, ResourcesError, type TaskCandidate } from "./resources.ts";
import { checkTask } from "./schema.ts";
import { entryOf, pyText, type YamlEntry, type YamlMap, type YamlMapValue } from "./value.ts";
import { readYaml } from "./yaml.ts";

export type { TaskOverrides } from "./envs.ts";

/** Largest task of a request, its scripts left out: thousands of variables and mounts. */
const MAX_LEAN_CHARS = 512 << 10;
/** The same where the whole reader is needed: what it reads for longer than others wait would hold up a server. */
const MAX_WHOLE_CHARS = 128 << 10;
/** Candidates of one request; a memory size stands for some fifty. */
const MAX_CANDIDATES = 500;

/** A task as SkyPilot would submit it; it serves `skypilotRequest` as it stands. */
export interface Task extends SkypilotResources {
  /** Among the file's tasks, from 0. */
  readonly index: number;
  readonly name: string | null;
  readonly envs: Readonly<Record<string, string>>;
  /** Where each of `envs` was read: a line of the file, `--env` or `--env-file`. */
  readonly envOrigins: Readonly<Record<string, Origin>>;
  readonly candidates: readonly TaskCandidate[];
  /** Any candidate asks for spot instances. */
  readonly useSpot: boolean;
  /** The local folder that it runs from; null without one, and for one that is fetched from git. */
  readonly workdir: string | null;
  /** It serves (`service`) or is a pool of workers (`pool`): not training unless the task says so. */
  readonly service: boolean;
  /** 1-based line of `accelerators:` (or of `resources:`), for reports that point at a line. */
  readonly line: number | null;
  /** Where each of `candidates` stands; null for one that is nowhere in the text. */
  readonly places: readonly (Place | null)[];
  /** Where the task's request stands, else its first key. */
  readonly place: Place | null;
}

export interface TaskFile {
  readonly kind: "task" | "pipeline" | "job-group";
  readonly name: string | null;
  readonly tasks: readonly Task[];
  /** Sentences worth telling: flags that SkyPilot ignores for a file of several tasks. */
  readonly notes: readonly string[];
}

/**
 * Reads a task file as `sky launch` and `sky jobs launch` would: one task, a pipeline or a job group, with
 * the flags that change it. A file that SkyPilot refuses is a `Problem`.
 */
export function readTasks(text: string, overrides: TaskOverrides = {}): Result<TaskFile, Problem> {
  return guarded(() => {
    const documents = taskDocuments(text);
    const flags = envFlags(overrides);
    const tasks = documents.tasks.map((map, index) => readTask(text, map, index, flags, true));
    if (documents.kind === "job-group") refuseGroup(text, documents);
    const { gpus = null, numNodes = null } = overrides;
    const { kind, name } = documents;
    if (kind === "task") {
      return { kind, name, tasks: [overlaid(tasks[0]!, gpus, numNodes)], notes: [] };
    }
    const ignored = [gpus === null ? null : "--gpus", numNodes === null ? null : "--num-nodes"];
    const notes = ignored
      .filter((flag) => flag !== null)
      .map((flag) => `SkyPilot ignores ${flag} for a file of several tasks, so it was not used.`);
    return { kind, name, tasks, notes };
  });
}

/**
 * Reads the task of an admin-policy request. SkyPilot wrote and checked that text, so only what is used is
 * read, fields of a newer version pass, and of several documents the first one counts.
 */
export function readRequestTask(text: string): Result<Task, Problem> {
  return guarded(() => {
    const lean = leanRequestText(text);
    refuseLength(lean, MAX_LEAN_CHARS);
    const task = plainTask(lean) ?? wholeTask(lean);
    const { length } = task.candidates;
    if (length > MAX_CANDIDATES)
      throw new Unreadable(`The task has ${length} candidates; at most ${MAX_CANDIDATES} are judged.`);
    return task;
  });
}

/** A task in the form that SkyPilot's writer gives nearly all; null where the whole reader has to look. */
function plainTask(lean: string): Task | null {
  const block = readBlock(lean);
  if (block === null) return null;
  try {
    return readTask(lean, block, 0, new Map(), false);
  } catch (error) {
    // The whole reader knows the place of what is wrong.
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

/** @throws Unreadable */
function wholeTask(lean: string): Task {
  refuseLength(lean, MAX_WHOLE_CHARS);
  return readTask(lean, requestDocument(lean), 0, new Map(), false);
}

/** @throws Unreadable */
function refuseLength({ length }: string, most: number): void {
  if (length > most)
    throw new Unreadable(`The task has ${length} characters beside its scripts; at most ${most} are read.`);
}

/** @throws Unreadable */
export function requestDocument(text: string): YamlMapValue {
  const map = readYaml(text, false)[0];
  if (map?.kind !== "map") throw new Unreadable("The request's task is not a YAML mapping.");
  return map;
}

/** Runs a reader; what it refuses becomes a value. */
export function guarded<T>(read: () => T): Result<T, Problem> {
  try {
    return ok(read());
  } catch (error) {
    if (error instanceof Unreadable) return fail(error.problem());
    throw error;
  }
}

/** @throws Unreadable */
export function readTask(text: string, map: YamlMap, index: number, flags: EnvFlags, strict: boolean): Task {
  if (strict) {
    // SkyPilot drops this key, its own copy of a task's text, before it checks the rest.
    const entries = map.entries.filter(({ key }) => pyText(key) !== "_user_specified_yaml");
    const complaint = checkTask({ ...map, entries });
    if (complaint !== null) throw unreadableAt(text, complaint.at, complaint.message);
  }
  const envs = readEnvs(text, map, flags, strict);
  const resources = entryOf(map, "resources");
  const pool = isPresent(entryOf(map, "pool"));
  const service = isPresent(entryOf(map, "service"));
  if (pool && service) {
    throw unreadableAt(text, entryOf(map, "pool")!.key.at, "a task may not have both `service` and `pool`.");
  }
  const expanded = expandedOf(text, resources, strict);
  const candidates = expanded.candidates.map(({ candidate }) => candidate);
  const entry = expanded.candidates[0]?.origin.accelerators?.entry ?? resources;
  const first = entry ?? map.entries[0];
  return {
    index,
    name: textField(map, "name"),
    envs: Object.fromEntries([...envs].map(([name, { value }]) => [name, value])),
    envOrigins: Object.fromEntries([...envs].map(([name, { from }]) => [name, from])),
    candidates,
    choice: expanded.choice,
    numNodes: nodesOf(text, entryOf(map, "num_nodes")),
    useSpot: candidates.some(({ useSpot }) => useSpot),
    workdir: workdirOf(map),
    service: service || pool,
    line: entry === null ? null : placeOf(text, entry.key.at).line,
    // Of a request nobody sees the text.
    places: expanded.candidates.map(({ origin }) =>
      origin.at === null || !strict ? null : placeOf(text, origin.at),
    ),
    place: first === undefined || !strict ? null : placeOf(text, first.key.at),
  };
}

/** @throws Unreadable */
export function expandedOf(
  text: string,
  resources: YamlEntry | null,
  strict: boolean,
): ReturnType<typeof expandResources> {
  try {
    return expandResources(resources?.value.kind === "map" ? resources.value : null, strict);
  } catch (error) {
    if (error instanceof ResourcesError) throw unreadableAt(text, error.at, error.message);
    throw error;
  }
}

function workdirOf(map: YamlMap): string | null {
  const value = entryOf(map, "workdir")?.value;
  return value?.kind === "str" && value.value !== "" ? value.value : null;
}

function isPresent(entry: YamlEntry | null): boolean {
  return entry !== null && entry.value.kind !== "null";
}

function nodesOf(text: string, entry: YamlEntry | null): number {
  if (entry === null || entry.value.kind === "null") return 1;
  const { value } = entry;
  if (value.kind === "int" && value.value > 0n) return Number(value.value);
  throw unreadableAt(
    text,
    value.at,
    `\`num_nodes\` must be a positive whole number, and it is ${shown(pyText(value), 40)}.`,
  );
}

function overlaid(task: Task, gpus: string | null, numNodes: number | null): Task {
  if (numNodes !== null && !(Number.isInteger(numNodes) && numNodes > 0)) {
    throw usage(`--num-nodes must be a positive whole number, and it is ${numNodes}.`);
  }
  const nodes = numNodes ?? task.numNodes;
  if (gpus === null) return { ...task, numNodes: nodes };
  const accelerator = gpus.toLowerCase() === "none" ? null : readAccelerator(gpus);
  if (typeof accelerator === "string" || /:.*:|^[^:]*:.*[GgMmTt][Bb]\+?$/.test(gpus)) {
    throw usage(`--gpus takes a name or a name and a count (H100:8), and it is '${shown(gpus)}'.`);
  }
  const candidates = task.candidates.map((one) => ({ ...one, accelerator, fromMemory: false }));
  return { ...task, candidates, numNodes: nodes };
}
