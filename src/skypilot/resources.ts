import { type AskedAccelerator, readAccelerator, type SkypilotCandidate } from "../request/skypilot.ts";
import type { Complaint } from "./checks.ts";
import { checkCandidate, checkResources } from "./schema.ts";
import { entryOf, pyText, type YamlEntry, type YamlMap, type YamlMapValue, type YamlValue } from "./value.ts";

/** One of the resources that a task may run on, after SkyPilot's own merging. */
export interface TaskCandidate extends SkypilotCandidate {
  /** Labels that SkyPilot gives this candidate. */
  readonly labels: Readonly<Record<string, string>>;
  /** Where it must run, as SkyPilot writes it: `lambda/us-east-1`, `slurm/cluster/partition`; null = anywhere. */
  readonly infra: string | null;
  readonly useSpot: boolean;
}

/** Where in the text a candidate's accelerators stand, for a rewrite. */
export interface CandidateOrigin {
  /** The `any_of` or `ordered` list and the entry that this candidate is; null when the task has none. */
  readonly item: { readonly list: YamlEntry; readonly index: number; readonly map: YamlMapValue } | null;
  /** The `accelerators` (or `gpus`) entry in force, and whether it stands in `item` itself. */
  readonly accelerators: { readonly entry: YamlEntry; readonly own: boolean } | null;
  /** Which of the entry's values: the index in its list or mapping; null when it is a single text. */
  readonly part: number | null;
  /** Offset of that value's text; of the candidate's own mapping where it names no accelerators. */
  readonly at: number | null;
}

export interface ExpandedResources {
  readonly candidates: readonly { readonly candidate: TaskCandidate; readonly origin: CandidateOrigin }[];
  readonly choice: "one" | "any-of" | "ordered";
}

/** Thrown by the expansion; the reader turns it into a problem with its place. */
export class ResourcesError extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

type Fields = ReadonlyMap<string, YamlEntry>;

interface Part {
  readonly text: string;
  readonly at: number;
  readonly part: number | null;
}

/**
 * Turns `resources` into the list of candidates that SkyPilot 0.13 makes of it (`Resources.from_yaml_config`):
 * the alias `gpus`, lists (in order of preference), mappings (without order), `any_of` and `ordered` with the
 * base laid under each entry.
 *
 * @param strict check fields and types; a request from SkyPilot was checked there, maybe by a newer version.
 * @throws ResourcesError
 */
export function expandResources(resources: YamlMap | null, strict: boolean): ExpandedResources {
  if (resources === null) return { candidates: [none(new Map())], choice: "one" };
  refuse(bothNames(resources));
  if (strict) refuse(checkResources(resources));
  const base = fieldsOf(resources);
  const anyOf = listField(base, "any_of");
  const ordered = listField(base, "ordered");
  if (anyOf !== null && ordered !== null) {
    throw new ResourcesError("`resources` may not have both `any_of` and `ordered`.", ordered.key.at);
  }
  const list = nonEmpty(anyOf) ?? nonEmpty(ordered);
  const accelerators = partsOf(base, list !== null);
  const listed = accelerators?.entry.value.kind === "list";
  // SkyPilot looks sizes up at once, whether a candidate uses them or not, and each stands for several cards.
  const sizes = (accelerators?.parts ?? []).filter(({ text }) => SIZE.test(text));
  for (const { text, at } of sizes) readable(text, at);
  const several = (accelerators?.parts.length ?? 0) > 1 || sizes.some(({ text }) => text.includes("+"));
  const preferred = accelerators?.preferred === true || (listed && several);
  if (list !== null) {
    if (several && (list === ordered || preferred)) {
      throw new ResourcesError(
        `Several accelerators${preferred ? " in order of preference" : ""} cannot stand beside \`${pyText(list.key)}\`.`,
        accelerators!.entry.key.at,
      );
    }
    const candidates = entriesOf(base, list, strict);
    return { candidates, choice: choiceOf(candidates.length, list === ordered) };
  }
  const candidates = singles(base, labelsOf(base), null, false);
  return { candidates, choice: choiceOf(candidates.length, preferred) };
}

function choiceOf(count: number, ordered: boolean): ExpandedResources["choice"] {
  return count <= 1 ? "one" : ordered ? "ordered" : "any-of";
}

function refuse(complaint: Complaint | null): void {
  if (complaint !== null) throw new ResourcesError(complaint.message, complaint.at);
}

function bothNames(map: YamlMap): Complaint | null {
  const alias = entryOf(map, "gpus");
  if (alias === null || entryOf(map, "accelerators") === null) return null;
  return {
    at: alias.key.at,
    message: "`gpus` and `accelerators` are the same field; only one may be given.",
  };
}

function fieldsOf(map: YamlMap): Map<string, YamlEntry> {
  const fields = new Map<string, YamlEntry>();
  for (const entry of map.entries) {
    if (entry.key.kind !== "str") continue;
    fields.set(entry.key.value === "gpus" ? "accelerators" : entry.key.value, entry);
  }
  return fields;
}

function field(fields: Fields, name: string): YamlEntry | null {
  const entry = fields.get(name);
  return entry === undefined || entry.value.kind === "null" ? null : entry;
}

function listField(fields: Fields, name: string): YamlEntry | null {
  const entry = field(fields, name);
  return entry?.value.kind === "list" ? entry : null;
}

