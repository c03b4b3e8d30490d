import type { Line, Sizing } from "../sizing/types.ts";
import type { CardCount, Decision, Judged, RuleId, WaiverUse } from "../verdict/types.ts";
import type { PerCard } from "./per-card.ts";

/* What the documents of `--json` hold. Scripts rely on every key: one that is not there is null. */

export interface SizingBody {
  readonly model: string;
  readonly family: string | null;
  readonly assumed: readonly string[];
  readonly params: number | null;
  readonly trainableParams: number | null;
  readonly activeParams: number | null;
  readonly recipe: Sizing["recipe"];
  readonly seqLen: number;
  readonly batch: number;
  readonly floorBytes: number;
  readonly fixedBytes: number;
  readonly perSampleBytes: number;
  readonly peakBytes: number;
  readonly source: Sizing["source"];
  readonly revision: string | null;
  readonly terms: readonly MomentTerms[] | null;
  /** What one card of the first judged candidate holds, under `--explain` where there are several. */
  readonly perCard?: PerCard;
}

/** A moment with its summands, as `--explain` adds them. */
export interface MomentTerms extends Line {
  readonly moment: string;
  readonly what: string;
  readonly bytes: number;
  readonly inForce: boolean;
  readonly terms: readonly (Line & {
    readonly name: string;
    readonly formula: string;
    readonly bytes: number;
  })[];
}

export interface RequestBody {
  readonly accelerator: string;
  readonly count: number | null;
  readonly nodes: number | null;
  readonly label: string;
  readonly gb: number | null;
}

export interface VerdictBody {
  readonly decision: Decision;
  readonly rule: RuleId | null;
  readonly reason: string | null;
  readonly message: string | null;
  readonly request: RequestBody;
  readonly needGb: number | null;
  readonly peakGb: number | null;
  readonly fit: Judged["fit"] | null;
  readonly largestBatch: number | null;
  /** The name to ask for it by. */
  readonly smallestCard: string | null;
  readonly smallestRequest: CardCount | null;
  readonly rightSized: CardCount | null;
  readonly stateGb: number | null;
  readonly rewriteTo: CardCount | null;
  readonly alternatives: readonly { readonly change: string; readonly needGb: number }[];
  readonly costUsd: number | null;
  readonly waiver: WaiverUse | null;
}

export interface VerdictDocument {
  readonly schema: "neurarch-gate/verdict";
  readonly version: 1;
  readonly decision: Decision;
  readonly messages: readonly string[];
  readonly task: string | null;
  readonly verdicts: readonly VerdictBody[];
  readonly sizing: SizingBody | null;
}
