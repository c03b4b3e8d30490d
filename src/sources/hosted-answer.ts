import type { HttpAnswer, HttpObstacle } from "../host/http.ts";
import { GB } from "../lib/units.ts";

/** What a plan says of a job, in bytes. */
export interface Plan {
  readonly fixedBytes: number;
  readonly perSampleBytes: number;
  readonly seqLen: number | null;
  readonly params: number | null;
}

/** The batch that a plan is of where it does not say. */
const USUAL_BATCH = 32;
/** The peak of a reply as a line in the batch; null where it holds none. */
export function planIn(text: string): Plan | null {
  let reply: unknown;
  try {
    reply = JSON.parse(text);
  } catch {
    return null;
  }
  const plan = part(part(reply)?.plan);
  const cost = part(plan?.cost);
  const peak = amount(cost?.peakGb);
  if (cost === null || peak === null) return null;
  const activations =
    cost.activationGb === undefined || cost.activationGb === null ? 0 : amount(cost.activationGb);
  if (activations === null || activations > peak) return null;
  const assumptions = Array.isArray(cost.assumptions) ? cost.assumptions.join("; ") : cost.assumptions;
  const said =
    typeof assumptions === "string" ? /\bat batch (\d{1,9})\b/.exec(assumptions.slice(0, 10_000)) : null;
  const batch = Math.max(1, said === null ? USUAL_BATCH : Number(said[1]));
  return {
    fixedBytes: Math.round((peak - activations) * GB),
    perSampleBytes: (activations * GB) / batch,
    seqLen: whole(cost.seqLen),
    params: whole(part(plan?.model)?.params),
  };
}

function part(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
}

function amount(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 && value < 1e9 ? value : null;
}

function whole(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
}

/** Why no answer came, as a sentence. */
export function unreached(obstacle: HttpObstacle, host: string, timeoutMs: number): string {
  const words: Record<HttpObstacle, string> = {
    timeout: `did not answer within ${(timeoutMs / 1000).toFixed(1)} s; raise --timeout, or set sizing to builtin.`,
    refused: "refused the connection; check plan_url, or set sizing to builtin.",
    "no-such-host": "is not a known host here; check plan_url, or set sizing to builtin.",
    certificate: "shows a certificate that is not trusted here; add its authority to the system's.",
    connection: "broke the connection; try again later, or set sizing to builtin.",
    "too-large": "answered with more than a plan holds; check plan_url.",
    redirects: "sent us from one address to the next; check plan_url.",
    "unsafe-redirect":
      "redirects to another address, where neither a graph nor a key is sent; write that address as plan_url.",
  };
  return `The hosted plan could not be asked: ${host} ${words[obstacle]}`;
}

/** What a status other than 200 stands for, as a sentence. */
export function refusedBy(
  { status, authorized }: Extract<HttpAnswer, { kind: "answer" }>,
  host: string,
): string {
  if (status === 401 || status === 403)
    return `The hosted plan at ${host} ${authorized ? "does not accept the key of NEURARCH_API_KEY; renew it, or unset it to ask without one" : "wants a key; set NEURARCH_API_KEY"} (${status}).`;
  if (status === 429)
    return `The hosted plan at ${host} has had too many requests from here (429); ${authorized ? "try again later" : "set NEURARCH_API_KEY for a higher limit"}.`;
  if (status === 404) return `There is no hosted plan at this address of ${host} (404); check plan_url.`;
  if (status === 413)
    return `The graph is too large for the hosted plan at ${host} (413); trace it with --depth.`;
  if (status >= 500) return `The hosted plan at ${host} is out of order (${status}); try again later.`;
  return `The hosted plan at ${host} does not take this graph (${status}); trace it again with a newer neurarch-trace.`;
}
