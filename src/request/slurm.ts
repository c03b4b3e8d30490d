import { shown } from "../lib/shown.ts";
import { countGpus, type SlurmCounts } from "./slurm-counts.ts";
import { optionOf, type SlurmOptions, wantsWholeNodes } from "./slurm-options.ts";
import type { AnyCandidate, Card, CardTable, GpuRequest, UnjudgedCandidate } from "./types.ts";
import { unknownCard } from "./unknown.ts";

/** What a site says of requests that name no GPU type. */
export interface SlurmSite {
  /** What an untyped `gpu:N` means. */
  readonly defaultGpuType?: string | null;
  /** Partition -> GPU type; it goes before the default type. */
  readonly partitionMap?: Readonly<Record<string, string>> | null;
}

const NOTHING: GpuRequest = { candidates: [], choice: "one", notes: [] };

/**
 * The GPU request of a Slurm job: one candidate, or none when it asks for no GPU. Options have Slurm's long names
 * and the values of a command line, a script or the filter's options table (whose marks for "not given" are known).
 * The card's name stays as the user wrote it; suggestions are spelled the table's way.
 */
export function slurmRequest(options: SlurmOptions, table: CardTable, site: SlurmSite = {}): GpuRequest {
  const counts = countGpus(options);
  if ("reason" in counts) {
    const { reason, label, message } = counts;
    const candidate = { accelerator: shown(label), count: null, nodes: null, label: shown(label) };
    return { ...NOTHING, candidates: [{ ...candidate, reason, message: shown(message, 300) }] };
  }
  const candidate = candidateOf(counts, options, table, site);
  if (candidate === null) return NOTHING;
  if (!wantsWholeNodes(options)) return { ...NOTHING, candidates: [candidate], notes: counts.notes };
  const note = `--exclusive may grant the whole node; the request is judged on ${candidate.label}.`;
  return { ...NOTHING, candidates: [candidate], notes: [...counts.notes, note], wholeNode: true };
}

function candidateOf(
  counts: SlurmCounts,
  options: SlurmOptions,
  table: CardTable,
  site: SlurmSite,
): AnyCandidate | null {
  if (counts.totals.size === 0) return counts.shares.length === 0 ? null : sharedOf(counts, table);
  const untyped = counts.totals.get("") ?? 0;
  const typed = [...counts.totals].filter(([type]) => type !== "");
  const [first] = typed;
  if (first === undefined) return untypedOf(untyped, counts.nodes, options, table, site);
  const cards = typed.map(([type]) => table.find(type));
  const same = cards.every((card) => card !== null && card.id === cards[0]?.id);
  if (typed.length > 1 && !same) return mixedOf(typed, counts.nodes);
  // An untyped count beside a typed one repeats it (`gres/gpu:a100=1,gres/gpu=1`): it is never added.
  const total =
    typed.length === 1 ? Math.max(first[1], untyped) : typed.reduce((sum, [, count]) => sum + count, 0);
  return typedOf(first[0], total, counts.nodes, cards[0] ?? null, table);
}

/** How a total lies over the nodes: evenly, or as one pool where it does not divide. */
function spread(type: string, total: number, nodes: number) {
  const accelerator = shown(type, 200);
  const name = shown(type);
  if (nodes > 1 && total % nodes === 0) {
    return { accelerator, count: total / nodes, nodes, label: `${name}:${total / nodes} x ${nodes} nodes` };
  }
  return {
    accelerator,
    count: total,
    nodes: 1,
    label: `${name}:${total}${nodes > 1 ? ` over ${nodes} nodes` : ""}`,
  };
}

function typedOf(
  type: string,
  total: number,
  nodes: number,
  card: Card | null,
  table: CardTable,
): AnyCandidate {
  const asked = spread(type, total, nodes);
  return card === null
    ? { ...asked, ...unknownCard(type, asked.count, table) }
    : { ...asked, card, memoryForm: false };
}

function untypedOf(
  total: number,
  nodes: number,
  options: SlurmOptions,
  table: CardTable,
  site: SlurmSite,
): AnyCandidate {
  const type = typeOfPartition(options, site) ?? site.defaultGpuType ?? null;
  if (type !== null) {
    // Settings may name the card itself where a GPU map knows only the site's types.
    const card =
      table.find(type) ?? table.cards.find((each) => each.id.toLowerCase() === type.toLowerCase()) ?? null;
    return typedOf(type, total, nodes, card, table);
  }
  const asked = spread("gpu", total, nodes);
  const message = `${asked.label} names no GPU type, and the site says none for it (a default type or a partition map). Name one, as in gpu:h100:1.`;
  return { ...asked, reason: "untyped-gpu", message };
}

/** The type that all partitions asked for have in common; null when there is none. */
function typeOfPartition(options: SlurmOptions, { partitionMap }: SlurmSite): string | null {
  const asked = optionOf(options, "partition");
  if (asked === null || partitionMap === null || partitionMap === undefined) return null;
  const types = new Set(
    asked
      .split(",")
      .map((partition) => partition.trim())
      .map((partition) => (Object.hasOwn(partitionMap, partition) ? partitionMap[partition]! : null)),
  );
  const [type] = types;
  return types.size === 1 ? (type ?? null) : null;
}

function mixedOf(typed: readonly (readonly [string, number])[], nodes: number): UnjudgedCandidate {
  const label = typed.map(([type, count]) => `${shown(type)}:${count}`).join(" + ");
  const count = typed.reduce((sum, [, each]) => sum + each, 0);
  return {
    accelerator: typed.map(([type]) => type).join(","),
    count: count % nodes === 0 ? count / nodes : count,
    nodes: count % nodes === 0 ? nodes : 1,
    label,
    reason: "mixed-cards",
    message: `${label} are cards of different kinds in one job, which have no common capacity.`,
  };
}

/**
 * Shares of a GPU (`shard`, `mps`). A site says what one share holds with a card named `shard` (or `shard:a100`) in
 * its card file; several shares are then one piece of that many times its memory.
 */
function sharedOf({ shares, nodes }: SlurmCounts, table: CardTable): AnyCandidate {
  const label = shares
    .map(({ kind, type, count }) => `${kind}${type === null ? "" : `:${shown(type)}`}:${count}`)
    .join(" + ");
  const [only] = shares;
  const card =
    shares.length !== 1 || only === undefined
      ? null
      : ((only.type === null ? null : table.find(`${only.kind}:${only.type}`)) ?? table.find(only.kind));
  if (card === null || only === undefined) {
    return {
      accelerator: only?.kind ?? "shard",
      count: only?.count ?? null,
      nodes,
      label,
      reason: "shared-gpu",
      message: `${label} asks for a share of a GPU, and the site does not say what a share holds.`,
    };
  }
  const piece: Card = { ...card, id: label, gb: card.gb * only.count, slice: true, candidate: false };
  return {
    accelerator: only.kind,
    count: 1,
    nodes,
    card: piece,
    label: nodes > 1 ? `${label} x ${nodes} nodes` : label,
    memoryForm: false,
  };
}
