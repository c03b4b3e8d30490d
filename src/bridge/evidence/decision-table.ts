import type { ResultClass } from "../types.ts";
import type { Evidence, Verdict } from "./classify.ts";
import { CERTIFICATE_MESSAGE, failureKind } from "./failure-text.ts";

/** An allocation that ends so shortly before its wall time is over ended by it: Slurm looks every so often. */
const EDGE_MS = 90_000;

const ACTIVE: readonly (string | null)[] = ["INIT", "PENDING", "SETTING_UP", "RUNNING"];
const TERMINAL: readonly (string | null)[] = [
  "SUCCEEDED",
  "FAILED",
  "FAILED_SETUP",
  "FAILED_DRIVER",
  "CANCELLED",
];

export interface Row {
  readonly name: string;
  readonly when: (e: Evidence) => boolean;
  readonly verdict: (e: Evidence) => Omit<Verdict, "row">;
}

function settled(of: ResultClass, exitCode: number | null, why: string): Omit<Verdict, "row"> {
  return { class: of, exitCode, next: "finish", replace: false, why };
}

function again(of: ResultClass, why: string): Omit<Verdict, "row"> {
  return { class: of, exitCode: null, next: "retry", replace: true, why };
}

function undecided(
  next: "follow" | "look",
  why: string,
  of: ResultClass | null = null,
): Omit<Verdict, "row"> {
  return { class: of, exitCode: null, next, replace: false, why };
}

const has = (e: Evidence, words: string) => e.logs?.causes.some((line) => line.includes(words)) === true;
/** The job's status, from the queue that was asked last, or else from the log's own last line. */
const status = (e: Evidence): string | null => e.look?.jobState ?? e.logs?.finished ?? null;
const marked = (e: Evidence) => e.logs?.markerExit ?? null;
/** What the log's own texts say of reach; sky's stderr is among its causes. */
const logSaid = (e: Evidence) => (e.logs === null ? "other" : failureKind(e.logs.causes.join("\n")));
const cancelled = (e: Evidence) =>
  status(e) === "CANCELLED" || e.logs?.finished === "CANCELLED" || e.logs?.exitCode === 103;
/** The cluster answers and is, as far as anyone says, the allocation that the job was given to. */
const alive = (e: Evidence) =>
  !e.relaunched &&
  e.look !== null &&
  !e.look.stale &&
  e.look.allocation !== "other" &&
  (e.look.cluster === "UP" || (e.look.cluster === null && e.look.jobState !== null)) &&
  (e.look.said === null || e.look.said === "other");
/** The log was read to its end, so that reading it again would tell nothing new. */
const readWhole = (e: Evidence) =>
  e.logs !== null && (e.logs.finished !== null || [0, 100, 103].includes(e.logs.exitCode ?? -1));

/** Why an allocation ended, when the stream did not say. */
function ended(e: Evidence): Omit<Verdict, "row"> {
  const known: Record<string, ResultClass> = {
    TIMEOUT: "ALLOCATION_EXPIRED",
    PREEMPTED: "PREEMPTED",
    NODE_FAIL: "NODE_FAILED",
  };
  const said = known[(e.accounting ?? "").split(" ")[0] ?? ""];
  if (said !== undefined) return again(said, `Slurm says of the allocation: ${e.accounting}.`);
  return e.endsMs !== null && e.nowMs >= e.endsMs - EDGE_MS
    ? again("ALLOCATION_EXPIRED", "The allocation's wall time is over.")
    : again("ALLOCATION_EXPIRED", "The allocation ended and nobody says why.");
}

