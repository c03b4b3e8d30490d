import { sameSecret } from "../host/server.ts";
import { GateError } from "../lib/errors.ts";

/**
 * Who may ask: each line of a file is `user:password` (HTTP Basic, what SkyPilot sends for `http://user:password@...`)
 * or a token (`Authorization: Bearer`). Blank lines and lines that begin with `#` count for nothing.
 */
export interface Keys {
  readonly pairs: readonly string[];
  readonly tokens: readonly string[];
}

/** Reads the file of keys. Throws `GateError("settings-invalid")` for one without any. */
export function keysOf(text: string, path: string): Keys {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.length === 0)
    throw new GateError(
      "settings-invalid",
      `${path} holds no key`,
      "Write a line user:password, or a token.",
    );
  const short = lines.findIndex((line) => line.length < 8);
  if (short >= 0)
    throw new GateError(
      "settings-invalid",
      `key ${short + 1} of ${path} is shorter than 8 characters`,
      "Write a longer one.",
    );
  return {
    pairs: lines.filter((line) => line.includes(":")),
    tokens: lines.filter((line) => !line.includes(":")),
  };
}

/** Whether an `Authorization` header shows one of the keys. */
export function isAllowed(keys: Keys, authorization: string | null): boolean {
  const [scheme = "", value = ""] = (authorization ?? "").trim().split(/\s+/);
  const known = scheme.toLowerCase() === "basic" ? keys.pairs : keys.tokens;
  const shown = scheme.toLowerCase() === "basic" ? decoded(value) : value;
  if (!["basic", "bearer"].includes(scheme.toLowerCase()) || shown === "") return false;
  // All are compared: how long it takes tells nothing of which one was close.
  return known.map((key) => sameSecret(key, shown)).includes(true);
}

function decoded(base64: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
  } catch {
    return "";
  }
}
