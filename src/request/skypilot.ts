import { shown } from "../lib/shown.ts";
import type { AnyCandidate, Card, CardTable, GpuRequest, RequestReason, Vendor } from "./types.ts";
import { unknownCard } from "./unknown.ts";

/** What `accelerators:` can say of one kind of device, before any card table is asked. */
export interface AskedAccelerator {
  /** The name as written: `A100`, `80GB+`, `NVIDIA:40GB+`. */
  readonly name: string;
  /** Per node; a fraction shares one device. NaN and infinity are accepted by SkyPilot too. */
  readonly count: number;
  /** A size in place of a name: every card of that memory (or more) may be given. */
  readonly memory: AskedMemory | null;
}

export interface AskedMemory {
  readonly gb: number;
  readonly atLeast: boolean;
  readonly manufacturer: string | null;
}

/** One of the resources a task may run on, as far as a GPU request is concerned. */
export interface SkypilotCandidate {
  readonly accelerator: AskedAccelerator | null;
  readonly instanceType: string | null;
  /** SkyPilot made it out of a memory size and marked it `_no_missing_accel_warnings`. */
  readonly fromMemory: boolean;
}

export interface SkypilotResources {
  readonly candidates: readonly SkypilotCandidate[];
  readonly choice: "one" | "any-of" | "ordered";
  readonly numNodes: number;
}

const MEMORY = /^[0-9]+[GgMmTt][Bb]\+?$/;
const UNIT_GB: Readonly<Record<string, number>> = { mb: 1 / 1024, gb: 1, tb: 1024 };

/**
 * Reads one accelerator string as SkyPilot 0.13 does (`Resources._parse_accelerators_from_str` and
 * `_set_accelerators`): `H100`, `H100:8`, `A10G:0.5`, `80GB+`, `80GB:2`, `NVIDIA:40GB+`, `NVIDIA:40GB+:2`.
 *
 * @returns the request, or the sentence that says why SkyPilot refuses it.
 */
export function readAccelerator(text: string): AskedAccelerator | string {
  const parts = text.split(":");
  const [first = "", second = "", third = ""] = parts;
  if (parts.length === 3) {
    if (!MEMORY.test(second)) {
      return `The accelerator ${quoted(text)} has three parts, and the middle one is not a memory size.`;
    }
    return memoryRequest(text, `${first}:${second}`, second, first, third);
  }
  if (parts.length <= 2 && MEMORY.test(first))
    return memoryRequest(text, first, first, null, parts[1] ?? "1");
  if (parts.length === 2 && MEMORY.test(second)) return memoryRequest(text, text, second, first, "1");
  if (parts.length === 1) return { name: text, count: 1, memory: null };
  const count = parts.length === 2 ? pythonNumber(second) : null;
  if (count === null)
    return `The accelerator ${quoted(text)} is not a name, nor a name and a count (H100:8).`;
  if (count <= 0) return `The accelerator count in ${quoted(text)} is not a positive number.`;
  return { name: first, count, memory: null };
}

function memoryRequest(
  text: string,
  name: string,
  size: string,
  manufacturer: string | null,
  countText: string,
): AskedAccelerator | string {
  const count = /^\s*[+-]?[0-9]+(?:_[0-9]+)*\s*$/.test(countText) ? pythonNumber(countText) : null;
  if (count === null) return `The accelerator count in ${quoted(text)} is not a whole number.`;
  if (count <= 0) return `The accelerator count in ${quoted(text)} is not a positive number.`;
  const atLeast = size.endsWith("+");
  const bare = atLeast ? size.slice(0, -1) : size;
  const gb = Number(bare.slice(0, -2)) * UNIT_GB[bare.slice(-2).toLowerCase()]!;
  if (!Number.isInteger(gb)) return `The memory size in ${quoted(text)} is not a whole number of GB.`;
  return { name, count, memory: { gb, atLeast, manufacturer } };
}