/** The table, in order: the first row that fits decides. */
export const ROWS: readonly Row[] = [
  {
    // Slurm ends the steps inside first: what they leave behind is the signal's code, and the shell may still print it.
    name: "marker of a signal, cause in the stream",
    when: (e) => (marked(e) ?? 0) > 128 && /DUE TO |Node failure on/.test(e.logs?.causes.join("\n") ?? ""),
    verdict: (e) =>
      has(e, "PREEMPTION")
        ? again("PREEMPTED", "The allocation was preempted while the program ran.")
        : has(e, "TIME LIMIT")
          ? again("ALLOCATION_EXPIRED", "The allocation reached its time limit while the program ran.")
          : again("NODE_FAILED", "The node failed while the program ran."),
  },
  {
    name: "marker, exit 0",
    when: (e) => marked(e) === 0,
    verdict: () => settled("COMPLETED", 0, "The program ended with exit code 0."),
  },
  {
    name: "marker, another exit, cancelled by us",
    when: (e) => marked(e) !== null && e.cancelRequested && cancelled(e),
    verdict: (e) => settled("CANCELLED", marked(e), "The evaluation was cancelled on request."),
  },
  {
    name: "marker, another exit",
    when: (e) => marked(e) !== null,
    verdict: (e) =>
      settled("APPLICATION_FAILED", marked(e), `The program ended with exit code ${marked(e)}.`),
  },
  {
    name: "cancelled by us",
    when: (e) =>
      e.cancelRequested && (cancelled(e) || (e.logs?.stopped === true && !ACTIVE.includes(status(e)))),
    verdict: () => settled("CANCELLED", null, "The evaluation was cancelled on request."),
  },
  {
    name: "succeeded without a marker",
    when: (e) =>
      !e.relaunched &&
      e.look?.allocation !== "other" &&
      (e.logs?.finished === "SUCCEEDED" || (alive(e) && status(e) === "SUCCEEDED" && readWhole(e))),
    verdict: () => settled("COMPLETED", 0, "SkyPilot says that the job succeeded."),
  },
  {
    name: "time limit",
    when: (e) => has(e, "DUE TO TIME LIMIT"),
    verdict: () => again("ALLOCATION_EXPIRED", "The allocation reached its time limit."),
  },
  {
    name: "preemption",
    when: (e) => has(e, "DUE TO PREEMPTION"),
    verdict: () => again("PREEMPTED", "The allocation was preempted."),
  },
  {
    name: "node failure",
    when: (e) => has(e, "Node failure on") || has(e, "DUE TO NODE FAILURE"),
    verdict: () => again("NODE_FAILED", "A node of the allocation failed."),
  },
  {
    name: "certificate expired",
    when: (e) => e.look?.said === "certificate" || (e.look === null && logSaid(e) === "certificate"),
    verdict: () => undecided("look", CERTIFICATE_MESSAGE, "TRANSPORT_LOST"),
  },
  {
    name: "out of reach",
    when: (e) =>
      e.look === null
        ? logSaid(e) === "transport" || e.logs?.exitCode === 255
        : e.look.said === "transport" || (e.look.stale && e.look.said !== "allocation-gone"),
    verdict: () => undecided("look", "The connection to the cluster was lost.", "TRANSPORT_LOST"),
  },
  {
    name: "node does not answer",
    when: (e) => (e.look?.said ?? logSaid(e)) === "node-unreachable",
    verdict: () =>
      undecided("look", "The node does not answer; Slurm has not given it up yet.", "TRANSPORT_LOST"),
  },
  {
    name: "another allocation",
    when: (e) => e.look !== null && (e.look.allocation === "other" || e.look.said === "allocation-gone"),
    verdict: ended,
  },
  {
    name: "cluster stopped",
    when: (e) => e.look?.cluster === "STOPPED" || e.look?.cluster === "DOWN",
    verdict: ended,
  },
  {
    name: "cluster absent",
    when: (e) => e.look !== null && e.look.absentAnswers >= 2,
    verdict: ended,
  },
  {
    name: "cluster absent once",
    when: (e) => e.look?.cluster === "ABSENT" || e.look?.said === "no-cluster",
    verdict: () => undecided("look", "SkyPilot does not know the cluster; it is asked once more."),
  },
  {
    name: "nobody asked yet",
    when: (e) => e.look === null,
    verdict: (e) => undecided("look", "The log ended without saying how the job did.", whatItSeems(e)),
  },
  {
    name: "job runs",
    when: (e) => alive(e) && ACTIVE.includes(status(e)),
    verdict: () => undecided("follow", "The job is there and not over."),
  },
  {
    name: "status known only after a relaunch",
    when: (e) => e.relaunched && (TERMINAL.includes(status(e)) || status(e) === "missing"),
    verdict: ended,
  },
  {
    name: "over, its log not read to the end",
    when: (e) => alive(e) && TERMINAL.includes(status(e)) && !readWhole(e),
    verdict: () => undecided("follow", "The job is over; its log is read to the end."),
  },
  {
    name: "driver failed",
    when: (e) => status(e) === "FAILED_DRIVER" || e.logs?.finished === "FAILED_DRIVER",
    verdict: (e) =>
      e.endsMs !== null && e.nowMs >= e.endsMs - EDGE_MS
        ? ended(e)
        : again("NODE_FAILED", "SkyPilot's driver of the job died, not the program."),
  },
  {
    name: "failed with a listed code",
    when: (e) =>
      alive(e) &&
      status(e) === "FAILED" &&
      e.logs?.finished === "FAILED" &&
      e.logs.listedExit !== null &&
      e.logs.stopped !== true,
    verdict: (e) =>
      settled(
        "APPLICATION_FAILED",
        e.logs?.listedExit ?? null,
        `The program ended with exit code ${e.logs?.listedExit}.`,
      ),
  },
  {
    // SkyPilot's driver looks for a code other than 137 in its list and finds none.
    name: "failed, driver found no code but 137",
    when: (e) => alive(e) && status(e) === "FAILED" && has(e, "StopIteration"),
    verdict: () =>
      settled("APPLICATION_FAILED", 137, "The program was killed (exit code 137), as when memory runs out."),
  },
  {
    name: "setup of the task failed",
    when: (e) =>
      alive(e) && status(e) === "FAILED_SETUP" && e.hasSetup && has(e, "setup failed with return code"),
    verdict: () => settled("APPLICATION_FAILED", null, "The task's setup failed."),
  },
  {
    name: "setup failed where there is none",
    when: (e) => status(e) === "FAILED_SETUP",
    verdict: () => again("NODE_FAILED", "The job could not be started on its node."),
  },
  {
    name: "failed without a word of the program",
    when: (e) => status(e) === "FAILED",
    verdict: ended,
  },
  {
    name: "cancelled by somebody else",
    when: cancelled,
    verdict: () => settled("CANCELLED", null, "The job was cancelled, not by this bridge."),
  },
  {
    name: "job missing from the queue",
    when: (e) => e.look?.jobState === "missing",
    verdict: () => undecided("look", "The queue does not have the job."),
  },
  {
    name: "undecided",
    when: () => true,
    verdict: () => undecided("look", "Nothing certain is known of the job."),
  },
];

/** What an exit code suggests before anyone was asked. */
function whatItSeems(e: Evidence): ResultClass | null {
  return e.logs?.exitCode === 143 || e.logs?.stopped === true ? "ALLOCATION_EXPIRED" : null;
}
