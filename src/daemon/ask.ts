import { askedAgain, prepare } from "../bridge/journal/transitions.ts";
import { jobName, requestDigest } from "../bridge/names.ts";
import type { EvaluationRequest, JournalRecord } from "../bridge/types.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import type { Candidates } from "./candidates.ts";
import { type Context, problem, saved } from "./context.ts";
import { Evaluation } from "./evaluation.ts";
import type { Evaluations } from "./evaluations.ts";
import { spoolName } from "./follow.ts";
import type { BridgeProblem } from "./types.ts";

export interface Asked {
  readonly evaluation: Evaluation;
  /** What this client alone is told before the output. */
  readonly notices: readonly string[];
}

/**
 * The evaluation that a request is about, with this client counted among its own: a new one, one that the daemon works
 * on, or one that the journal knows. A known one goes on from where it stands; only what no job has been submitted for
 * takes the workspace as it is now.
 */
export async function ask(
  context: Context,
  evaluations: Evaluations,
  candidates: Candidates,
  request: EvaluationRequest,
): Promise<Result<Asked, BridgeProblem>> {
  const { campaign, journal, sha256 } = context;
  const requestSha256 = requestDigest(request, campaign.commands[request.kind], campaign.setup, sha256);
  const known = evaluations.find(request.invocationId)?.record ?? journal.load(request.invocationId);
  if (known !== null && !isSame(known, request)) {
    return fail(
      problem("ValueError", `invocation ${request.invocationId} was used for another request before`),
    );
  }
  if (known !== null && (known.phase === "COMPLETED" || known.phase === "ACKNOWLEDGED"))
    return seen(finished(context, known, request, requestSha256));
  const taken = await candidates.take();
  if (!taken.ok) {
    // A workspace that cannot be staged now does not keep a job's result back.
    const running = evaluations.find(request.invocationId)?.record ?? known;
    if (running === null || running.phase === "PREPARED") return taken;
    return seen({ evaluation: joined(context, evaluations, running, request), notices: [] });
  }
  const { key, snapshot } = taken.value;
  try {
    const active = evaluations.find(request.invocationId);
    const record = active?.record ?? journal.load(request.invocationId);
    if (record !== null && record.phase !== "PREPARED") {
      const evaluation = joined(context, evaluations, record, request);
      return seen({ evaluation, notices: pinned(record, snapshot.sha256, requestSha256) });
    }
    const now = { requestSha256, snapshotSha256: snapshot.sha256, snapshotKey: key };
    if (active !== null) {
      // It waits for its turn or for the allocation; nothing of it was begun.
      if (active.outcome === null && active.record.phase === "PREPARED")
        await active.step((waiting) => askedAgain(waiting, now, false));
      return seen({ evaluation: active, notices: pinned(active.record, snapshot.sha256, requestSha256) });
    }
    const prepared = record === null ? ok(blank(context, request, now)) : askedAgain(record, now, true);
    const evaluation = new Evaluation(context, await saved(context, prepared), request);
    evaluations.add(evaluation);
    return seen({ evaluation, notices: [] });
  } finally {
    candidates.release(key);
  }
}

/** Its client counts from here on, before anything else can happen: what somebody sees is not let go of. */
function seen(asked: Asked): Result<Asked, BridgeProblem> {
  asked.evaluation.clients++;
  return ok(asked);
}

/** The evaluation that is under way, taken up again where an earlier call let go of it. */
function joined(
  context: Context,
  evaluations: Evaluations,
  record: JournalRecord,
  request: EvaluationRequest,
): Evaluation {
  const active = evaluations.find(record.invocationId);
  if (active !== null) return active;
  const evaluation = new Evaluation(context, record, request);
  evaluation.isResumed = true;
  evaluations.add(evaluation);
  return evaluation;
}

/** An evaluation whose result is there: what was not handed out yet of its output, and the result. */
function finished(
  context: Context,
  record: JournalRecord,
  request: EvaluationRequest,
  requestSha256: string,
): Asked {
  const evaluation = new Evaluation(context, record, request);
  evaluation.output.begin(context.journal.spool(record.invocationId, spoolName(record)));
  evaluation.output.seal();
  const notices =
    record.requestSha256 === requestSha256
      ? []
      : ["The evaluator's command has changed since; this is the result of the command as it was."];
  return { evaluation, notices };
}

function isSame(record: JournalRecord, request: EvaluationRequest): boolean {
  const { arguments: given, artifacts, declared } = record.request ?? request;
  return (
    record.kind === request.kind &&
    JSON.stringify([given, artifacts, declared]) ===
      JSON.stringify([request.arguments, request.artifacts, request.declared])
  );
}

/** What there is to say of an evaluation that was begun before this call. */
function pinned(record: JournalRecord, sha256: string, requestSha256: string): string[] {
  const notices: string[] = [];
  if (record.snapshotSha256 !== sha256) {
    notices.push(
      "The workspace has changed since this evaluation was begun: it reports the candidate as it was then. The next call measures the workspace as it is.",
    );
  }
  if (record.requestSha256 !== requestSha256) {
    notices.push("The evaluator's command has changed since this evaluation was begun: it runs the old one.");
  }
  return notices;
}

function blank(
  context: Context,
  { kind, invocationId, arguments: given, artifacts, declared }: EvaluationRequest,
  now: Pick<JournalRecord, "requestSha256" | "snapshotSha256"> & Pick<Partial<JournalRecord>, "snapshotKey">,
): JournalRecord {
  return prepare({
    ...now,
    kind,
    invocationId,
    nonce: context.randomHex(16),
    jobName: jobName(invocationId, 1, context.sha256),
    createdMs: context.nowMs(),
    request: { arguments: given, artifacts, ...(declared === undefined ? {} : { declared }) },
  });
}
