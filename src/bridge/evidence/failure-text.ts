import { withoutAnsi } from "./ansi.ts";

/** What the text of a failed sky call says, most telling first. */
export type FailureKind =
  | "certificate"
  | "no-cluster"
  | "allocation-gone"
  | "node-unreachable"
  | "transport"
  | "other";

/**
 * ssh's words for a signed identity that has run out: its own complaint about the certificate, and what a login node
 * says that took the certificate for the only way in.
 */
const CERTIFICATE =
  /certificate (?:of this host )?(?:has )?expired|certificate invalid: ?(?:expired|not yet valid)|certificate is not (?:yet )?valid|expired certificate|key has expired|certificate validity/i;

const NO_CLUSTER =
  /ClusterDoesNotExist|Cluster '[^']*' does not exist|Cluster\(s\) not found|ClusterNotUpError/;

const GONE =
  /Slurm job \d+ has expired|Clusters? terminated on the cloud|Invalid job id specified|Job\/step already completing or completed/;

/** A node that does not answer: Slurm itself decides within its SlurmdTimeout whether it is dead. */
const NODE = /Communication connection failure|failed with return code 233/;

const TRANSPORT =
  /Connection (?:refused|timed out|reset|closed)|Operation timed out|No route to host|Network is unreachable|Could not resolve hostname|Temporary failure in name resolution|Host key verification failed|Permission denied \(|Broken pipe|Failed to get remote home directory|Failed to refresh status|Unable to (?:contact slurm controller|confirm allocation)|ApiServerConnectionError|Could not connect to SkyPilot API server|kex_exchange_identification|Connection to .* lost|cannot be reached|SkyPilot \w+ timed out|RequestInterruptedError|Slurm controller \(?.*not responding/i;

/**
 * Reads the text around a failed or empty answer of sky: what it names decides what is done next. An allocation's end
 * is looked for before transport, for the end of one makes rsync complain of its connection too.
 */
export function failureKind(text: string): FailureKind {
  const plain = withoutAnsi(text);
  if (CERTIFICATE.test(plain)) return "certificate";
  if (GONE.test(plain)) return "allocation-gone";
  if (NODE.test(plain)) return "node-unreachable";
  if (TRANSPORT.test(plain)) return "transport";
  if (NO_CLUSTER.test(plain)) return "no-cluster";
  return "other";
}

/** What a user reads when the certificate has run out: renewing it is the operator's own act. */
export const CERTIFICATE_MESSAGE =
  "The ssh certificate of this host has expired, so the cluster cannot be reached; jobs there run on. The operator renews it, then the same call goes on where it stopped.";
