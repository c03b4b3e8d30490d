/**
 * What the bridge's pure parts speak of: the request of a sandboxed client, the frames that answer it, the
 * operator's profile and campaign, the journal's record of one evaluation and the class of its end.
 */

/** What a client may ask for. */
export type EvaluationKind = "accuracy" | "benchmark";

/** One line of a client, read strictly (protocol version 2). */
export interface EvaluationRequest {
  readonly kind: EvaluationKind;
  /** 32 lower-case hex digits, chosen by the client and kept by it until the result is acknowledged. */
  readonly invocationId: string;
  /** Empty, or the benchmark's output flag and path. */
  readonly arguments: readonly string[];
  /** Empty, or that path. */
  readonly artifacts: readonly string[];
  /** An extension that the public clients never send. */
  readonly declared?: Declared;
}

/** Files that a call wants back besides: patterns relative to the job's folder, and how much of them at most. */
export interface Declared {
  readonly globs: readonly string[];
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/** A file that came back. `path` is relative to the job's folder. */
export interface DeclaredFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}

/** One that did not, and why, as the end of "PATH is left out: ...". `*` = all of them. */
export interface LeftOutFile {
  readonly path: string;
  readonly reason: string;
}

/** Which of the two client lines the error frames are for: `mainline` has no `message`. */
export type ErrorFrames = "mainline" | "campaign";

export type WireStatus = "COMPLETED" | "APPLICATION_FAILED" | "CANCELLED";

/** An artifact small enough to travel in a frame. `dataBase64` decodes to `size` bytes with digest `sha256`. */
export interface ArtifactData {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
  readonly dataBase64: string;
}

export type Frame =
  | { readonly type: "stdout" | "stderr"; readonly data: string }
  | { readonly type: "artifact"; readonly artifact: ArtifactData }
  /** Only to a client that declared files: one begins, its bytes in order, and how many came in all. */
  | { readonly type: "file"; readonly file: DeclaredFile }
  | { readonly type: "file_data"; readonly dataBase64: string }
  | { readonly type: "files"; readonly count: number }
  | {
      readonly type: "result";
      readonly status: WireStatus;
      readonly skyExitCode: number;
      readonly remoteJobId: number;
    }
  | { readonly type: "acked"; readonly invocationId: string }
  | { readonly type: "error"; readonly error: string; readonly message: string };

/** How an evaluation ended, finer than the wire says it. */
export type ResultClass = WireStatus | "ALLOCATION_EXPIRED" | "NODE_FAILED" | "PREEMPTED" | "TRANSPORT_LOST";

export type AcceleratorBackend = "cuda" | "rocm" | "trainium";

/** What the experiment asks for, without naming a cluster (`[resources]`). */
export interface PortableRequest {
  readonly nodes: number;
  readonly acceleratorsPerNode: number;
  readonly acceleratorBackend: AcceleratorBackend;
  readonly cpusPerNode: number | null;
}

/** One `[profiles.NAME]` of the operator's file. */
export interface Profile {
  readonly name: string;
  readonly infra: string;
  readonly acceleratorBackend: AcceleratorBackend;
  readonly acceleratorType: string;
  readonly acceleratorsPerNode: number;
  readonly cpusPerNode: number | null;
  readonly memoryGbPerNode: number | null;
  readonly maxNodes: number;
  readonly exclusive: boolean;
  readonly remoteRuntimeImage: string | null;
  readonly commandPrefix: readonly string[] | null;
  /** As Slurm spells it (`[D-]HH:MM:SS`). */
  readonly allocationTime: string | null;
  /** `$USER` and `$HOME` expanded. */
  readonly remoteArtifactRoot: string | null;
  /** The same as the file has it: a job expands them itself, since the operator may have another name there. */
  readonly remoteArtifactRootWritten?: string;
}

/** A portable request on a profile: what an allocation is made of. */
export interface ResolvedResources {
  readonly profileName: string;
  readonly infra: string;
  readonly acceleratorType: string;
  readonly nodes: number;
  readonly acceleratorsPerNode: number;
  readonly cpusPerNode: number | null;
  readonly memoryGbPerNode: number | null;
  readonly exclusive: boolean;
  readonly runtimeImage: string | null;
  readonly commandPrefix: readonly string[] | null;
  readonly allocationTime: string | null;
  readonly remoteArtifactRoot: string | null;
  readonly remoteArtifactRootWritten?: string;
}

