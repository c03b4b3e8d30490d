import type { Decision, Fit } from "../verdict/types.ts";

/** Through which door a request came: `skypilot` is the Python policy, `serve` the REST one and `POST /v1/judge`. */
export const ADAPTERS = ["slurm", "skypilot", "judge", "serve"] as const;
export type Adapter = (typeof ADAPTERS)[number];

/** The form that lines are written in. A reader passes over lines of a later one. */
export const ENTRY_VERSION = 1;

/**
 * One verdict on one request, as a line of the ledger. Nothing of the environment, no messages, no text of the user's
 * but the names of the model and of what is asked for. Of several candidates the one that the decision rests on.
 */
export interface Entry {
  readonly v: typeof ENTRY_VERSION;
  /** UTC, `2026-11-30T21:05:00.123Z`. */
  readonly time: string;
  readonly adapter: Adapter;
  /** Who asked: a name, or a salted digest of it (`anon-...`); null where a server was not told. */
  readonly user: string | null;
  /** The host that judged. */
  readonly host: string;
  readonly cluster: string | null;
  readonly model: string | null;
  /** What tells equal structures under other names and paths; null where an external source sized it. */
  readonly structure: string | null;
  /** The request as messages name it: `H100:8 x 2 nodes`. */
  readonly request: string | null;
  /** The card table's id; null for a card that is not known. */
  readonly card: string | null;
  /** Cards per node. */
  readonly count: number | null;
  readonly nodes: number | null;
  /** Array tasks; 1 without an array. */
  readonly tasks: number;
  /** Candidates of the request. */
  readonly candidates: number;
  /** GB are 1e9 bytes. */
  readonly requestGb: number | null;
  readonly needGb: number | null;
  readonly decision: Decision;
  /** It was kept from running: refused, and by an adapter that stops what it refuses. */
  readonly stopped: boolean;
  readonly rule: string | null;
  readonly reason: string | null;
  readonly fit: Fit | null;
  /** Owner of the waiver that turned a refusal into a warning. */
  readonly waiver: string | null;
  /** List price of the run as asked: card price x cards x hours x array tasks; null without a price or hours. */
  readonly usd: number | null;
  /** Of an over-request: `usd` less the price of the smallest request that holds the job. */
  readonly overUsd: number | null;
  /** Cards x hours x array tasks; null without hours. */
  readonly gpuHours: number | null;
  /** What sized it: `builtin`, `cli`, `hosted`; null where nothing did. */
  readonly source: string | null;
  /** Of this program. */
  readonly version: string;
  /** Tells this verdict from every other, so that a line that arrives twice counts once; lines of old programs have none. */
  readonly id?: string;
}
