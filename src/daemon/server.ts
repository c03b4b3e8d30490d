import type { JournalRecord } from "../bridge/types.ts";
import { watchCrowd } from "../host/crowd.ts";
import type { LineSocket } from "../host/line-socket.ts";
import { listenUnix } from "../host/socket.ts";
import { ok } from "../lib/result.ts";
import { Candidates } from "./candidates.ts";
import { type Desk, serveConnection } from "./connection.ts";
import { type Context, saved } from "./context.ts";
import { Client } from "./delivery.ts";
import { Evaluation } from "./evaluation.ts";
import { Evaluations } from "./evaluations.ts";
import { type DaemonStatus, serveOperator, statusOf } from "./operator.ts";
import { spoken } from "./output.ts";
import { releaseCluster } from "./release.ts";
import type { BridgeProblem } from "./types.ts";

/** How long a client that was refused may keep its end of the connection open, in ms. */
const REFUSED_MS = 1000;

/** A daemon that listens. Evaluations begin with `open`. */
export interface RunningDaemon {
  /** Makes the allocation ready and begins to work; the problem that keeps it from that, or null. */
  open(): Promise<BridgeProblem | null>;
  /** Ends everything in order, once; later calls wait for the first. */
  close(reason: string): Promise<void>;
  /** Do not wait for clients any more. */
  hurry(): void;
  readonly status: () => DaemonStatus;
}

export interface ServerOptions {
  readonly context: Context;
  readonly operatorSocket: string;
  readonly pid: number;
  readonly version: string;
  /** Clusters of an earlier daemon that was killed; they are given back with our own. */
  readonly left: readonly string[];
  /** Aborts `context.closing`. */
  readonly beginClosing: () => void;
}

/** Binds both sockets, whose places are prepared, and answers on them. Throws what the system says. */
export function startDaemon(options: ServerOptions): RunningDaemon {
  const { context } = options;
  const { campaign, limits } = context;
  const evaluations = new Evaluations();
  const candidates = new Candidates(context);
  const handlers = new Set<Promise<void>>();
  const others = new Set(options.left);
  let state: DaemonStatus["state"] = "starting";
  let closed: Promise<void> | null = null;
  let hurry: () => void = () => {};
  const hurried = new Promise<void>((done) => {
    hurry = done;
  });
  const desk: Desk = {
    context,
    evaluations,
    candidates,
    served: new Map(),
    refusal: () => (state === "closing" ? "the bridge is closing" : null),
  };
  const status = () => statusReply(options, state);

  const track = (work: Promise<void>) => {
    handlers.add(work);
    void work.finally(() => handlers.delete(work));
  };
  const onClient = (socket: LineSocket) => {
    if (handlers.size < limits.connections) return track(serveConnection(desk, socket));
    const client = new Client(socket, campaign.errorFrames, limits.requestMs);
    void client
      .refuse("RuntimeError", `${limits.connections} clients are connected already`)
      .finally(async () => {
        socket.end();
        // One that keeps its own end open would keep a descriptor of ours, and the calls of sky need some.
        await context.sleep(REFUSED_MS);
        socket.destroy();
      });
  };
  const onOperator = (socket: LineSocket) => void serveOperator({ context, evaluations, status }, socket);

  const clients = listenUnix(campaign.socketPath, onClient);
  const endWatch = watchCrowd(() => 0, context.log);
  let operators: { stop(): void };
  try {
    operators = listenUnix(options.operatorSocket, onOperator);
  } catch (error) {
    clients.stop();
    throw error;
  }

  const end = async (reason: string) => {
    state = "closing";
    context.log(`closing: ${reason}`);
    clients.stop();
    endWatch();
    options.beginClosing();
    evaluations.dismiss("the bridge is closing");
    const { running } = evaluations;
    if (running !== null && running.outcome === null) await running.stop("cancel");
    running?.wake();
    const patience = Promise.race([context.sleep(limits.closeMs), hurried]);
    await Promise.race([evaluations.idle().then(() => Promise.all([...handlers])), patience]);
    if (campaign.keep) context.log(`the allocation ${context.clusterName} is kept`);
    else {
      const released = await context.allocations.release();
      if (!released.ok) {
        context.log(
          `the allocation ${context.clusterName} could not be released: ${released.error.message}; its wall time ends it`,
        );
      }
    }
    // Those that an earlier launch with other resources had made and left behind, with or without a job.
    for (const name of campaign.keep ? [] : others) {
      const released = await releaseCluster(context.sky, name);
      if (!released.ok && released.error.kind !== "no-cluster")
        context.log(`the allocation ${name} could not be released: ${released.error.message}`);
    }
    operators.stop();
    await context.journal.close();
    state = "gone";
    context.log("closed");
  };

  return {
    status,
    hurry: () => hurry(),
    open: async () => {
      for (const record of unfinished(context)) {
        const { clusterName = context.clusterName } = record.allocation ?? {};
        if (clusterName !== context.clusterName) others.add(clusterName);
        evaluations.add(await resumed(context, record));
      }
      const ready = await context.allocations.ensure((text) => {
        context.log(text);
        for (const evaluation of evaluations.all) evaluation.output.say(spoken(text));
      });
      if (!ready.ok) return ready.error;
      if (state === "starting") state = "serving";
      evaluations.open();
      void candidates.prune();
      context.files.prune(context.journal.all());
      return null;
    },
    close: (reason) => {
      closed ??= end(reason);
      return closed;
    },
  };
}

/** Jobs that an earlier daemon left under way are followed to their end, whether their client comes back or not. */
function unfinished(context: Context): readonly JournalRecord[] {
  const phases = ["SUBMITTING", "SUBMITTED", "RUNNING"];
  return context.journal.all().filter(({ phase }) => phases.includes(phase));
}

async function resumed(context: Context, record: JournalRecord): Promise<Evaluation> {
  const { kind, invocationId, request } = record;
  context.log(`${kind} ${invocationId.slice(0, 8)}: going on from ${record.phase}`);
  const evaluation = new Evaluation(context, await saved(context, ok(record)), {
    kind,
    invocationId,
    arguments: request?.arguments ?? [],
    artifacts: request?.artifacts ?? [],
    ...(request?.declared === undefined ? {} : { declared: request.declared }),
  });
  evaluation.isResumed = true;
  return evaluation;
}

function statusReply({ context, pid, version }: ServerOptions, state: DaemonStatus["state"]): DaemonStatus {
  const { campaign, clusterName, journal } = context;
  return {
    pid,
    program: version,
    state,
    runId: campaign.runId,
    workspaceId: campaign.workspaceId,
    profile: campaign.profile.name,
    clusterName,
    socket: campaign.socketPath,
    evaluations: journal.all().map(statusOf),
  };
}
