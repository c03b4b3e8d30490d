import type { Declared, EvaluationResult } from "../bridge/types.ts";
import type { Context } from "./context.ts";
import type { Client } from "./delivery.ts";

/**
 * Hands the declared files of an evaluation to its client, and says which are left out. False when the client is gone.
 * A copy that is not what it was when it came is never sent.
 */
export async function handFiles(
  { files: store, log }: Context,
  client: Client,
  result: EvaluationResult,
  invocationId: string,
  { globs }: Declared,
): Promise<boolean> {
  const { files = [], leftOut = [], more = 0 } = result.declared ?? {};
  let count = 0;
  const lost: { path: string; reason: string }[] = [];
  for (const file of files) {
    if (!(await store.isWhole(invocationId, file))) {
      log(`a declared file of ${invocationId.slice(0, 8)} is missing or damaged here`);
      lost.push({ path: file.path, reason: "its copy on the bridge's host is gone or damaged" });
      continue;
    }
    if (!(await client.send({ type: "file", file }))) return false;
    for (const piece of store.pieces(invocationId, file)) {
      const dataBase64 = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("base64");
      if (!(await client.send({ type: "file_data", dataBase64 }))) return false;
    }
    count++;
  }
  for (const { path, reason } of [...leftOut, ...lost])
    await client.say(`${path === "*" ? globs.join(", ") : path} is left out: ${reason}.`);
  if (more > 0) await client.say(`${more} further files are left out.`);
  return await client.send({ type: "files", count });
}
