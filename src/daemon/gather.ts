import { FETCH_BYTES, FetchReader, fetchText, type Piece } from "../bridge/declared/fetch.ts";
import { NOT_WHOLE, readManifest, unmatched } from "../bridge/declared/manifest.ts";
import { gathering } from "../bridge/journal/transitions.ts";
import type { EvaluationResult, LeftOutFile, PendingResult } from "../bridge/types.ts";
import { sha256 } from "../host/copy.ts";
import { type Outcome, problem } from "./context.ts";
import type { Evaluation } from "./evaluation.ts";
import type { FilePart } from "./file-store.ts";
import { spoolName } from "./follow.ts";
import { attemptFolderName } from "./remote-run.ts";
import type { LogsEnd, SkyProblem } from "./types.ts";

/** How often a file is fetched anew whose digest was another, and a job asked again that handed out nothing. */
const MOST_TRIES = 3;
/** What may pass: the files are left where they are, and a later call goes on. */
const PASSING: readonly SkyProblem["kind"][] = ["transport", "timeout", "certificate"];

/**
 * The program's end is certain. Its declared files are taken out of the log; while some are still on the cluster, the
 * result is kept as pending, so that nothing runs a second time for their sake.
 */
export async function conclude(
  evaluation: Evaluation,
  result: EvaluationResult,
  end: LogsEnd | null,
): Promise<Outcome | null> {
  const { context, request, record } = evaluation;
  const { declared } = request;
  if (declared === undefined) return await evaluation.finish(result);
  if (result.class === "CANCELLED" || record.timedOut === true) {
    const leftOut = [{ path: "*", reason: "the evaluation was ended before they were looked for" }];
    return await evaluation.finish({ ...result, declared: { files: [], leftOut, more: 0 } });
  }
  const manifest = readManifest(end?.files ?? null, declared, sha256);
  for (const { bytes } of manifest.sent) await context.files.put(record.invocationId, bytes);
  const files = manifest.sent.map(({ path, size, sha256: digest }) => ({ path, size, sha256: digest }));
  const none = unmatched(manifest, declared.globs).map((glob) => ({
    path: glob,
    reason: "the evaluation wrote no such file",
  }));
  const whole = {
    ...result,
    declared: { files, leftOut: [...manifest.leftOut, ...none], more: manifest.more },
  };
  if (manifest.stored.length === 0) return await evaluation.finish(whole);
  const folder = attemptFolderName(record.jobName, record.nonce);
  const { stored } = manifest;
  await evaluation.step((current) => gathering(current, { result: whole, folder, stored }, context.nowMs()));
  return null;
}

/** RUNNING with a pending result: fetches what is still on the cluster, then the result is one. */
export async function gather(evaluation: Evaluation, pending: PendingResult): Promise<Outcome | null> {
  const { context, record } = evaluation;
  const { limits, files: store } = context;
  const { invocationId } = record;
  evaluation.isResumed = false;
  evaluation.output.begin(context.journal.spool(invocationId, spoolName(record)));
  const left = new Map<string, LeftOutFile>();
  const leave = (path: string, reason: string) => void left.set(path, { path, reason });
  const tries = new Map<string, number>();
  const open = () => pending.stored.filter((file) => !left.has(file.path) && !store.has(invocationId, file));
  const leaveAll = (reason: string) => {
    for (const { path } of open()) leave(path, reason);
  };
  let sinceMs = context.awakeMs();
  let waitMs = limits.reconnectMs;
  let empty = 0;
  /** Gives what came whole its name; a file whose digest is another begins anew, a few times. */
  const settle = async () => {
    for (const file of open()) {
      if (store.partBytes(invocationId, file) < file.size) continue;
      if (await store.complete(invocationId, file)) continue;
      const tried = (tries.get(file.path) ?? 0) + 1;
      tries.set(file.path, tried);
      if (tried >= MOST_TRIES) leave(file.path, NOT_WHOLE);
    }
  };
  // A daemon that was killed may have had all of one.
  await settle();
  for (let wanted = open(); wanted.length > 0; wanted = open()) {
    if (evaluation.record.cancelRequested) {
      leaveAll("the evaluation was cancelled while it was fetched");
      break;
    }
    const round = await fetchRound(evaluation, pending, wanted);
    for (const path of round.gone) leave(path, "it is no longer on the cluster");
    await settle();
    if (round.bytes > 0 || round.gone.length > 0) {
      sinceMs = context.awakeMs();
      waitMs = limits.reconnectMs;
      empty = 0;
      continue;
    }
    const { failure } = round;
    if (failure === null) empty++;
    if (empty >= MOST_TRIES) leaveAll("the cluster handed nothing of it out");
    else if (failure !== null && !PASSING.includes(failure.kind) && ++empty >= MOST_TRIES)
      leaveAll(`it could not be fetched (${failure.message})`);
    else if (failure !== null && context.awakeMs() - sinceMs >= limits.reconnectPatienceMs) {
      return {
        kind: "problem",
        problem: problem(
          failure.error,
          `TRANSPORT_LOST: the program has ended, and its files could not be fetched yet (${failure.message}); the next call goes on with them`,
        ),
      };
    } else {
      await context.sleep(waitMs);
      waitMs = Math.min(waitMs * 2, limits.reconnectMostMs);
    }
  }
  const { declared } = pending.result;
  const here = pending.stored.filter((file) => !left.has(file.path));
  const named = [...(declared?.files ?? []), ...here].map(({ path, size, sha256: digest }) => ({
    path,
    size,
    sha256: digest,
  }));
  return await evaluation.finish({
    ...pending.result,
    declared: {
      files: named.sort((a, b) => (a.path < b.path ? -1 : 1)),
      leftOut: [...(declared?.leftOut ?? []), ...left.values()],
      more: declared?.more ?? 0,
    },
  });
}

