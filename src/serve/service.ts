import { monotonicMs, nowMs } from "../host/clock.ts";
import { type HttpReply, type HttpRequest, residentBytes } from "../host/server.ts";
import { isAllowed, type Keys } from "./auth.ts";
import { type LedgerCollector, MAX_LEDGER_BYTES } from "./collect.ts";
import { answerJudge } from "./judge.ts";
import type { Metrics } from "./metrics.ts";
import { answerPolicy, type Judge, type Judged } from "./policy.ts";
import { textReply } from "./reply.ts";

/** What a running server answers with. */
export interface Service extends Judge {
  readonly metrics: Metrics;
  /** Takes the verdicts of other hosts; null where there is no folder for them. */
  readonly collector?: LedgerCollector | null;
  /** Null = everyone who reaches the address may ask. */
  readonly keys: Keys | null;
  /** A line of the access log, without its line end; null = none is kept. */
  readonly log: ((line: string) => void) | null;
}

/**
 * Answers one request and leaves its trace in metrics and log. Routes: `GET /healthz`, `GET /metrics`,
 * `POST /v1/judge`, `POST /v1/ledger`, and SkyPilot's admin policy at every other path that is posted to, as its URL is the site's choice.
 * Never throws.
 */
export async function answerRequest(request: HttpRequest, service: Service): Promise<HttpReply> {
  const startMs = monotonicMs();
  const route = routeOf(request);
  const { reply, decision, messages, request: name } = await routed(route, request, service);
  service.recorder?.flushSoon();
  const seconds = (monotonicMs() - startMs) / 1000;
  service.metrics.answered(route, reply.status, seconds);
  if (decision !== null) service.metrics.judged(route === "judge" ? "api" : "skypilot", decision);
  if (service.log !== null && route !== "healthz" && route !== "metrics") {
    service.log(
      JSON.stringify({
        time: new Date(nowMs()).toISOString(),
        route,
        status: reply.status,
        ms: Math.round(seconds * 1e4) / 10,
        ...(name === null ? {} : { request: name }),
        ...(decision === null ? {} : { decision }),
        // Verdicts that REST cannot tell its user: they are read here.
        ...(messages.length === 0 ? {} : { messages }),
      }),
    );
  }
  return reply;
}

type Route = "healthz" | "metrics" | "judge" | "ledger" | "policy" | "none";

function routeOf({ method, path }: HttpRequest): Route {
  if (method === "GET" || method === "HEAD")
    return path === "/healthz" ? "healthz" : path === "/metrics" ? "metrics" : "none";
  if (method !== "POST") return "none";
  if (path === "/v1/judge") return "judge";
  if (path === "/v1/ledger") return "ledger";
  return path.startsWith("/v1/") ? "none" : "policy";
}

async function routed(route: Route, request: HttpRequest, service: Service): Promise<Judged> {
  const plain = (reply: HttpReply): Judged => ({ reply, decision: null, messages: [], request: null });
  if (route === "healthz") return plain(textReply(200, "ok\n"));
  if (service.keys !== null && !isAllowed(service.keys, request.header("authorization"))) {
    return plain(
      textReply(401, "Neurarch: this server asks for a key.\n", {
        "www-authenticate": 'Basic realm="neurarch-gate"',
      }),
    );
  }
  if (route === "metrics")
    return plain({
      status: 200,
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      body: service.metrics.text(residentBytes()),
    });
  if (route === "none") return plain(textReply(404, "Neurarch: nothing is served here.\n"));
  if (route === "ledger" && service.collector == null)
    return plain(textReply(404, "Neurarch: this server keeps no ledger of its own (--ledger FOLDER).\n"));
  if (route === "ledger" && !(Number(request.header("content-length") ?? 0) <= MAX_LEDGER_BYTES))
    return plain(textReply(413, "Neurarch: at most 1 MB of verdicts at once.\n"));
  let body: string;
  try {
    body = await request.body();
  } catch {
    return plain(textReply(400, "Neurarch: the body did not arrive.\n"));
  }
  if (route === "ledger" && service.collector != null)
    return plain(
      body.length > MAX_LEDGER_BYTES
        ? textReply(413, "Neurarch: at most 1 MB of verdicts at once.\n")
        : service.collector.take(body),
    );
  const answer = route === "judge" ? answerJudge : answerPolicy;
  return answer(body, service);
}