/** Python's `float()` of a text; null where it raises. */
function pythonNumber(text: string): number | null {
  // Wide digits, as an input method for Chinese or Japanese types them, are digits there too.
  const bare = text
    .replace(/\p{Nd}/gu, (digit) => digit.normalize("NFKC"))
    .trim()
    .toLowerCase();
  if (/^[+-]?(?:nan)$/.test(bare)) return Number.NaN;
  const infinite = /^([+-]?)(?:inf|infinity)$/.exec(bare);
  if (infinite !== null) return infinite[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const digits = "[0-9]+(?:_[0-9]+)*";
  const number = new RegExp(`^[+-]?(?:${digits}\\.?(?:${digits})?|\\.${digits})(?:e[+-]?${digits})?$`);
  return number.test(bare) ? Number(bare.replaceAll("_", "")) : null;
}

/** `A10G:1`, `H100:8 x 2 nodes`: how messages name a request. */
export function requestLabel(accelerator: string, count: number, nodes: number): string {
  return `${accelerator}:${count}${nodes > 1 ? ` x ${nodes} nodes` : ""}`;
}

/**
 * The GPU request of a SkyPilot task, against the card table in force. Candidates keep the task's order, and
 * `written` tells which of the task's candidates each one is.
 *
 * A memory size ("80GB+") stands for every card of that size: its candidate is a card of the memory it states,
 * the smallest it may give. SkyPilot's own expansion of one stays a candidate for each card.
 */
export function skypilotRequest(resources: SkypilotResources, table: CardTable): GpuRequest {
  const asking = resources.candidates.filter(asksForCards);
  const candidates: AnyCandidate[] = [];
  for (const [written, candidate] of resources.candidates.entries()) {
    const one = candidateOf(candidate, resources.numNodes, table);
    if (one !== null) candidates.push(written === candidates.length ? one : { ...one, written });
  }
  if (asking.length > 0 && asking.every(isOpen)) return { candidates, choice: "open", notes: [] };
  if (candidates.length <= 1) return { candidates, choice: "one", notes: [] };
  return { candidates, choice: resources.choice === "ordered" ? "ordered" : "any-of", notes: [] };
}

function asksForCards(candidate: SkypilotCandidate): boolean {
  return candidate.accelerator !== null || candidate.instanceType !== null;
}

function isOpen(candidate: SkypilotCandidate): boolean {
  return candidate.accelerator !== null && (candidate.accelerator.memory !== null || candidate.fromMemory);
}

function candidateOf(candidate: SkypilotCandidate, nodes: number, table: CardTable): AnyCandidate | null {
  if (candidate.accelerator === null) {
    return candidate.instanceType === null ? null : instanceTypeOf(candidate.instanceType, nodes);
  }
  const { name, count, memory } = candidate.accelerator;
  const label = requestLabel(shown(name), count, nodes);
  const unjudged = (reason: RequestReason, message: string): AnyCandidate => ({
    accelerator: name,
    count: Number.isFinite(count) ? count : null,
    nodes,
    label,
    reason,
    message,
  });
  const unknown = () => {
    const { reason, message } = unknownCard(name, count, table);
    return unjudged(reason, message);
  };
  if (!Number.isFinite(count)) {
    return unjudged("unreadable-request", `${label} asks for no readable number of accelerators.`);
  }
  if (memory !== null) {
    return { accelerator: name, count, nodes, card: statedCard(name, memory), label, memoryForm: true };
  }
  if (name.includes("$")) return unknown();
  if (!Number.isInteger(count)) {
    return unjudged("fractional", `${label} asks for a part of a card, and what a part holds is not known.`);
  }
  const card = table.find(name);
  if (card !== null) return { accelerator: name, count, nodes, card, label, memoryForm: isOpen(candidate) };
  if (/^tpu(?:-|$)|^(?:trainium|inferentia|neuron)/i.test(name)) {
    return unjudged("not-a-gpu", `${shown(name)} is not a GPU, and no capacity is on file for it.`);
  }
  return unknown();
}

function instanceTypeOf(instanceType: string, nodes: number): AnyCandidate {
  return {
    accelerator: instanceType,
    count: null,
    nodes,
    label: `${shown(instanceType)}${nodes > 1 ? ` x ${nodes} nodes` : ""}`,
    reason: "instance-type",
    message: `The request names the instance type ${quoted(instanceType)} and no accelerators, and its cards are not on file.`,
  };
}

function statedCard(name: string, memory: AskedMemory): Card {
  return {
    id: name,
    gb: memory.gb,
    usdPerHour: null,
    names: [name],
    vendor: VENDORS[memory.manufacturer?.toLowerCase() ?? ""] ?? "cuda",
    candidate: false,
    slice: false,
    source: { capacity: "the memory size the request states", price: null },
  };
}

const VENDORS: Readonly<Record<string, Vendor>> = { nvidia: "cuda", amd: "rocm", intel: "hpu" };

function quoted(name: string): string {
  return `'${shown(name)}'`;
}
