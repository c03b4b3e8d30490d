import { canonicalJson } from "./python-json.ts";
import type {
  AcceleratorBackend,
  Declared,
  EvaluationKind,
  EvaluationRequest,
  ResolvedResources,
} from "./types.ts";

/** SHA-256 of a text's UTF-8 bytes as 64 lower-case hex digits; given by the host, so that names stay a pure matter. */
export type Sha256Hex = (text: string) => string;

/** Longest name of a cluster: sky puts its own suffixes behind it. */
const MAX_CLUSTER_NAME = 28;

/**
 * What an allocation is made of, as one digest: two runs whose fingerprints differ never share one. The profile's
 * name and its artifact root do not count: another profile that asks for the same thing is the same thing.
 * It is the public Python bridge's digest, so a cluster that one of them made is found by the other.
 */
export function resourceFingerprint(
  resources: ResolvedResources,
  acceleratorBackend: AcceleratorBackend,
  sha256Hex: Sha256Hex,
): string {
  return sha256Hex(
    canonicalJson({
      infra: resources.infra,
      accelerator_backend: acceleratorBackend,
      accelerator_type: resources.acceleratorType,
      nodes: resources.nodes,
      accelerators_per_node: resources.acceleratorsPerNode,
      cpus_per_node: resources.cpusPerNode,
      memory_gb_per_node: resources.memoryGbPerNode,
      exclusive: resources.exclusive,
      remote_runtime_image: resources.runtimeImage,
      command_prefix: resources.commandPrefix ?? [],
      allocation_time: resources.allocationTime,
    }),
  );
}

/** The cluster of a run: seven readable characters of its id, and twelve of a digest over id and resources. */
export function clusterName(runId: string, fingerprint: string, sha256Hex: Sha256Hex): string {
  const readable = Array.from(runId.toLowerCase(), (character) =>
    /[a-z0-9-]/.test(character) ? character : "-",
  )
    .slice(0, 7)
    .join("");
  return `vibesys-${readable}-${sha256Hex(`${runId}\0${fingerprint}`).slice(0, 12)}`.slice(
    0,
    MAX_CLUSTER_NAME,
  );
}

/** The job of one attempt; the client chose the id, so only a digest of it is used as a name. */
export function jobName(invocationId: string, attempt: number, sha256Hex: Sha256Hex): string {
  return `vibesys-inv-${sha256Hex(invocationId).slice(0, 12)}-a${attempt}`;
}

/** The client's file that holds the id of a request whose result is not acknowledged yet. */
export function tokenFileName(
  kind: EvaluationKind,
  requestArguments: readonly string[],
  sha256Hex: Sha256Hex,
  declared?: Declared,
): string {
  const asked = [kind, requestArguments, ...(declared === undefined ? [] : [declaredFields(declared)])];
  return `pending-${sha256Hex(canonicalJson(asked)).slice(0, 16)}`;
}

/** A declaration as it stands on the wire and in digests. */
export function declaredFields({ globs, maxFiles, maxBytes }: Declared) {
  return { globs, max_files: maxFiles, max_bytes: maxBytes };
}

/**
 * What the same invocation id must ask again: the request without its id, the command and the setup. `command` is the
 * configured argument vector; the request's own arguments stand behind it.
 */
export function requestDigest(
  request: EvaluationRequest,
  command: readonly string[],
  setup: string | null,
  sha256Hex: Sha256Hex,
): string {
  return sha256Hex(
    canonicalJson({
      request: {
        version: 2,
        kind: request.kind,
        arguments: request.arguments,
        artifacts: request.artifacts,
        declared: request.declared === undefined ? undefined : declaredFields(request.declared),
      },
      command: [...command, ...request.arguments],
      framework_setup_command: setup ?? undefined,
    }),
  );
}
