import { readSync } from "node:fs";
import { fail, ok, type Result } from "../lib/result.ts";

/** All of standard input, at most `maxBytes`; the error is a sentence. */
export function readStdin(maxBytes: number): Result<Uint8Array, string> {
  if (process.stdin.isTTY) return fail("standard input is a terminal; pipe the file into it");
  const chunks: Uint8Array[] = [];
  let size = 0;
  const chunk = new Uint8Array(65_536);
  for (;;) {
    let got: number;
    try {
      got = readSync(0, chunk, 0, chunk.length, null);
    } catch (error) {
      const code = (error as { code?: string }).code;
      if (code === "EAGAIN") {
        Bun.sleepSync(2);
        continue;
      }
      if (code === "EOF") break;
      return fail(`standard input cannot be read: ${code ?? String(error)}`);
    }
    if (got === 0) break;
    size += got;
    if (size > maxBytes)
      return fail(`standard input is above the limit of ${(maxBytes / 1e6).toFixed(1)} MB`);
    chunks.push(chunk.slice(0, got));
  }
  return ok(new Uint8Array(Buffer.concat(chunks)));
}
