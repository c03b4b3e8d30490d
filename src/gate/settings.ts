import type { RepoPolicy } from "../policy/types.ts";
import type { CardTable } from "../request/types.ts";

export const MODES = ["warn", "reject"] as const;
export const SIZINGS = ["auto", "builtin", "cli", "hosted"] as const;

/** What a site sets, resolved once: flags over the site file over these defaults. */
export interface Settings {
  /** Slurm only: tell people, or also refuse. */
  readonly mode: (typeof MODES)[number];
  readonly mutate: boolean;
  /** An error of ours refuses instead of admitting. */
  readonly failClosed: boolean;
  readonly maxCostUsd: number | null;
  /** Need = peak x headroom. */
  readonly headroom: number;
  readonly sizing: (typeof SIZINGS)[number];
  /** Command line of an external sizing CLI; null = `neurarch` on PATH when one is asked for. */
  readonly cli: string | null;
  /** Address of the hosted plan; null = none under `auto`, the public one under `hosted`. */
  readonly planUrl: string | null;
  /** Seconds for one sizing source; null = what the adapter's deadline leaves. */
  readonly timeoutS: number | null;
  readonly cluster: string | null;
  /** The policy file for every job, in place of those of repositories; null = each job's own is looked for. */
  readonly policyFile: string | null;
  /** What a policy file may do. */
  readonly repoPolicy: RepoPolicy;
  /** Folder that verdicts are recorded in, or the address of a server that collects them; null = they are not. */
  readonly ledger: string | null;
  /** Salted digests are recorded in place of users' names. */
  readonly ledgerAnonymous: boolean;
  /** How the ledger is kept; absent = as a site that says nothing of it. */
  readonly ledgerUpkeep?: LedgerUpkeep;
  /** Append a short verdict to the job's comment (Slurm). */
  readonly annotate: boolean;
  /** What an untyped `gpu:N` means at this site. */
  readonly defaultGpuType: string | null;
  /** Partition -> GPU type, for untyped requests. */
  readonly partitionMap: Readonly<Record<string, string>> | null;
  /** Use Slurm's --time for the cost cap when the job names no hours. */
  readonly hoursFromTime: boolean;
  readonly table: CardTable;
  /** Judge by a size that a client sends where the model cannot be read here, and send one; absent = yes. */
  readonly clientSizing?: boolean;
  /** A site's usual values of facts that jobs rarely name: `precision` -> `bf16`. */
  readonly factDefaults: Readonly<Record<string, string>>;
}

/** Keys of the site file about the ledger, each null where it is not set. */
export interface LedgerUpkeep {
  /** A file with the key that a collector asks for. */
  readonly tokenFile: string | null;
  /** MB of 1e6 bytes at which a file is put aside. */
  readonly rotateMb: number | null;
  /** Days after which it is. */
  readonly rotateDays: number | null;
  /** Days that files put aside are kept. */
  readonly keepDays: number | null;
}

/** A site file as read: every key optional, values checked, file references not yet followed. */
export interface SiteFile {
  readonly mode?: Settings["mode"];
  readonly mutate?: boolean;
  readonly fail_closed?: boolean;
  readonly max_cost_usd?: number;
  readonly headroom?: number;
  readonly sizing?: Settings["sizing"];
  readonly cli?: string;
  readonly plan_url?: string;
  readonly timeout_s?: number;
  readonly cluster?: string;
  readonly policy_file?: string;
  readonly repo_policy?: RepoPolicy;
  readonly client_sizing?: boolean;
  readonly ledger?: string;
  readonly ledger_anonymous?: boolean;
  readonly ledger_token_file?: string;
  readonly ledger_rotate_mb?: number;
  readonly ledger_rotate_days?: number;
  readonly ledger_keep_days?: number;
  readonly annotate?: boolean;
  readonly default_gpu_type?: string;
  readonly hours_from_time?: boolean;
  /** Path of a JSON file, or the table itself. */
  readonly cards?: string | Record<string, unknown>;
  readonly prices?: string | Record<string, unknown>;
  readonly gpu_map?: string | Record<string, unknown>;
  readonly partition_map?: string | Record<string, unknown>;
  readonly defaults?: Record<string, string | number | boolean>;
}

/** Where a site's settings are looked for when `--config` does not say. */
export const SITE_FILE = "/etc/neurarch/gate.toml";
