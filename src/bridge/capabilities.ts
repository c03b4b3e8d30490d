import { MOST_FILE_BYTES, MOST_FILES } from "./declared/globs.ts";
import { MAX_ARTIFACT_BYTES } from "./markers.ts";
import type { EvaluationKind } from "./types.ts";

export const KINDS: readonly EvaluationKind[] = ["accuracy", "benchmark"];

/** Why there is no remote profiler; also what `evaluate profile` answers. */
export const NO_PROFILER =
  "There is no remote profiler: profiling has no typed request and no artifact contract yet; use accuracy and benchmark.";

const NO_PARALLEL =
  "One evaluation runs at a time: the allocation's accelerators are measured undisturbed; others wait their turn.";

/** What a bridge can do, for programs that choose by it. */
export const CAPABILITIES = {
  schema: "neurarch-gate/bridge-capabilities",
  version: 1,
  protocolVersion: 2,
  kinds: KINDS,
  parallelCandidates: { supported: false, reason: NO_PARALLEL },
  remoteProfiler: { supported: false, reason: NO_PROFILER, kinds: ["auto", "none"], supportPath: null },
  artifacts: {
    benchmarkOutput: true,
    declared: true,
    maxBytes: MAX_ARTIFACT_BYTES,
    declaredMaxFiles: MOST_FILES,
    declaredMaxBytes: MOST_FILE_BYTES,
  },
  environment: { allow: true, set: true },
  cancel: true,
  reattach: true,
  errorFrames: ["mainline", "campaign"],
  resultClasses: [
    "COMPLETED",
    "APPLICATION_FAILED",
    "ALLOCATION_EXPIRED",
    "NODE_FAILED",
    "PREEMPTED",
    "TRANSPORT_LOST",
    "CANCELLED",
  ],
} as const;