function nonEmpty(entry: YamlEntry | null): YamlEntry | null {
  return entry?.value.kind === "list" && entry.value.items.length > 0 ? entry : null;
}

function entriesOf(
  base: Fields,
  list: YamlEntry,
  strict: boolean,
): ExpandedResources["candidates"][number][] {
  const items = list.value.kind === "list" ? list.value.items : [];
  // SkyPilot lays each entry's labels into one shared mapping, so with labels in the base every candidate
  // ends with the union, and a later entry's value replaces an earlier one's everywhere.
  const shared = labelsOf(base);
  const hasBase = field(base, "labels") !== null;
  return items.flatMap((map, index) => {
    if (map.kind !== "map") throw new ResourcesError("A candidate must be a mapping.", map.at);
    refuse(bothNames(map));
    if (strict) refuse(checkCandidate(map, `resources.${pyText(list.key)}[${index}]`));
    const own = fieldsOf(map);
    const merged = new Map([...base, ...own]);
    const labels = hasBase ? Object.assign(shared, labelsOf(own)) : labelsOf(own);
    return singles(merged, labels, { list, index, map }, own.has("accelerators"));
  });
}

/** The candidates of one set of fields: one for each accelerator it names. */
function singles(
  fields: Fields,
  labels: Record<string, string>,
  item: CandidateOrigin["item"],
  own: boolean,
): ExpandedResources["candidates"][number][] {
  const place = placeOf(fields);
  const instance = field(fields, "instance_type")?.value;
  const common = {
    instanceType: instance?.kind === "str" ? instance.value : null,
    labels,
    infra: place,
    useSpot: isTrue(field(fields, "use_spot")),
  };
  const accelerators = partsOf(fields);
  const fromMemory = isTrue(field(fields, "_no_missing_accel_warnings"));
  if (accelerators === null) {
    const candidate = { ...common, accelerator: null, fromMemory };
    return [{ candidate, origin: { item, accelerators: null, part: null, at: item?.map.at ?? null } }];
  }
  return accelerators.parts.map(({ text, at, part }) => {
    const accelerator = readable(text, at);
    return {
      candidate: { ...common, accelerator, fromMemory },
      origin: { item, accelerators: { entry: accelerators.entry, own }, part, at },
    };
  });
}

/** A size of memory in place of a card, alone or with a manufacturer. */
const SIZE = /^(?:[^:]*:)?[0-9]+[GMT]B\b|:.*:/i;

/** @throws ResourcesError */
function readable(text: string, at: number): AskedAccelerator {
  const accelerator = readAccelerator(text);
  if (typeof accelerator === "string") throw new ResourcesError(accelerator, at);
  return accelerator;
}

function none(fields: Fields): ExpandedResources["candidates"][number] {
  return singles(fields, {}, null, false)[0]!;
}

/** The accelerator strings of an entry, repeated ones once, and whether their order is a preference. */
function partsOf(
  fields: Fields,
  mayBeNone = false,
): { entry: YamlEntry; parts: Part[]; preferred: boolean } | null {
  const entry = field(fields, "accelerators");
  if (entry === null) return null;
  const { value } = entry;
  const parts: Part[] = [];
  if (value.kind === "list") {
    for (const [part, one] of value.items.entries()) parts.push({ text: pyText(one), at: one.at, part });
  } else if (value.kind === "map") {
    for (const [part, { key, value: count }] of value.entries.entries()) {
      const text = count.kind === "null" ? pyText(key) : `${pyText(key)}:${pyText(count)}`;
      parts.push({ text, at: key.at, part });
    }
  } else {
    parts.push({ text: pyText(value), at: value.at, part: null });
  }
  const seen = new Set<string>();
  const once = parts.filter(({ text }) => !seen.has(text) && seen.add(text));
  // Where each entry of a list has its own, none is missed.
  if (once.length === 0 && mayBeNone) return null;
  if (once.length === 0) throw new ResourcesError("`accelerators` names no accelerator.", value.at);
  return { entry, parts: once, preferred: value.kind === "list" && once.length > 1 };
}

function labelsOf(fields: Fields): Record<string, string> {
  const value = field(fields, "labels")?.value;
  if (value?.kind !== "map") return {};
  return Object.fromEntries(value.entries.map(({ key, value: label }) => [pyText(key), pyText(label)]));
}

function isTrue(entry: YamlEntry | null): boolean {
  return entry?.value.kind === "bool" && entry.value.value;
}

function placeOf(fields: Fields): string | null {
  const infra = field(fields, "infra");
  const parts = (["cloud", "region", "zone"] as const).map((name) => field(fields, name));
  const second = parts.find((entry) => entry !== null);
  if (infra !== null && second !== undefined) {
    throw new ResourcesError("`infra` may not stand beside `cloud`, `region` or `zone`.", second!.key.at);
  }
  const written = infra === null ? parts.map(textOf).join("/") : textOf(infra);
  const pieces = written
    .trim()
    .replace(/^\/+|\/+$/g, "")
    .split("/")
    .map((piece) => piece.trim() || "*");
  while (pieces.at(-1) === "*") pieces.pop();
  if (pieces.length === 0) return null;
  const cloud = pieces[0]!.toLowerCase();
  return [cloud === "k8s" ? "kubernetes" : cloud, ...pieces.slice(1)].join("/");
}

function textOf(entry: YamlEntry | null): string {
  const value: YamlValue | undefined = entry?.value;
  return value === undefined ? "*" : pyText(value);
}
