import { isPrivateWay } from "../lib/private-way.ts";

/** One GET of a small text, or a POST that is answered by one. */
export interface HttpGet {
  readonly url: string;
  /** Value of the `Authorization` header; null = none. */
  readonly authorization: string | null;
  readonly userAgent: string;
  /** Milliseconds for everything: name, connection, redirects and body. */
  readonly timeoutMs: number;
  /** Largest body that is read, after decompression. */
  readonly maxBytes: number;
  readonly maxRedirects: number;
  /** Headers to report; of several answers on the way the first that has one counts. */
  readonly reported: readonly string[];
  /** A JSON document to send, and to no other origin than that of `url`; absent = nothing is sent. */
  readonly posted?: string;
  /** Path of a socket that stands in for the host of `url`; absent = none. */
  readonly unix?: string;
}

/** Why there is no answer. */
export type HttpObstacle =
  | "timeout"
  | "refused"
  | "no-such-host"
  | "certificate"
  | "connection"
  | "too-large"
  | "redirects"
  | "unsafe-redirect";

export type HttpAnswer =
  | {
      readonly kind: "answer";
      readonly status: number;
      /** The body of a 200; empty otherwise. */
      readonly text: string;
      readonly headers: Readonly<Record<string, string>>;
      /** Whether the authorization was sent to the server that answered last. */
      readonly authorized: boolean;
    }
  | { readonly kind: "obstacle"; readonly obstacle: HttpObstacle };

/**
 * Gets a text over HTTP within a deadline. Redirects are followed by hand: the authorization goes to the origin of
 * `url` alone (scheme, host and port), never to a host that a redirect names and never again after one, and never in
 * the clear to a machine that is not this one. HTTPS is never left for HTTP. Never throws, and tells nothing of an
 * error but its class: texts of errors can quote headers.
 */
export async function httpGet(get: HttpGet): Promise<HttpAnswer> {
  const abort = new AbortController();
  const expired = Promise.withResolvers<HttpAnswer>();
  const timer = setTimeout(() => {
    expired.resolve({ kind: "obstacle", obstacle: "timeout" });
    abort.abort();
  }, get.timeoutMs);
  try {
    return await Promise.race([expired.promise, follow(get, abort.signal)]);
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

async function follow(get: HttpGet, signal: AbortSignal): Promise<HttpAnswer> {
  const headers: Record<string, string> = {};
  let url = new URL(get.url);
  let authorization = isPrivateWay(url) ? get.authorization : null;
  for (let hop = 0; hop <= get.maxRedirects; hop++) {
    let response: Response;
    try {
      response = await fetch(url.href, {
        redirect: "manual",
        ...(get.posted === undefined ? {} : { method: "POST", body: get.posted }),
        ...(get.unix === undefined ? {} : { unix: get.unix }),
        signal,
        // BUN_CONFIG_VERBOSE_FETCH would print the request with its authorization.
        verbose: false,
        headers: {
          accept: "application/json",
          "user-agent": get.userAgent,
          ...(get.posted === undefined ? {} : { "content-type": "application/json" }),
          ...(authorization === null ? {} : { authorization }),
        },
      });
    } catch (error) {
      return { kind: "obstacle", obstacle: signal.aborted ? "timeout" : obstacleOf(error) };
    }
    for (const name of get.reported) {
      const value = response.headers.get(name);
      if (value !== null && headers[name] === undefined) headers[name] = value;
    }
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || location === null) {
      return answerOf(response, get, headers, authorization !== null, signal);
    }
    response.body?.cancel().catch(() => undefined);
    const next = URL.canParse(location, url.href) ? new URL(location, url.href) : null;
    // A 301 to 303 turns a POST into a GET.
    const strays = get.posted !== undefined && (next?.origin !== url.origin || response.status < 307);
    if (next === null || strays || !isSafeStep(url, next))
      return { kind: "obstacle", obstacle: "unsafe-redirect" };
    if (next.origin !== url.origin) authorization = null;
    url = next;
  }
  return { kind: "obstacle", obstacle: "redirects" };
}

async function answerOf(
  response: Response,
  get: HttpGet,
  headers: Readonly<Record<string, string>>,
  authorized: boolean,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const answer = { kind: "answer", status: response.status, headers, authorized } as const;
  if (response.status !== 200) {
    response.body?.cancel().catch(() => undefined);
    return { ...answer, text: "" };
  }
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > get.maxBytes) return { kind: "obstacle", obstacle: "too-large" };
      text += decoder.decode(chunk, { stream: true });
    }
  } catch {
    return { kind: "obstacle", obstacle: signal.aborted ? "timeout" : "connection" };
  }
  return { ...answer, text: text + decoder.decode() };
}

/** HTTP and HTTPS only, and never from the protected to the open one. */
function isSafeStep(from: URL, to: URL): boolean {
  return to.protocol === "https:" || (to.protocol === "http:" && from.protocol === "http:");
}

function obstacleOf(error: unknown): HttpObstacle {
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  if (/REFUSED/i.test(code)) return "refused";
  if (/ENOTFOUND|EAI_|DNS/i.test(code)) return "no-such-host";
  if (/CERT|SIGNATURE|SELF_SIGNED|ISSUER|TLS|SSL|HOSTNAME_MISMATCH/i.test(code)) return "certificate";
  return "connection";
}