/** Everything a daemon is started with, checked, every path absolute. */
export interface Campaign {
  readonly runId: string;
  /** Names the workspace in records; the folder's name unless said. */
  readonly workspaceId: string;
  readonly workspace: string;
  readonly socketPath: string;
  readonly stateDir: string;
  /** The `sky` executable: a path, or a bare name looked up in PATH. */
  readonly skyPath: string;
  readonly profile: Profile;
  readonly portable: PortableRequest;
  readonly resources: ResolvedResources;
  /** The trusted commands, split as a shell does and rewritten for the remote side. */
  readonly commands: Readonly<Record<EvaluationKind, readonly string[]>>;
  readonly benchmarkOutputFlag: string;
  /** A shell text run before each evaluation, in the workdir. */
  readonly setup: string | null;
  readonly errorFrames: ErrorFrames;
  /** Workspace paths that are never staged. */
  readonly hide: readonly string[];
  /** Globs that override the size limit of model weights. */
  readonly include: readonly string[];
  /** Further attempts after an infrastructure failure (1). */
  readonly retries: number;
  /** Leaves the allocation when the daemon ends. */
  readonly keep: boolean;
  /** Seconds one evaluation may run once it has started; null = only the allocation's wall time. */
  readonly timeoutS: number | null;
  /** Seconds an allocation may wait in the cluster's queue; null = as long as sky says that it is being made. */
  readonly launchTimeoutS: number | null;
  /** `allow`: names taken from the daemon's own environment; `set`: literal values. Values are secrets. */
  readonly environment: {
    readonly allow: readonly string[];
    readonly set: Readonly<Record<string, string>>;
  };
  /** The job's facts when the campaign names a model (`model`, `batch`, ...), for the judge. */
  readonly job: Readonly<Record<string, string>> | null;
  /** Days that files of ours stay below the profile's persistent folder (7). */
  readonly artifactDays?: number;
}

export type Phase = "PREPARED" | "SUBMITTING" | "SUBMITTED" | "RUNNING" | "COMPLETED" | "ACKNOWLEDGED";

/** What names an allocation: the cluster's name and its `node_names` (null when sky did not say). */
export interface Allocation {
  readonly clusterName: string;
  readonly nodeNames: string | null;
}

/** How one evaluation ended, as kept in the journal. */
export interface EvaluationResult {
  readonly class: ResultClass;
  readonly status: WireStatus;
  /** Exit of `sky logs`, as the wire has it (0, 100, 103). */
  readonly skyExitCode: number;
  /** The program's own exit code, from the marker or sky's list; null when nobody said. */
  readonly exitCode: number | null;
  readonly artifact: ArtifactData | null;
  readonly diagnosis: string | null;
  readonly clusterName: string;
  readonly jobName: string;
  readonly remoteJobId: number;
  readonly attempt: number;
  /** What became of the files that the call declared; their bytes lie in the run's state folder. */
  readonly declared?: {
    readonly files: readonly DeclaredFile[];
    readonly leftOut: readonly LeftOutFile[];
    /** Further ones left out that are not named. */
    readonly more: number;
  };
}

/** How an evaluation ended whose declared files are still on the cluster: it is not run again for them. */
export interface PendingResult {
  readonly result: EvaluationResult;
  /** The attempt's folder below the persistent one. */
  readonly folder: string;
  readonly stored: readonly (DeclaredFile & { readonly number: number })[];
}

/**
 * One evaluation on disk. Offsets count bytes of the spool (the program's visible output, UTF-8), and
 * `deliveredBytes` never exceeds `spooledBytes`.
 */
export interface JournalRecord {
  readonly schema: 1;
  readonly invocationId: string;
  readonly kind: EvaluationKind;
  readonly requestSha256: string;
  readonly snapshotSha256: string;
  /** Names the lines that the job prints for us; random, so that a candidate cannot foretell it. */
  readonly nonce: string;
  readonly phase: Phase;
  /** 0 in PREPARED of a first attempt, +1 at each SUBMITTING. */
  readonly attempt: number;
  readonly jobName: string;
  readonly remoteJobId: number | null;
  readonly allocation: Allocation | null;
  readonly resources: ResolvedResources | null;
  /** Milliseconds since the epoch. */
  readonly createdMs: number;
  /** When its submission was begun, before anything was asked of sky. */
  readonly submittedMs: number | null;
  readonly startedMs: number | null;
  readonly spooledBytes: number;
  readonly deliveredBytes: number;
  readonly cancelRequested: boolean;
  readonly result: EvaluationResult | null;
  /** One line an attempt that infrastructure ended: its class and what was seen. */
  readonly failures: readonly {
    readonly attempt: number;
    readonly class: ResultClass;
    readonly seen: string;
  }[];
  /** What was asked, so that an attempt can be repeated without its client. */
  readonly request?: Pick<EvaluationRequest, "arguments" | "artifacts" | "declared">;
  /** Names the snapshot in the staging area where it is not the invocation's id. */
  readonly snapshotKey?: string;
  /** Attempts that an earlier call used up; the bound on retries counts those since. */
  readonly attemptsBefore?: number;
  /** It was the campaign's timeout that cancelled it. */
  readonly timedOut?: boolean;
  /** How often the attempt's output was begun anew because the cluster's log had changed. */
  readonly outputRestarts?: number;
  /** Set while the program has ended and declared files are being fetched. */
  readonly pending?: PendingResult;
  /** A job of this name was taken to be nowhere: it is looked for once more before it is submitted again. */
  readonly mayExist?: boolean;
}
