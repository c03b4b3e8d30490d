import { readText } from "../host/fs.ts";
import { join } from "../host/paths.ts";
import { isPrivateWay } from "../lib/private-way.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { folderOf, hfHomeFolder } from "./hf-cache.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where models are fetched from when `HF_ENDPOINT` says nothing. */
export const PUBLIC_HUB = "https://huggingface.co";

/** A hub as the environment names it. */
export interface Endpoint {
  /** Address without a slash at its end; part of every address asked. */
  readonly base: string;
  /** For messages: never with a user or password. */
  readonly host: string;
  /** `user:password` of the address, percent-decoded; null without. */
  readonly credentials: string | null;
}

/** The hub to ask: `HF_ENDPOINT`, else the public one. The error is a sentence. */
export function endpointOf(env: Environment): Result<Endpoint, string> {
  const text = (env.HF_ENDPOINT ?? "").trim() || PUBLIC_HUB;
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:") || url.host === "") {
    return fail("HF_ENDPOINT is not an address; write https:// and the hub's host, or unset it.");
  }
  let credentials: string | null = null;
  if (url.username !== "" || url.password !== "") {
    credentials = `${decoded(url.username)}:${decoded(url.password)}`;
    url.username = "";
    url.password = "";
  }
  const base = `${url.origin}${url.pathname}`.replace(/\/+$/, "");
  return ok({ base, host: url.host, credentials });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The variable that keeps us off the network; null when none does (1, ON, YES and TRUE are true, in any case). */
export function offlineBy(env: Environment): string | null {
  return ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].find((name) => isTrue(env[name])) ?? null;
}

function isTrue(value: string | undefined): boolean {
  return /^(1|on|yes|true)$/i.test((value ?? "").trim());
}

/** A token with the name of the place it was found in, which is all that messages tell of it. */
export interface Token {
  readonly value: string;
  readonly from: string;
}

const LONGEST_TOKEN = 10_000;

/**
 * The user's token: `HF_TOKEN`, its older name, the file `HF_TOKEN_PATH` or `token` in Hugging Face's folder, in
 * this order as in huggingface_hub. Null without one, and where `HF_HUB_DISABLE_IMPLICIT_TOKEN` forbids sending
 * one unasked. Text that cannot stand in a header is no token.
 */
export function tokenOf(env: Environment): Token | null {
  if (isTrue(env.HF_HUB_DISABLE_IMPLICIT_TOKEN)) return null;
  for (const from of ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]) {
    const value = tokenIn(env[from]);
    if (value !== null) return { value, from };
  }
  const home = hfHomeFolder(env);
  const path = folderOf(env.HF_TOKEN_PATH, env.HOME) ?? (home === null ? null : join(home, "token"));
  const text = path === null ? null : readText(path, LONGEST_TOKEN);
  const value = text?.ok ? tokenIn(text.value) : null;
  return value === null ? null : { value, from: "the token file" };
}

function tokenIn(text: string | undefined): string | null {
  const value = (text ?? "").trim();
  return /^[\x21-\x7e]+$/.test(value) && value.length <= LONGEST_TOKEN ? value : null;
}

/**
 * What to send as `Authorization`: the token, else the credentials of the address; nothing where others could read
 * it, which is plain HTTP to another machine or through a proxy.
 */
export function authorizationFor(endpoint: Endpoint, token: Token | null, env: Environment): string | null {
  const url = new URL(endpoint.base);
  const proxied = url.protocol === "http:" && [env.HTTP_PROXY, env.http_proxy].some((proxy) => proxy);
  if (proxied || !isPrivateWay(url)) return null;
  if (token !== null) return `Bearer ${token.value}`;
  if (endpoint.credentials === null) return null;
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(endpoint.credentials)))}`;
}
