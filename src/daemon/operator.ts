import type { JournalRecord } from "../bridge/types.ts";
import type { LineSocket } from "../host/line-socket.ts";
import type { Context } from "./context.ts";
import type { Evaluations } from "./evaluations.ts";
import type { EvaluationStatus } from "./types.ts";

/** What the operator's commands ask on their own socket, one JSON line each way. */
export type OperatorRequest =
  | { readonly version: 1; readonly op: "status" }
  | { readonly version: 1; readonly op: "cancel"; readonly id: string | null }
  | { readonly version: 1; readonly op: "release" };

export type OperatorReply =
  | { readonly ok: true; readonly text: string; readonly status: DaemonStatus | null }
  | { readonly ok: false; readonly message: string };

/** `bridge status --json`, but for the envelope. */
export interface DaemonStatus {
  readonly pid: number;
  readonly program: string;
  readonly state: "starting" | "serving" | "closing" | "gone";
  readonly runId: string;
  readonly workspaceId: string;
  readonly profile: string;
  readonly clusterName: string;
  readonly socket: string;
  readonly evaluations: readonly EvaluationStatus[];
}

/** What the operator's socket works on. */
export interface Operated {
  readonly context: Context;
  readonly evaluations: Evaluations;
  readonly status: () => DaemonStatus;
}

const MAX_LINE_BYTES = 4096;

export async function serveOperator(operated: Operated, socket: LineSocket): Promise<void> {
  const { context } = operated;
  try {
    const line = await socket.readLine(MAX_LINE_BYTES, context.limits.requestMs);
    if (line.kind === "closed") return;
    const request = line.kind === "line" ? readOperatorRequest(new TextDecoder().decode(line.bytes)) : null;
    const reply: OperatorReply =
      request === null ? { ok: false, message: "no such request" } : await answer(operated, request);
    const bytes = new TextEncoder().encode(`${JSON.stringify(reply)}\n`);
    await socket.send(bytes, context.limits.stallMs);
  } catch (error) {
    context.log(`operator request failed: ${error instanceof Error ? error.message : error}`);
  } finally {
    socket.end();
  }
}

function readOperatorRequest(text: string): OperatorRequest | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { version, op, id = null, ...rest } = value as Record<string, unknown>;
  if (version !== 1 || Object.keys(rest).length > 0) return null;
  if ((op === "status" || op === "release") && id === null) return { version, op };
  if (op === "cancel" && (id === null || typeof id === "string")) return { version, op, id };
  return null;
}

async function answer(operated: Operated, request: OperatorRequest): Promise<OperatorReply> {
  const { context, evaluations } = operated;
  switch (request.op) {
    case "status":
      return { ok: true, text: "", status: operated.status() };
    case "cancel": {
      const { id } = request;
      const meant =
        id === null
          ? evaluations.running === null
            ? []
            : [evaluations.running]
          : evaluations.all.filter(({ record }) => record.invocationId.startsWith(id));
      if (meant.length === 0)
        return {
          ok: false,
          message:
            id === null ? "nothing is running" : `nothing that begins with ${id} is waiting or running`,
        };
      if (meant.length > 1) return { ok: false, message: `more than one evaluation begins with ${id}` };
      const [evaluation] = meant;
      context.log(`the operator cancels ${evaluation!.record.invocationId}`);
      await evaluations.cancel(evaluation!);
      return {
        ok: true,
        text: `Evaluation ${evaluation!.record.invocationId} is cancelled; the allocation stays.`,
        status: null,
      };
    }
    case "release": {
      if (evaluations.running !== null) {
        return {
          ok: false,
          message: `evaluation ${evaluations.running.record.invocationId.slice(0, 8)} is running; cancel it first`,
        };
      }
      context.log("the operator releases the allocation");
      const released = await context.allocations.release();
      if (!released.ok) return { ok: false, message: released.error.message };
      return {
        ok: true,
        text: `The allocation ${context.clusterName} is released; the next evaluation makes a new one.`,
        status: null,
      };
    }
  }
}

/** One evaluation as the operator sees it. */
export function statusOf(record: JournalRecord): EvaluationStatus {
  return {
    invocationId: record.invocationId,
    kind: record.kind,
    phase: record.phase,
    class: record.result?.class ?? record.failures.at(-1)?.class ?? null,
    exitCode: record.result?.exitCode ?? null,
    clusterName: record.result?.clusterName ?? record.allocation?.clusterName ?? null,
    jobId: record.result?.remoteJobId ?? record.remoteJobId,
    attempt: record.attempt,
  };
}
