import { type ClusterFound, readCluster, readQueue, submittedId } from "../bridge/evidence/views.ts";
import { taskDocument } from "../bridge/task-document.ts";
import { captureChild } from "../host/child-stream.ts";
import { nowMs } from "../host/clock.ts";
import {
  aboutCall,
  awaitCall,
  type CallOutcome,
  callsIn,
  forgetCall,
  isCallRunning,
  startCall,
} from "../host/outliving-call.ts";
import { join } from "../host/paths.ts";
import { randomHex } from "../host/random.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { followLogs, type StreamRedactor } from "./sky-logs.ts";
import { type CallEnded, endedOf, problemOf } from "./sky-problem.ts";
import type { Sky, SkyProblem } from "./types.ts";

/** How long the calls may take, milliseconds. Reading calls are tried again after a timeout, each time longer. */
export interface SkyTimes {
  readonly callMs: number;
  readonly readTries: number;
}

export const SKY_TIMES: SkyTimes = { callMs: 60_000, readTries: 3 };

/** Most output of a call that is kept; a queue of thousands of jobs is far below. */
const MAX_BYTES = 16_000_000;

/** What the sky command line is run with. */
export interface SkyOptions {
  /** The executable: a path, or a name in PATH. */
  readonly program: string;
  /** Folder of the submissions, which outlive the daemon as all calls that change something do. */
  readonly calls: string;
  /** Folder of the others of that kind. */
  readonly changes: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Folder that it is run in. SkyPilot takes `.sky.yaml` there for the project's configuration, down to the server it
   * speaks to and Slurm's own options, so it must never be one that a sandbox writes to.
   */
  readonly cwd?: string;
  /** Masks secrets in a text of sky's. */
  readonly redact: (text: string) => string;
  /** The same for a stream, where a secret may have several lines. */
  readonly redactor: () => StreamRedactor;
  readonly times?: SkyTimes;
}

