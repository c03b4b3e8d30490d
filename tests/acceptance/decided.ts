import { readFileSync } from "node:fs";

/** One decided case of the published package: a line in the batch, a job, a request, and what came of it. */
export interface Decided {
  readonly sizing: { readonly fixed_gb: number; readonly per_sample_gb: number; readonly seq_len: number };
  readonly job: {
    readonly model: string;
    readonly batch: number;
    readonly seq_len: number | null;
    readonly lora_rank: number | null;
    readonly attention: string;
    readonly hours: number | null;
  };
  readonly request: { readonly accelerator: string; readonly count: number; readonly num_nodes: number };
  readonly settings: {
    readonly mutate: boolean;
    readonly max_cost_usd: number | null;
    readonly prices: Record<string, number> | null;
  };
  readonly expect: {
    readonly action: string;
    readonly need_gb: number | null;
    readonly est_cost_usd: number | null;
    readonly rewrite_to: [string, number] | null;
    readonly fit?: string;
    readonly max_batch?: number | null;
    readonly smallest_card?: string | null;
    readonly smallest_request?: [string, number] | null;
    readonly right_sized?: [string, number] | null;
  };
}

/** All of them, in the file's order. */
export const DECIDED: readonly Decided[] = readFileSync(`${import.meta.dir}/../fixtures/parity.jsonl`, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
