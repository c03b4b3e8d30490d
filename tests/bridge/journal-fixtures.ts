import { createHash } from "node:crypto";
import { prepare, running, type Step, submitted, submitting } from "../../src/bridge/journal/transitions.ts";
import type { EvaluationResult, JournalRecord, ResolvedResources } from "../../src/bridge/types.ts";

export const hex = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

export const RESOURCES: ResolvedResources = {
  profileName: "lab",
  infra: "slurm/c1/gpu",
  acceleratorType: "MI300A",
  nodes: 1,
  acceleratorsPerNode: 4,
  cpusPerNode: 192,
  memoryGbPerNode: null,
  exclusive: true,
  runtimeImage: null,
  commandPrefix: ["srun", "--overlap"],
  allocationTime: "08:00:00",
  remoteArtifactRoot: null,
};
export const ALLOCATION = { clusterName: "vibesys-run-1", nodeNames: "job7-n1" };

export const id = (n: number) => n.toString(16).padStart(32, "0");

/** A step that is allowed. */
export function done(step: Step): JournalRecord {
  if (!step.ok) throw new Error(step.error);
  return step.value;
}

export function prepared(n = 1): JournalRecord {
  return prepare({
    invocationId: id(n),
    kind: "accuracy",
    requestSha256: "1".repeat(64),
    snapshotSha256: "2".repeat(64),
    nonce: "abc",
    jobName: `vibesys-inv-${n}-a1`,
    createdMs: 1_000 + n,
  });
}
export const atSubmitting = (n = 1) => done(submitting(prepared(n), ALLOCATION, RESOURCES, 2_000));
export const atSubmitted = (n = 1) => done(submitted(atSubmitting(n), 4, ALLOCATION.clusterName));
export const atRunning = (n = 1) => done(running(atSubmitted(n), 3_000));

export function result(over: Partial<EvaluationResult> = {}): EvaluationResult {
  return {
    class: "COMPLETED",
    status: "COMPLETED",
    skyExitCode: 0,
    exitCode: 0,
    artifact: null,
    diagnosis: null,
    clusterName: ALLOCATION.clusterName,
    jobName: "vibesys-inv-1-a1",
    remoteJobId: 4,
    attempt: 1,
    ...over,
  };
}

export function artifact(text = "{}") {
  const bytes = Buffer.from(text);
  return {
    path: "/tmp/vibesys-framework-benchmark-x.json",
    size: bytes.length,
    sha256: hex(bytes),
    dataBase64: bytes.toString("base64"),
  };
}
