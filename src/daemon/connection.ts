import { acknowledge } from "../bridge/journal/transitions.ts";
import type { EvaluationRequest } from "../bridge/types.ts";
import { MAX_REQUEST_BYTES } from "../bridge/wire/line.ts";
import { parseAck, parseRequest } from "../bridge/wire/request.ts";
import type { LineSocket } from "../host/line-socket.ts";
import { type Asked, ask } from "./ask.ts";
import { cancelledId } from "./cancel-request.ts";
import type { Candidates } from "./candidates.ts";
import { type Context, saved } from "./context.ts";
import { Client, deliver } from "./delivery.ts";
import type { Evaluation } from "./evaluation.ts";
import type { Evaluations } from "./evaluations.ts";
import { handFiles } from "./hand-files.ts";

/** What the connections of a daemon share. */
export interface Desk {
  readonly context: Context;
  readonly evaluations: Evaluations;
  readonly candidates: Candidates;
  /** One client at a time sees an evaluation; by invocation id. */
  readonly served: Map<string, Promise<void>>;
  /** Why no new request is taken any more; null while they are. */
  readonly refusal: () => string | null;
}

/** Answers the one request of a connection, and ends it. Never throws. */
export async function serveConnection(desk: Desk, socket: LineSocket): Promise<void> {
  const { context } = desk;
  const client = new Client(socket, context.campaign.errorFrames, context.limits.stallMs);
  try {
    await answer(desk, socket, client);
  } catch (error) {
    context.log(`handler failed: ${error instanceof Error ? (error.stack ?? error.message) : error}`);
    await client.refuse("RuntimeError", error instanceof Error ? error.message : String(error));
  } finally {
    if (client.gone === "stalled") {
      context.log("a client that took nothing was dropped; its evaluation goes on");
      socket.destroy();
    } else socket.end();
  }
}

async function answer(desk: Desk, socket: LineSocket, client: Client): Promise<void> {
  const { context } = desk;
  const line = await socket.readLine(MAX_REQUEST_BYTES, context.limits.requestMs);
  switch (line.kind) {
    case "closed":
      return;
    case "deadline":
      return await client.refuse("ValueError", `no request came within ${context.limits.requestMs / 1000} s`);
    case "too-long":
      return await client.refuse("ValueError", `the request is longer than ${MAX_REQUEST_BYTES} bytes`);
  }
  const cancelled = cancelledId(line.bytes);
  if (cancelled !== null) return await cancel(desk, client, cancelled);
  const request = parseRequest(line.bytes, context.campaign.benchmarkOutputFlag);
  if (!request.ok) return await client.refuse(request.error.error, request.error.message);
  const refusal = desk.refusal();
  if (refusal !== null) return await client.refuse("RuntimeError", refusal);
  await inTurn(desk, client, request.value.invocationId, () => evaluate(desk, socket, client, request.value));
}

/** Lets one client at a time see an evaluation: a second call with the same token gets what the first leaves. */
async function inTurn(desk: Desk, client: Client, id: string, work: () => Promise<void>): Promise<void> {
  const before = desk.served.get(id);
  if (before !== undefined)
    await client.say("Another call of this very evaluation is being answered; this one waits for it.");
  const mine = (before ?? Promise.resolve()).then(work);
  const settled = mine.catch(() => undefined);
  desk.served.set(id, settled);
  try {
    await mine;
  } finally {
    if (desk.served.get(id) === settled) desk.served.delete(id);
  }
}

async function evaluate(
  desk: Desk,
  socket: LineSocket,
  client: Client,
  request: EvaluationRequest,
): Promise<void> {
  if (socket.isClosed) return;
  const { context, evaluations, candidates } = desk;
  const asked = await ask(context, evaluations, candidates, request);
  if (!asked.ok) return await client.refuse(asked.error.error, asked.error.message);
  const { evaluation } = asked.value;
  try {
    await relay(desk, socket, client, asked.value);
  } finally {
    evaluation.clients--;
    evaluations.left(evaluation);
    evaluation.letGo();
  }
}

async function relay(
  desk: Desk,
  socket: LineSocket,
  client: Client,
  { evaluation, notices }: Asked,
): Promise<void> {
  for (const notice of notices) await client.say(notice);
  const whole = await deliver(evaluation, client);
  const { outcome } = evaluation;
  if (!whole || outcome === null) return;
  if (outcome.kind === "problem") return await client.refuse(outcome.problem.error, outcome.problem.message);
  await handResult(desk, socket, client, evaluation);
}

/** Artifact and result; what the client acknowledged is durable before it is told so. */
async function handResult(
  desk: Desk,
  socket: LineSocket,
  client: Client,
  evaluation: Evaluation,
): Promise<void> {
  const { context, candidates } = desk;
  const { result, invocationId } = evaluation.record;
  if (result === null) return;
  if (result.diagnosis !== null) await client.say(result.diagnosis);
  if (result.artifact !== null) await client.send({ type: "artifact", artifact: result.artifact });
  const { declared } = evaluation.request;
  if (declared !== undefined && !(await handFiles(context, client, result, invocationId, declared))) return;
  const { status, skyExitCode, remoteJobId } = result;
  if (!(await client.send({ type: "result", status, skyExitCode, remoteJobId }))) return;
  const line = await socket.readLine(MAX_REQUEST_BYTES, context.limits.ackMs);
  if (line.kind !== "line") return;
  const ack = parseAck(line.bytes, invocationId);
  if (!ack.ok) return await client.refuse(ack.error.error, ack.error.message);
  const record = context.journal.load(invocationId) ?? evaluation.record;
  await saved(context, acknowledge(record));
  await client.send({ type: "acked", invocationId });
  await candidates.prune();
  context.files.prune(context.journal.all());
}

async function cancel({ evaluations }: Desk, client: Client, id: string): Promise<void> {
  const evaluation = evaluations.find(id);
  if (evaluation === null)
    return await client.refuse("ValueError", `no evaluation ${id} is waiting or running`);
  await evaluations.cancel(evaluation);
  await client.send({ type: "acked", invocationId: id });
}
