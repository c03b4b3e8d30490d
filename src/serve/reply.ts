import type { HttpReply } from "../host/server.ts";

export const JSON_TYPE = "application/json";
export const TEXT_TYPE = "text/plain; charset=utf-8";

export function textReply(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): HttpReply {
  return { status, contentType: TEXT_TYPE, body, headers };
}

export function jsonReply(status: number, value: unknown): HttpReply {
  return { status, contentType: JSON_TYPE, body: `${JSON.stringify(value)}\n` };
}
