import type { JobFacts, Recipe } from "../facts/types.ts";
import type { Candidate, Card, CardTable, RequestReason, UnjudgedCandidate } from "../request/types.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";

/** What is done with a request, from harmless to final; `unjudged` neither refuses nor clears. */
export const DECISIONS = ["allow", "warn", "refuse", "rewrite", "unjudged"] as const;
export type Decision = (typeof DECISIONS)[number];

/** How the cards asked compare with what the job needs. */
export const FITS = ["under", "right-sized", "over"] as const;
export type Fit = (typeof FITS)[number];

export type RuleId =
  | "admission/request-does-not-fit"
  | "admission/cost-cap"
  | "admission/over-requested"
  | "admission/borderline-fit"
  | "budget/card-not-allowed"
  | "budget/cost-per-run"
  | "budget/params"
  | "policy/waiver-expired"
  | "policy/waiver-invalid";

/** The machine's word for why a verdict is what it is. */
export type Reason =
  | "fits"
  | "too-small"
  | "over-cost-cap"
  | "over-requested"
  | "borderline"
  | "facts-unreadable"
  | RequestReason
  | Unsized["reason"];

/** A number of cards of one kind on one node: how a suggestion or a rewrite is given. */
export interface CardCount {
  /** The name to ask for it by (the site's spelling where a GPU map is set). */
  readonly accelerator: string;
  readonly count: number;
}

/** A one-key change of the recipe under which a refused request would hold the job. */
export interface Alternative {
  /** As the key is written in facts: `checkpointing=full`. */
  readonly change: string;
  readonly needGb: number;
}

/** A list price times the run; `usd` = `usdPerCardHour` x `cards` x `hours` x `tasks`. */
export interface Cost {
  readonly usd: number;
  readonly usdPerCardHour: number;
  readonly cards: number;
  readonly hours: number;
  /** Array tasks the hours are multiplied by; 1 without an array. */
  readonly tasks: number;
  /** The list price is an upper bound only (spot): over the cap is then a warning. */
  readonly upperBound: boolean;
  /** The card that is paid for: the rewritten request's after a rewrite. */
  readonly card: Card;
  /** The cap it was held against; null when none is set. */
  readonly capUsd: number | null;
  readonly overCap: boolean;
}

/** Why an over-request was not rewritten. */
export type RewriteBlocked =
  | "mutate-off"
  | "multi-node"
  | "memory-form"
  | "no-card-allowed"
  | "cheapest-already";

/** A waiver of the policy file that turned this refusal into a warning. */
export interface WaiverUse {
  readonly file: string;
  readonly owner: string;
  readonly expires: string;
  readonly reason: string;
}

/** A line of the policy file's budget that refuses (or, in a warn mode, warns). */
export interface BudgetFinding {
  readonly rule?: RuleId;
  readonly file: string;
  readonly title: string;
  readonly fix: string | null;
}

