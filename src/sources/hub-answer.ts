import type { HttpAnswer, HttpObstacle } from "../host/http.ts";
import { shown } from "../lib/shown.ts";
import type { Unsized } from "../sizing/types.ts";
import type { Endpoint, Token } from "./hub-settings.ts";

/** What was asked, for the sentence about its failure. */
export interface Asked {
  readonly id: string;
  readonly endpoint: Endpoint;
  /** The token that exists, sent or not. */
  readonly token: Token | null;
  readonly timeoutMs: number;
}

const INSTEAD = "name a path to its config.json, or put the model into the Hugging Face cache";

/** The failure of a request that got no answer. */
export function unreached(obstacle: HttpObstacle, asked: Asked): Unsized {
  const { host } = asked.endpoint;
  const seconds = (asked.timeoutMs / 1000).toFixed(1);
  const otherwise = `or ${INSTEAD}`;
  const words: Record<HttpObstacle, string> = {
    timeout: `${host} did not answer within ${seconds} s; set HF_HUB_OFFLINE=1 where it cannot be reached, ${otherwise}.`,
    refused: `${host} refused the connection; set HF_HUB_OFFLINE=1 where it cannot be reached, ${otherwise}.`,
    "no-such-host": `${host} is not a known host here; set HF_ENDPOINT to a hub that is, or HF_HUB_OFFLINE=1 to ask none, ${otherwise}.`,
    certificate: `${host} shows a certificate that is not trusted here; add its authority to the system's, ${otherwise}.`,
    connection: `the connection to ${host} broke; try again later, ${otherwise}.`,
    "too-large": `${host} answered with more than a config.json holds; ${INSTEAD}.`,
    redirects: `${host} sent us from one address to the next; check HF_ENDPOINT, ${otherwise}.`,
    "unsafe-redirect": `${host} redirects to an address that is not safe to follow; check HF_ENDPOINT, ${otherwise}.`,
  };
  return unreachable(asked, words[obstacle]);
}

/** The failure that a status other than 200 stands for; `missing` says what a 404 found missing. */
export function refusedBy(answer: Extract<HttpAnswer, { kind: "answer" }>, asked: Asked): Unsized {
  const { status, headers, authorized } = answer;
  const { endpoint, token } = asked;
  const { host } = endpoint;
  const name = shown(asked.id, 200);
  const gated = headers["x-error-code"] === "GatedRepo";
  switch (status) {
    case 401:
      if (authorized && token !== null && !gated)
        return unreachable(
          asked,
          `${host} does not accept the token of ${token.from}; renew it, or unset it for a public model.`,
        );
      if (gated)
        return unreachable(
          asked,
          `it is gated: accept its terms on ${host} and set HF_TOKEN, or ${INSTEAD}.`,
        );
      return notFound(
        asked,
        token === null
          ? `${host} does not tell whether it is missing, private or gated; check the name, set HF_TOKEN if it is yours or gated, or ${INSTEAD}.`
          : `${host} wants a token, and none is sent over plain HTTP; set HF_ENDPOINT to an https address, or ${INSTEAD}.`,
      );
    case 403:
      return unreachable(
        asked,
        `${host} does not let ${authorized && token !== null ? `the token of ${token.from}` : "us"} read it; accept its terms there, or use a token with the right to read it.`,
      );
    case 404:
      return notFound(asked, notThere(headers["x-error-code"], name, host));
    case 407:
      return unreachable(
        asked,
        `the proxy on the way to ${host} wants a password; set it in HTTPS_PROXY, or ${INSTEAD}.`,
      );
    case 429:
      return unreachable(
        asked,
        `${host} has had too many requests from here (429); set HF_TOKEN for a higher limit, or ${INSTEAD}.`,
      );
    default:
      return status >= 500
        ? unreachable(asked, `${host} is out of order (${status}); try again later, or ${INSTEAD}.`)
        : notFound(asked, `${host} answered ${status}; check HF_ENDPOINT, or ${INSTEAD}.`);
  }
}

function notThere(code: string | undefined, name: string, host: string): string {
  if (code === "RepoNotFound")
    return `${host} has no ${name}, or not for the token in use; check the name, or ${INSTEAD}.`;
  if (code === "RevisionNotFound") return `${name} has no revision main on ${host}; ${INSTEAD}.`;
  if (code === "EntryNotFound")
    return `${name} has no config.json on ${host} (a GGUF or a bare weights repository?); name the model it was made from, or ${INSTEAD}.`;
  return `${host} has no config.json of ${name}; check the name, or ${INSTEAD}.`;
}

/** A 200 that holds no config. */
export function notConfig(asked: Asked): Unsized {
  return unreachable(
    asked,
    `${asked.endpoint.host} answered with something that is not JSON (a sign-in page?); check HF_ENDPOINT and the proxy, or ${INSTEAD}.`,
  );
}

function notFound(asked: Asked, why: string): Unsized {
  return { reason: "model-not-found", message: `No config was found for ${shown(asked.id, 200)}: ${why}` };
}

function unreachable(asked: Asked, why: string): Unsized {
  return {
    reason: "model-unreachable",
    message: `The config of ${shown(asked.id, 200)} could not be fetched: ${why}`,
  };
}
