/** What the daemon's parts are to each other: they are made side by side and joined in `evaluation.ts`. */
import type { ClusterFound, QueueFound } from "../bridge/evidence/views.ts";
import type { EvaluationKind, JournalRecord, ResolvedResources } from "../bridge/types.ts";
import type { Result } from "../lib/result.ts";

/** A failure that goes to the client as an error frame: `error` is the class name, `message` one line. */
export interface BridgeProblem {
  readonly error: string;
  readonly message: string;
}

/**
 * The durable memory of a run. `put` is remembered at once and on disk after the next `commit` (one group commit
 * for all that came meanwhile); nothing is delivered and no mutating command is run before its commit resolved.
 */
export interface Journal {
  load(invocationId: string): JournalRecord | null;
  all(): readonly JournalRecord[];
  put(record: JournalRecord): void;
  /** Resolves when everything put or appended so far would survive a power cut. Rejects when the disk refuses. */
  commit(): Promise<void>;
  /** The output of one attempt; opening it again gives what is on disk. Whoever opened it closes it. */
  spool(invocationId: string, jobName: string): Spool;
  close(): Promise<void>;
  /** What was found wrong at the start and how it was dealt with, for the log; empty = nothing was lost. */
  readonly notices: readonly string[];
}

/** The visible output of one attempt, append-only bytes on disk; never held in memory as a whole. */
export interface Spool {
  readonly bytes: number;
  append(chunk: Uint8Array): void;
  /** Bytes `[from, to)`, at most `maxBytes` of them. */
  read(from: number, maxBytes: number): Uint8Array;
  /** How much a client has been handed. */
  readonly delivered: number;
  /** Written without fsync just before the socket gets it; back again where the socket took nothing. */
  markDelivered(bytes: number): void;
  close(): void;
}

export interface Snapshot {
  readonly path: string;
  /** SHA-256 over all paths, links and contents. */
  readonly sha256: string;
  readonly files: number;
  readonly bytes: number;
  /** What was left out because it is a credential or weights: workspace path and reason. */
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[];
}

/** A file of the daemon's own for a snapshot's root. `mode` = permission bits. */
export interface ExtraFile {
  readonly name: string;
  readonly text: string;
  readonly mode: number;
}

export interface Staging {
  /**
   * Copies the workspace as it is now (or gives the finished snapshot of that id). `extra` files are put into its
   * root afterwards: no part of the digest, and never shared with another snapshot.
   */
  snapshot(invocationId: string, extra?: readonly ExtraFile[]): Promise<Result<Snapshot, BridgeProblem>>;
  /** Throws snapshots of acknowledged evaluations away, but for the newest, which the next one is linked to. */
  prune(keep: ReadonlySet<string>): Promise<void>;
}

/** Why a sky call gave nothing to go on. `transport`: look again later, never relaunch on it alone. */
export interface SkyProblem extends BridgeProblem {
  readonly kind:
    | "missing-cli"
    | "timeout"
    | "transport"
    | "no-cluster"
    | "refused"
    | "output"
    | "certificate";
}

export interface LogsEnd {
  readonly exitCode: number | null;
  /** The `Job finished (status: X)` line, if there was one. */
  readonly finished: string | null;
  /** Exit code of our marker line, if it came. */
  readonly markerExit: number | null;
  /** The job's shell said that it was asked to end. */
  readonly stopped?: boolean;
  /** Code of sky's own `failed with return code list: [n]`. */
  readonly listedExit: number | null;
  /** base64 text of the artifact between our markers; "too-big" when the job said so. */
  readonly artifact: string | "too-big" | null;
  /** The lines about declared files; null where they did not come. */
  readonly files?: string | null;
  /** Undecorated lines that name a cause (`DUE TO TIME LIMIT`, `Node failure on` ...), redacted. */
  readonly causes: readonly string[];
}

/** The seven sky calls. Argument vectors only; read-only ones are retried within bounds, mutating ones never. */
export interface Sky {
  /**
   * Refreshed, and with the names of its nodes (two calls); `plain` = one call without a refresh, which names the nodes
   * and tells what SkyPilot believed at most a minute ago.
   */
  cluster(name: string, how?: "plain"): Promise<Result<ClusterFound, SkyProblem>>;
  /** Takes as long as the cluster's queue does. `giveUp` ends the call, not what it began: that is for `down`. */
  launch(name: string, resources: ResolvedResources, giveUp: AbortSignal): Promise<Result<null, SkyProblem>>;
  /** The job id when sky said it; its outcome is found again after the daemon was killed (`pendingExec`). */
  exec(options: ExecOptions): Promise<Result<number | null, SkyProblem>>;
  /** What became of an exec that a killed daemon had started: null when there is no trace of one. */
  pendingExec(jobName: string): Promise<Result<number | null, SkyProblem> | null>;
  queue(name: string): Promise<Result<QueueFound, SkyProblem>>;
  /** Follows a job's log from its start. `onOutput` gets the program's own bytes, undecorated and without markers. */
  logs(options: LogsOptions): Promise<LogsEnd>;
  cancel(name: string, jobId: number | "all"): Promise<Result<null, SkyProblem>>;
  down(name: string): Promise<Result<null, SkyProblem>>;
}

export interface ExecOptions {
  readonly clusterName: string;
  readonly jobName: string;
  readonly resources: ResolvedResources;
  /** Null: the job needs none. */
  readonly workdir: string | null;
  /** The run text, made by `bridge/task-document.ts`. */
  readonly run: string;
}

export interface LogsOptions {
  readonly clusterName: string;
  readonly jobId: number;
  readonly jobName: string;
  readonly nonce: string;
  /** Awaited: a slow consumer holds the pipe back. */
  readonly onOutput: (chunk: Uint8Array) => void | Promise<void>;
  /** sky's own stderr, redacted. */
  readonly onStderr: (text: string) => void;
  readonly signal: AbortSignal;
}

/** One line of `bridge status --json`. */
export interface EvaluationStatus {
  readonly invocationId: string;
  readonly kind: EvaluationKind;
  readonly phase: JournalRecord["phase"];
  readonly class: string | null;
  readonly exitCode: number | null;
  readonly clusterName: string | null;
  readonly jobId: number | null;
  readonly attempt: number;
}
