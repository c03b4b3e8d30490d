/** Who makes a card; suggestions never cross vendors. */
export type Vendor = "cuda" | "rocm" | "hpu" | "other";

/** A card, or a MIG slice of one, as a scheduler hands it out. */
export interface Card {
  /** The table's id: `A100-80`, `H100`, `MI300X`. */
  readonly id: string;
  /** Memory in GB (1e9 bytes) in the unit a scheduler hands out. */
  readonly gb: number;
  /** List price in USD per card-hour; null when none is known (the cost cap is then not checked). */
  readonly usdPerHour: number | null;
  /** Names it is asked by, matched without case. The first one is used in suggestions. */
  readonly names: readonly string[];
  readonly vendor: Vendor;
  /** Whether it is compared and suggested; cards that are not are judged as asked. */
  readonly candidate: boolean;
  /** A slice of a card (MIG): never sharded together with others. */
  readonly slice: boolean;
  /** Where capacity and price come from, for `cards` and cost messages. */
  readonly source: { readonly capacity: string; readonly price: string | null };
}

/** The table in force: the built-in one with a site's cards, prices and GPU map laid over it. */
export interface CardTable {
  readonly cards: readonly Card[];
  /** Finds a card by id or name, without case; null when no capacity is on file. */
  find(name: string): Card | null;
  /** The nearest known name, for "did you mean"; null when nothing is near. */
  nearest(name: string): string | null;
  /** The name a suggestion uses for this card: the site's own spelling where a GPU map is set. */
  nameOf(card: Card): string;
  /** A site's GPU map is in force: a name outside it is no card there. */
  readonly mapped?: boolean;
  /** Where prices come from and their date, for cost messages. */
  readonly priceSource: string;
}

/** One concrete request: `count` cards of one kind on each of `nodes` nodes. */
export interface Candidate {
  /** As the user spelled it. */
  readonly accelerator: string;
  /** Cards per node. */
  readonly count: number;
  readonly nodes: number;
  readonly card: Card;
  /** `A10G:1`, or `H100:8 x 2 nodes`: how messages name it. */
  readonly label: string;
  /** A request by memory size ("80GB+"): the smallest card it may give, so never rewritten. */
  readonly memoryForm: boolean;
  /** Index of the task's candidate this one was read from, where that is not its own place in the list. */
  readonly written?: number;
}

export type RequestReason =
  | "card-unknown"
  | "untyped-gpu"
  | "mixed-cards"
  | "task-count-unknown"
  | "shared-gpu"
  | "fractional"
  | "not-a-gpu"
  | "instance-type"
  | "unresolved-variable"
  | "unreadable-request";

/** A request that is there and cannot be judged; `message` says why in one sentence. */
export interface UnjudgedCandidate {
  readonly accelerator: string;
  readonly count: number | null;
  readonly nodes: number | null;
  readonly label: string;
  readonly reason: RequestReason;
  readonly message: string;
  /** Index of the task's candidate this one was read from, where that is not its own place in the list. */
  readonly written?: number;
}

export type AnyCandidate = Candidate | UnjudgedCandidate;

/** What one task or job asks for. An empty list = no accelerator is asked. */
export interface GpuRequest {
  readonly candidates: readonly AnyCandidate[];
  /** How several candidates relate; `one` when there is at most one. `open` = a memory form: refused only if all fail. */
  readonly choice: "one" | "any-of" | "ordered" | "open";
  /** Sentences worth telling: `--exclusive` may grant a whole node, a repeated option, ... */
  readonly notes: readonly string[];
  /**
   * `--exclusive`: the node comes whole whatever was asked for, so asking for less frees nothing and the request
   * is not called over-requested.
   */
  readonly wholeNode?: true;
}

export function isJudged(candidate: AnyCandidate): candidate is Candidate {
  return "card" in candidate;
}
