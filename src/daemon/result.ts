import type { Verdict } from "../bridge/evidence/classify.ts";
import { MAX_ARTIFACT_BYTES } from "../bridge/markers.ts";
import type { ArtifactData, EvaluationResult, ResultClass, WireStatus } from "../bridge/types.ts";
import { decodeBase64 } from "../bridge/wire/client.ts";
import { sha256Hex as sha256 } from "../host/client-host.ts";
import type { Evaluation } from "./evaluation.ts";
import type { LogsEnd } from "./types.ts";

const SKY_EXITS: Readonly<Record<WireStatus, number>> = {
  COMPLETED: 0,
  APPLICATION_FAILED: 100,
  CANCELLED: 103,
};

/** The result of an evaluation whose end is certain. */
export function resultOf(evaluation: Evaluation, verdict: Verdict, end: LogsEnd | null): EvaluationResult {
  const { record, request, context } = evaluation;
  const { timeoutS } = context.campaign;
  const clusterName = record.allocation?.clusterName ?? context.clusterName;
  const remoteJobId = record.remoteJobId ?? 0;
  const where = `cluster ${clusterName}, job ${remoteJobId}, attempt ${record.attempt}`;
  const made = (
    status: WireStatus,
    exitCode: number | null,
    why: string | null,
    artifact: ArtifactData | null,
  ) => ({
    class: status as ResultClass,
    status,
    skyExitCode: SKY_EXITS[status],
    exitCode,
    artifact,
    diagnosis: why === null ? null : `${why} (${status}; ${where})`,
    clusterName,
    jobName: record.jobName,
    remoteJobId,
    attempt: record.attempt,
  });
  if (verdict.class === "CANCELLED") {
    if (record.timedOut !== true) return made("CANCELLED", verdict.exitCode, verdict.why, null);
    const why = `The evaluation ran into the campaign's timeout of ${timeoutS} s and was ended, exit code 124.`;
    return made("APPLICATION_FAILED", 124, why, null);
  }
  if (verdict.class !== "COMPLETED") return made("APPLICATION_FAILED", verdict.exitCode, verdict.why, null);
  const [path] = request.artifacts;
  if (path === undefined) return made("COMPLETED", verdict.exitCode, null, null);
  const artifact = artifactOf(path, end?.artifact ?? null);
  if (typeof artifact !== "string") return made("COMPLETED", verdict.exitCode, null, artifact);
  return { ...made("APPLICATION_FAILED", verdict.exitCode, artifact, null), skyExitCode: 0 };
}

/** The artifact, or the sentence that says why there is none. */
function artifactOf(path: string, text: LogsEnd["artifact"]): ArtifactData | string {
  const kept = "The program ended with exit code 0, but ";
  if (text === null) return `${kept}there is no result file ${path}.`;
  const limit = MAX_ARTIFACT_BYTES.toLocaleString("en-US");
  if (text === "too-big")
    return `${kept}its result file ${path} cannot be read or has more than ${limit} bytes.`;
  const bytes = decodeBase64(text);
  if (bytes === null) return `${kept}its result file ${path} did not arrive whole.`;
  if (bytes.length > MAX_ARTIFACT_BYTES)
    return `${kept}its result file ${path} has more than ${limit} bytes.`;
  return { path, size: bytes.length, sha256: sha256(bytes), dataBase64: text };
}