/** The sky command line, by argument vectors. Its texts are read, and quoted in messages only through `redact`. */
export function makeSky(options: SkyOptions): Sky {
  const { program, env, redact, times = SKY_TIMES } = options;
  const place = { env, ...(options.cwd === undefined ? {} : { cwd: options.cwd }) };
  /** Calls that we have under way ourselves. */
  const own = new Set<string>();
  const call = async (words: readonly string[], timeoutMs: number): Promise<CallEnded> => {
    const ended = await captureChild([program, ...words], { ...place, timeoutMs, maxBytes: MAX_BYTES });
    return { ...ended, command: words[0]!, seconds: timeoutMs / 1000 };
  };
  /**
   * A call that changes something: once, whatever becomes of it. It outlives us; one that an earlier daemon left under
   * way on that cluster is waited for first, and where it is the same call, its outcome is the answer.
   */
  const change = async (
    name: string,
    words: readonly string[],
    until: { readonly timeoutMs: number | null; readonly giveUp?: AbortSignal },
    task?: string,
  ): Promise<Result<null, SkyProblem>> => {
    const command = words[0]!;
    const about = { cluster: name, words };
    const given = { ...until, maxBytes: MAX_BYTES, removing: ["task.yaml"] };
    const { timeoutMs } = until;
    for (const left of callsIn(options.changes)) {
      if (own.has(left)) continue;
      const folder = join(options.changes, left);
      const was = aboutCall(folder);
      if (!isCallRunning(folder)) forgetCall(folder);
      else if (was?.cluster === name) {
        const found = await awaitCall(folder, given);
        forgetCall(folder);
        if (JSON.stringify(was) === JSON.stringify(about)) return changed(command, found, timeoutMs);
      }
    }
    const call = `${command}-${randomHex(8)}`;
    own.add(call);
    const folder = join(options.changes, call);
    const files: Record<string, string> = task === undefined ? {} : { "task.yaml": task };
    const argv = [program, ...words, ...(task === undefined ? [] : [join(folder, "task.yaml")])];
    try {
      const ended = startCall(folder, argv, { ...place, about, files });
      return changed(command, await awaitCall(folder, { ...given, ended }), timeoutMs);
    } finally {
      forgetCall(folder);
      own.delete(call);
    }
  };
  /** Submissions into a cluster that are under way: what they bring would come behind the cancelling of all. */
  const submitted = async (name: string): Promise<void> => {
    for (const call of callsIn(options.calls)) {
      const folder = join(options.calls, call);
      if (aboutCall(folder)?.clusterName !== name || !isCallRunning(folder)) continue;
      await awaitCall(folder, { timeoutMs: times.callMs, maxBytes: MAX_BYTES, removing: ["task.yaml"] });
    }
  };
  const changed = (
    command: string,
    found: CallOutcome,
    timeoutMs: number | null,
  ): Result<null, SkyProblem> => {
    if (found.kind === "exited" && found.exitCode === 0) return ok(null);
    return fail(problemOf(endedOf(command, found, timeoutMs), redact));
  };
  /** A call that only reads: again after a timeout, with half as much time more. */
  const read = async (words: readonly string[]): Promise<Result<CallEnded, SkyProblem>> => {
    const waited: number[] = [];
    for (let timeoutMs = times.callMs; ; timeoutMs *= 1.5) {
      const ended = await call(words, timeoutMs);
      if (ended.exitCode === 0) return ok(ended);
      if (!ended.timedOut) return fail(problemOf(ended, redact));
      waited.push(Math.round(timeoutMs / 1000));
      if (waited.length < times.readTries) continue;
      return fail({
        kind: "timeout",
        error: "SkyPilotTimeoutError",
        message: `SkyPilot ${words[0]} timed out in ${waited.length} attempts (${waited.join(", ")} s)`,
      });
    }
  };
  const malformed = (message: string): Result<never, SkyProblem> =>
    fail({ kind: "output", error: "SkyPilotOutputError", message: `SkyPilot ${message}` });

  const outcome = async (
    folder: string,
    ended: Promise<void> | undefined,
  ): Promise<Result<number | null, SkyProblem> | null> => {
    const found = await awaitCall(folder, {
      timeoutMs: null,
      maxBytes: MAX_BYTES,
      removing: ["task.yaml"],
      ...(ended === undefined ? {} : { ended }),
    });
    switch (found.kind) {
      case "never-started":
        return null;
      default: {
        // A job that sky named is there, whatever the call's exit code says.
        const id = found.kind === "timeout" ? null : submittedId(found.stdout);
        if (id !== null || (found.kind === "exited" && found.exitCode === 0)) return ok(id);
        return fail(problemOf(endedOf("exec", found, 0), redact));
      }
    }
  };

  return {
    cluster: async (name, how): Promise<Result<ClusterFound, SkyProblem>> => {
      if (how === "plain") {
        const quick = await read(["status", "--output", "json", name]);
        if (!quick.ok) return quick;
        const view = readCluster(quick.value.stdout, name, null);
        return view.ok ? view : malformed(view.error);
      }
      const askedMs = nowMs();
      const fresh = await read(["status", "--refresh", "--output", "json", name]);
      if (!fresh.ok) return fresh;
      const view = readCluster(fresh.value.stdout, name, askedMs);
      if (!view.ok) return malformed(view.error);
      if (view.value.state !== "UP" || view.value.stale) return view;
      // Only a status that is not refreshed names the nodes, and they alone name the allocation.
      const plain = await read(["status", "--output", "json", name]);
      if (!plain.ok) return view;
      const named = readCluster(plain.value.stdout, name, null);
      if (!named.ok || named.value.state === "ABSENT") return view;
      return ok({ ...view.value, nodeNames: named.value.nodeNames ?? view.value.nodeNames });
    },
    launch: (name, resources, giveUp) =>
      change(
        name,
        ["launch", "-y", "-d", "-c", name],
        { timeoutMs: null, giveUp },
        taskDocument(resources, null),
      ),
    exec: async ({ clusterName, jobName, resources, workdir, run }) => {
      const folder = join(options.calls, jobName);
      for (const name of callsIn(options.calls)) {
        const old = join(options.calls, name);
        if (!isCallRunning(old)) forgetCall(old);
      }
      const task = taskDocument(resources, { run, name: jobName, workdir });
      const argv = [program, "exec", "-d", clusterName, join(folder, "task.yaml")];
      const ended = startCall(folder, argv, {
        ...place,
        about: { clusterName },
        files: { "task.yaml": task },
      });
      return (
        (await outcome(folder, ended)) ??
        fail({
          kind: "missing-cli",
          error: "SkyPilotCLIError",
          message: "SkyPilot exec could not be started",
        })
      );
    },
    pendingExec: async (jobName) => {
      const folder = join(options.calls, jobName);
      return aboutCall(folder) === null ? null : outcome(folder, undefined);
    },
    queue: async (name) => {
      const answer = await read(["queue", name, "--output", "json"]);
      if (!answer.ok) return answer;
      const view = readQueue(answer.value.stdout, name);
      return view.ok ? view : malformed(view.error);
    },
    logs: (wanted) => followLogs(program, place, options.redactor(), wanted),
    cancel: async (name, jobId) => {
      if (jobId === "all") await submitted(name);
      const words = ["cancel", "-y", name, jobId === "all" ? "-a" : String(jobId)];
      return await change(name, words, { timeoutMs: times.callMs });
    },
    down: (name) => change(name, ["down", "-y", name], { timeoutMs: times.callMs }),
  };
}