/** What is known of one candidate after judging: numbers and codes; sentences are made in `render`. */
export interface Judged {
  readonly kind: "judged";
  readonly candidate: Candidate;
  readonly decision: Exclude<Decision, "unjudged">;
  readonly rule: RuleId | null;
  readonly reason: "fits" | "too-small" | "over-cost-cap" | "over-requested" | "borderline";
  /** What it was judged by, where it is known: that of one card of so many where a mode shares the state. */
  readonly sizing?: Sizing;
  /** Memory asked: card GB x count x nodes. */
  readonly requestGb: number;
  /** All cards hold one sharded job; false = every card (or slice) is judged by itself, at its own batch. */
  readonly pooled: boolean;
  /** Cards asked over all nodes. */
  readonly totalCards: number;
  /** What the need is held against: the pool's memory, or one card's when cards are not pooled. */
  readonly capacityGb: number;
  /** Samples a step over all cards that share the job. */
  readonly globalBatch: number;
  readonly peakGb: number;
  /** peak x headroom. */
  readonly needGb: number;
  /** Weights, gradients and optimizer state, without headroom. */
  readonly stateGb: number;
  /** stateGb x headroom: what a message says the state alone needs. */
  readonly stateNeedGb: number;
  /** The moment that makes the peak, by name; null for a source that gives a single line. */
  readonly peakMoment: string | null;
  /** Refused although the first forward and backward, before any optimizer state exists, would pass. */
  readonly failsAtFirstStep: boolean;
  readonly fit: Fit;
  /** Largest batch per device that fits with headroom; null = none does, or the size does not depend on the batch. */
  readonly largestBatch: number | null;
  /** The size depends on the batch at all: without it a message says nothing of batches. */
  readonly dependsOnBatch: boolean;
  /** With one sample per device: need in GB. Told when the state fits and one sample does not. */
  readonly oneSampleNeedGb: number;
  readonly smallestCard: CardCount | null;
  /** The smallest sharded request when no single card holds the job; null when none of up to 64 cards does. */
  readonly smallestRequest: CardCount | null;
  /** Of an over-request: the cheapest request up to the size asked that holds the job. */
  readonly rightSized: CardCount | null;
  readonly rewriteTo: CardCount | null;
  readonly rewriteBlocked: RewriteBlocked | null;
  /** The cards of `rightSized` and `rewriteTo`, for prices and capacities in messages. */
  readonly rightSizedCard: Card | null;
  readonly rewriteCard: Card | null;
  readonly alternatives: readonly Alternative[];
  readonly cost: Cost | null;
  /** Why a cost cap that is set was not checked; null when it was, or when none is set. */
  readonly costUnchecked: "no-hours" | "no-price" | null;
  /** `parallel` is not set and one card alone would not hold its share: only sharding does. */
  readonly onlySharded: boolean;
  /** What a whole copy at the per-device batch needs on one card. */
  readonly oneCardNeedGb: number;
  /** Set by the policy file, when one applies. */
  readonly waiver?: WaiverUse;
  readonly budget?: BudgetFinding;
  /** The file's severity of the rule made it another decision. */
  readonly setTo?: { readonly file: string; readonly severity: "block" | "warn" | "off" };
}

export interface NotJudged {
  readonly kind: "unjudged";
  readonly candidate: UnjudgedCandidate | Candidate;
  readonly reason: RequestReason | Unsized["reason"];
  readonly message: string;
  /** A line of the policy file's budget that refuses it all the same: a card that is not allowed needs no size. */
  readonly budget?: BudgetFinding;
}

export type Verdict = Judged | NotJudged;

/** What a site or an adapter sets. All of it is data; nothing here reads a file. */
export interface JudgeSettings {
  readonly table: CardTable;
  /** Need = peak x headroom. */
  readonly headroom: number;
  readonly maxCostUsd: number | null;
  /** Rewrite over-requests instead of warning. */
  readonly mutate: boolean;
  /** Array tasks of the job; 1 without an array. */
  readonly tasks: number;
  readonly useSpot: boolean;
  /** Hours to use for the cost when the job names none (Slurm's --time, when the site says so). */
  readonly fallbackHours: number | null;
  /** Card names a rewrite may use, when the task's infrastructure or the site's list restricts them; null = any. */
  readonly rewriteCards: readonly string[] | null;
  /** The scheduler may grant whole nodes whatever is asked (--exclusive): no over-request is claimed. */
  readonly wholeNodes?: boolean;
}

/** Memory that a resized job has to keep within to be of use, at a number of samples. */
export interface Within {
  readonly bytes: number;
  readonly samples: number;
}

/**
 * Sizes the same job with another recipe; null when that cannot be done, or when it is plain without walking a step
 * that the job is not `within`. Passed in so that judging stays pure.
 */
export type Resize = (change: Partial<Recipe>, within?: Within) => Sizing | null;

/** Sizes one card of `cards` that share the job, with a change of the recipe; null when that cannot be done. */
export type PerCard = (change: Partial<Recipe>, cards: number) => Sizing | null;

export interface JobToJudge {
  readonly facts: JobFacts;
  readonly sizing: Sizing;
  readonly resize: Resize;
  /** What one of so many cards holds under a change, in a mode that shares the state; null when it has no size. */
  readonly perCard?: PerCard;
  /**
   * Global batches that are not batch per device x cards, by the request's label: one that was rewritten keeps the
   * batch of the request it came from, so judging it again finds nothing to rewrite. Read from where it was noted.
   */
  readonly globalBatches?: ReadonlyMap<string, number>;
}

/** The verdict on a whole request: the worst of its candidates, after `mutate` has dropped or rewritten. */
export interface RequestVerdict {
  readonly decision: Decision;
  readonly verdicts: readonly Verdict[];
  /** Indexes of candidates that `mutate` drops because they cannot hold the job while another can. */
  readonly dropped: readonly number[];
}