interface Round {
  readonly bytes: number;
  /** Paths of files that are not there. */
  readonly gone: readonly string[];
  readonly failure: SkyProblem | null;
}

/** One job that hands pieces out, and what came of it. */
async function fetchRound(
  evaluation: Evaluation,
  { folder }: PendingResult,
  wanted: PendingResult["stored"],
): Promise<Round> {
  const { context, record } = evaluation;
  const { sky, files: store } = context;
  const none = (failure: SkyProblem | null): Round => ({ bytes: 0, gone: [], failure });
  const written = record.resources?.remoteArtifactRootWritten;
  if (written === undefined) return none(null);
  const ready = await context.allocations.ensure((text) => evaluation.say(text));
  if (!ready.ok) return none(ready.error);
  const { clusterName } = ready.value;
  const pieces: Piece[] = [];
  let room = FETCH_BYTES;
  for (const [at, file] of wanted.entries()) {
    // Of files with the same content one is enough.
    if (wanted.findIndex(({ sha256 }) => sha256 === file.sha256) !== at) continue;
    const offset = store.partBytes(record.invocationId, file);
    const length = Math.min(room, file.size - offset);
    if (length <= 0) break;
    pieces.push({ number: file.number, offset, length });
    room -= length;
  }
  const nonce = context.randomHex(16);
  const jobName = `${record.jobName}-f${nonce.slice(0, 8)}`;
  const executed = await sky.exec({
    clusterName,
    jobName,
    resources: context.campaign.resources,
    workdir: null,
    run: fetchText(written, folder, pieces, nonce),
  });
  if (!executed.ok) {
    if (executed.error.kind === "no-cluster" && (await context.allocations.look(ready.value)) === "gone")
      context.allocations.distrust();
    return none(executed.error);
  }
  const jobId = executed.value ?? (await idOf(evaluation, clusterName, jobName));
  if (jobId === null) return none(null);
  const reader = new FetchReader(nonce);
  const gone: string[] = [];
  let bytes = 0;
  let part: { readonly file: PendingResult["stored"][number]; readonly into: FilePart } | null = null;
  const endPart = async () => {
    const { into } = part ?? {};
    part = null;
    await into?.end();
  };
  const stop = new AbortController();
  const interrupted = () => stop.abort();
  evaluation.interrupt.addEventListener("abort", interrupted, { once: true });
  let end: LogsEnd;
  try {
    end = await sky.logs({
      clusterName,
      jobId,
      jobName,
      nonce,
      onOutput: async (chunk) => {
        for (const one of reader.take(chunk)) {
          if (one.kind === "data") {
            if (part === null || part.into.bytes !== one.offset) continue;
            if (one.offset + one.bytes.length > part.file.size) continue;
            part.into.append(one.bytes);
            bytes += one.bytes.length;
            continue;
          }
          await endPart();
          const file = wanted.find(({ number }) => number === one.number);
          if (file === undefined) continue;
          if (one.kind === "gone") gone.push(file.path);
          else if (store.partBytes(record.invocationId, file) === one.offset)
            part = { file, into: store.part(record.invocationId, file) };
        }
      },
      onStderr: () => {},
      signal: stop.signal,
    });
  } finally {
    evaluation.interrupt.removeEventListener("abort", interrupted);
    await endPart();
  }
  if (bytes > 0 || gone.length > 0 || end.markerExit !== null) return { bytes, gone, failure: null };
  return none({
    kind: "transport",
    error: "SkyPilotControlPlaneError",
    message: `the log of ${jobName} ended without a word (exit code ${end.exitCode})`,
  });
}

/** The job's id where sky did not say it: the queue is asked a few times. */
async function idOf({ context }: Evaluation, clusterName: string, jobName: string): Promise<number | null> {
  for (let look = 0; look < MOST_TRIES; look++) {
    const queue = await context.sky.queue(clusterName);
    const job = queue.ok ? queue.value.jobs.find(({ name }) => name === jobName) : undefined;
    if (job !== undefined) return job.id;
    await context.sleep(context.limits.queuePollMs);
  }
  return null;
}
