import type { Listen } from "../host/server.ts";
import { GateError } from "../lib/errors.ts";

const EXAMPLE =
  "Write `--listen 127.0.0.1:8765`, `--listen [::1]:8765` or `--listen unix:/run/neurarch/gate.sock`.";

/** Reads `HOST:PORT`, `[v6]:PORT`, `:PORT` (loopback) or `unix:PATH`. Throws `GateError("usage")`. */
export function listenOf(text: string): Listen {
  if (text.startsWith("unix:")) {
    const path = text.slice("unix:".length);
    if (!path.startsWith("/"))
      throw new GateError("usage", `--listen \`${text}\` names no whole path`, EXAMPLE);
    // `sun_path` of unix(7).
    if (new TextEncoder().encode(path).length > 107)
      throw new GateError(
        "usage",
        `--listen \`${text}\` is longer than the 107 bytes a socket's path has`,
        EXAMPLE,
      );
    return { kind: "unix", path };
  }
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535)
    throw new GateError("usage", `--listen \`${text}\` is not HOST:PORT`, EXAMPLE);
  return { kind: "tcp", host: match[1] ?? (match[2] === "" ? "127.0.0.1" : match[2]!), port };
}

/** Whether only this machine reaches it. */
export function isLocal(listen: Listen): boolean {
  if (listen.kind === "unix") return true;
  return listen.host === "localhost" || listen.host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(listen.host);
}
