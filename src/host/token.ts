import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** What a file of keys came to. */
export type TokenReading =
  | { readonly ok: true; readonly token: string }
  | { readonly ok: false; readonly why: string };

/** Longest key. */
const MAX_BYTES = 4096;

/**
 * The first line of a file that holds a key: a regular file of our own or root's, which others may neither read nor
 * write (0600; 0640 where a group shares it). `~/` is the home. `why` never quotes what is in it.
 */
export function readToken(path: string, home: string | undefined): TokenReading {
  if (path.startsWith("~/") && !home?.startsWith("/")) return { ok: false, why: `${path}: there is no home` };
  const whole = path.startsWith("~/") ? `${home}${path.slice(1)}` : path;
  let descriptor: number | null = null;
  try {
    descriptor = openSync(whole, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { ok: false, why: `${whole} is not a regular file` };
    if (stat.uid !== (process.getuid?.() ?? 0) && stat.uid !== 0)
      return { ok: false, why: `${whole} belongs to someone else` };
    if ((stat.mode & 0o027) !== 0)
      return { ok: false, why: `${whole} is open to others (chmod 0600 ${whole})` };
    const bytes = new Uint8Array(MAX_BYTES);
    const text = new TextDecoder().decode(bytes.subarray(0, readSync(descriptor, bytes, 0, MAX_BYTES, 0)));
    const token = text.split("\n")[0]!.trim();
    return /^[\x21-\x7e]{8,1024}$/.test(token)
      ? { ok: true, token }
      : { ok: false, why: `${whole} does not begin with a key of 8 characters or more` };
  } catch (error) {
    return { ok: false, why: `${whole} cannot be read: ${(error as { code?: string }).code ?? "error"}` };
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}
