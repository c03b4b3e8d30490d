import { connectUnix } from "../host/socket.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import type { OperatorReply, OperatorRequest } from "./operator.ts";

const MAX_REPLY_BYTES = 64_000_000;

/** Asks the daemon behind an operator's socket. `away` = nobody listens there; anything else is a sentence. */
export async function askOperator(
  path: string,
  request: OperatorRequest,
  timeoutMs: number,
): Promise<
  Result<Extract<OperatorReply, { ok: true }>, { readonly away: boolean; readonly message: string }>
> {
  try {
    const socket = await connectUnix(path);
    try {
      await socket.send(new TextEncoder().encode(`${JSON.stringify(request)}\n`), timeoutMs);
      const line = await socket.readLine(MAX_REPLY_BYTES, timeoutMs);
      if (line.kind !== "line")
        return fail({ away: false, message: `the daemon did not answer (${line.kind})` });
      const reply = JSON.parse(new TextDecoder().decode(line.bytes)) as OperatorReply;
      return reply.ok ? ok(reply) : fail({ away: false, message: reply.message });
    } finally {
      socket.destroy();
    }
  } catch (error) {
    const code = (error as { code?: string }).code ?? String(error);
    return fail({
      away: code === "ENOENT" || code === "ECONNREFUSED",
      message: `no daemon answers on ${path} (${code})`,
    });
  }
}
