import { describe, expect, test } from "bun:test";
import { classify, type Evidence, type LogEvidence } from "../../src/bridge/evidence/classify.ts";
import { ROWS } from "../../src/bridge/evidence/decision-table.ts";
import { CERTIFICATE_MESSAGE, failureKind } from "../../src/bridge/evidence/failure-text.ts";
import { jsonIn } from "../../src/bridge/evidence/json-output.ts";
import { type Look, lookOf } from "../../src/bridge/evidence/look.ts";
import { readCluster, readQueue, submittedId } from "../../src/bridge/evidence/views.ts";
import { logOf, readLog, transcript } from "./sky-transcripts.ts";

const NOW = 1_796_060_000_000;
const log = (of: Partial<LogEvidence> = {}): LogEvidence => ({
  exitCode: 100,
  finished: null,
  markerExit: null,
  listedExit: null,
  causes: [],
  ...of,
});
const look = (of: Partial<Look> = {}): Look => ({
  jobState: null,
  cluster: "UP",
  stale: false,
  absentAnswers: 0,
  allocation: "same",
  said: null,
  ...of,
});
const evidence = (of: Partial<Evidence>): Evidence => ({
  logs: null,
  look: null,
  cancelRequested: false,
  hasSetup: false,
  relaunched: false,
  endsMs: null,
  nowMs: NOW,
  ...of,
});
const TERM = "slurmstepd-a10g1: error: *** STEP 6.9 ON a10g1 CANCELLED AT 2026-11-30T15:10:05 ***";

/** Row, what was seen, and what follows: class, code, next step. */
const TABLE: readonly [string, Partial<Evidence>, string | null, number | null, string][] = [
  [
    "marker of a signal, cause in the stream",
    { logs: log({ markerExit: 143, causes: [`${TERM.slice(0, -4)} DUE TO TIME LIMIT ***`] }) },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "marker of a signal, cause in the stream",
    { logs: log({ markerExit: 143, causes: ["x DUE TO PREEMPTION ***"] }) },
    "PREEMPTED",
    null,
    "retry",
  ],
  [
    "marker of a signal, cause in the stream",
    { logs: log({ markerExit: 137, causes: ["srun: error: Node failure on a"] }) },
    "NODE_FAILED",
    null,
    "retry",
  ],
  ["marker, exit 0", { logs: log({ exitCode: 0, markerExit: 0 }) }, "COMPLETED", 0, "finish"],
  [
    "marker, exit 0",
    { logs: log({ exitCode: 255, markerExit: 0, causes: ["DUE TO TIME LIMIT"] }) },
    "COMPLETED",
    0,
    "finish",
  ],
  [
    "marker, another exit, cancelled by us",
    { logs: log({ exitCode: 103, markerExit: 143, finished: "CANCELLED" }), cancelRequested: true },
    "CANCELLED",
    143,
    "finish",
  ],
  ["marker, another exit", { logs: log({ markerExit: 7 }) }, "APPLICATION_FAILED", 7, "finish"],
  [
    "marker, another exit",
    { logs: log({ exitCode: 143, markerExit: 1, causes: ["DUE TO TIME LIMIT"] }) },
    "APPLICATION_FAILED",
    1,
    "finish",
  ],
  [
    "marker, another exit",
    { logs: log({ exitCode: 0, markerExit: 137 }) },
    "APPLICATION_FAILED",
    137,
    "finish",
  ],
  [
    "cancelled by us",
    { logs: log({ exitCode: 103, finished: "CANCELLED" }), cancelRequested: true },
    "CANCELLED",
    null,
    "finish",
  ],
  [
    "cancelled by us",
    { logs: log({ exitCode: 255 }), look: look({ jobState: "CANCELLED" }), cancelRequested: true },
    "CANCELLED",
    null,
    "finish",
  ],
  [
    "succeeded without a marker",
    { logs: log({ exitCode: 0, finished: "SUCCEEDED" }) },
    "COMPLETED",
    0,
    "finish",
  ],
  [
    "succeeded without a marker",
    { logs: log({ exitCode: 0 }), look: look({ jobState: "SUCCEEDED" }) },
    "COMPLETED",
    0,
    "finish",
  ],
  [
    "time limit",
    { logs: log({ exitCode: 143, causes: ["... DUE TO TIME LIMIT ***"] }) },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "preemption",
    { logs: log({ exitCode: 143, causes: ["... DUE TO PREEMPTION ***"] }) },
    "PREEMPTED",
    null,
    "retry",
  ],
  [
    "node failure",
    { logs: log({ exitCode: 0, causes: ["srun: error: Node failure on a10g1"] }) },
    "NODE_FAILED",
    null,
    "retry",
  ],
  [
    "certificate expired",
    { logs: log({ exitCode: 255 }), look: look({ cluster: null, said: "certificate" }) },
    "TRANSPORT_LOST",
    null,
    "look",
  ],
  ["out of reach", { logs: log({ exitCode: 255 }) }, "TRANSPORT_LOST", null, "look"],
  [
    "out of reach",
    { logs: log({ exitCode: 1, causes: ["ssh: connect to host h port 22: Connection refused"] }) },
    "TRANSPORT_LOST",
    null,
    "look",
  ],
  [
    "out of reach",
    { logs: log({ exitCode: 255 }), look: look({ stale: true, said: "transport" }) },
    "TRANSPORT_LOST",
    null,
    "look",
  ],
  ["node does not answer", { look: look({ said: "node-unreachable" }) }, "TRANSPORT_LOST", null, "look"],
  [
    "another allocation",
    { logs: log({ exitCode: 143, causes: [TERM] }), look: look({ allocation: "other", jobState: "FAILED" }) },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "another allocation",
    { look: look({ allocation: "other", jobState: "FAILED" }), accounting: "NODE_FAIL" },
    "NODE_FAILED",
    null,
    "retry",
  ],
  [
    "another allocation",
    { look: look({ allocation: "other" }), accounting: "PREEMPTED" },
    "PREEMPTED",
    null,
    "retry",
  ],
  [
    "another allocation",
    { look: look({ said: "allocation-gone" }), accounting: "TIMEOUT" },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  ["cluster stopped", { look: look({ cluster: "STOPPED" }) }, "ALLOCATION_EXPIRED", null, "retry"],
  [
    "cluster absent",
    { logs: log({ exitCode: 143 }), look: look({ cluster: "ABSENT", absentAnswers: 2, said: "no-cluster" }) },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "cluster absent once",
    { logs: log({ exitCode: 143 }), look: look({ cluster: "ABSENT", absentAnswers: 1 }) },
    null,
    null,
    "look",
  ],
  ["nobody asked yet", { logs: log({ exitCode: 0 }) }, null, null, "look"],
  ["nobody asked yet", { logs: log({ exitCode: 143, causes: [TERM] }) }, "ALLOCATION_EXPIRED", null, "look"],
  ["nobody asked yet", { logs: log({ finished: "FAILED", listedExit: 3 }) }, null, null, "look"],
  ["job runs", { logs: log({ exitCode: 255 }), look: look({ jobState: "RUNNING" }) }, null, null, "follow"],
  [
    "job runs",
    { look: look({ jobState: "PENDING", cluster: null, allocation: "unknown" }) },
    null,
    null,
    "follow",
  ],
  [
    "status known only after a relaunch",
    { look: look({ jobState: "FAILED", allocation: "unknown" }), relaunched: true },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "status known only after a relaunch",
    { look: look({ jobState: "SUCCEEDED", allocation: "unknown" }), relaunched: true },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "over, its log not read to the end",
    { logs: log({ exitCode: 255 }), look: look({ jobState: "SUCCEEDED" }) },
    null,
    null,
    "follow",
  ],
  ["over, its log not read to the end", { look: look({ jobState: "FAILED" }) }, null, null, "follow"],
  ["driver failed", { logs: log(), look: look({ jobState: "FAILED_DRIVER" }) }, "NODE_FAILED", null, "retry"],
  [
    "failed with a listed code",
    { logs: log({ finished: "FAILED", listedExit: 3 }), look: look({ jobState: "FAILED" }) },
    "APPLICATION_FAILED",
    3,
    "finish",
  ],
  [
    "failed, driver found no code but 137",
    { logs: log({ finished: "FAILED", causes: ["StopIteration"] }), look: look({ jobState: "FAILED" }) },
    "APPLICATION_FAILED",
    137,
    "finish",
  ],
  [
    "setup of the task failed",
    {
      logs: log({
        finished: "FAILED_SETUP",
        causes: ["ERROR: Job 5's setup failed with return code 3 (pid=1)."],
      }),
      look: look({ jobState: "FAILED_SETUP" }),
      hasSetup: true,
    },
    "APPLICATION_FAILED",
    null,
    "finish",
  ],
  [
    "setup failed where there is none",
    {
      logs: log({
        finished: "FAILED_SETUP",
        causes: ["ERROR: Job 5's setup failed with return code 1 (pid=1)."],
      }),
      look: look({ jobState: "FAILED_SETUP" }),
    },
    "NODE_FAILED",
    null,
    "retry",
  ],
  [
    "failed without a word of the program",
    { logs: log(), look: look({ jobState: "FAILED" }) },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "failed without a word of the program",
    { logs: log({ finished: "FAILED", listedExit: 143, stopped: true }), look: look({ jobState: "FAILED" }) },
    "ALLOCATION_EXPIRED",
    null,
    "retry",
  ],
  [
    "cancelled by somebody else",
    { logs: log({ exitCode: 103, finished: "CANCELLED" }), look: look({ jobState: "CANCELLED" }) },
    "CANCELLED",
    null,
    "finish",
  ],
  [
    "job missing from the queue",
    { logs: log({ exitCode: 1 }), look: look({ jobState: "missing" }) },
    null,
    null,
    "look",
  ],
  ["undecided", { look: look({ cluster: "INIT" }) }, null, null, "look"],
];

describe("the table", () => {
  test.each(TABLE)("%s: %o", (row, seen, of, exitCode, next) => {
    expect(classify(evidence(seen))).toMatchObject({ row, class: of, exitCode, next } as object);
  });

  test("every row is met", () => {
    expect([...new Set(TABLE.map(([row]) => row))].sort()).toEqual(ROWS.map((row) => row.name).sort());
  });

  test("an allocation that ends near its wall time ended by it", () => {
    const gone = { look: look({ allocation: "other" }) } as const;
    expect(classify(evidence({ ...gone, endsMs: NOW + 89_000 })).why).toContain("wall time");
    expect(classify(evidence({ ...gone, endsMs: NOW + 91_000 })).why).not.toContain("wall time");
  });

  test("nothing but a marker, sky's own end and an answer that is not from memory ends an evaluation", () => {
    for (const exitCode of [null, 0, 1, 2, 100, 101, 102, 103, 143, 255])
      expect(classify(evidence({ logs: log({ exitCode }) })).next).toBe("look");
  });

  test("a failure in an answer from memory proves nothing", () => {
    const seen = evidence({
      logs: log({ finished: "FAILED", listedExit: 3 }),
      look: look({ jobState: "FAILED", stale: true }),
    });
    expect(classify(seen)).toMatchObject({ class: "TRANSPORT_LOST", next: "look" });
  });
});

describe("real logs without a marker, and what is asked after them", () => {
  const JOB = { id: 1, name: "-" };
  test.each([
    ["21-expire-logs-follow", 143, null, "ALLOCATION_EXPIRED", "retry"],
    ["61-preempt-logs-follow", 143, null, "PREEMPTED", "retry"],
    ["41-node-logs-follow", 0, null, "NODE_FAILED", "retry"],
    ["82-slurmdkill-logs-follow", 0, null, "NODE_FAILED", "retry"],
    ["51-scancel-logs-follow", 143, "22-expire-queue", "ALLOCATION_EXPIRED", "retry"],
    ["71-sshkill-logs-follow", 255, null, "TRANSPORT_LOST", "look"],
    ["71-sshkill-logs-follow", 255, "72-sshkill-queue", null, "follow"],
    ["71-sshkill-logs-follow", 255, "76-nossh-queue", "TRANSPORT_LOST", "look"],
    ["71-sshkill-logs-follow", 255, "83-slurmdkill-queue", "TRANSPORT_LOST", "look"],
    ["71-sshkill-logs-follow", 255, "120-ctld-queue", "TRANSPORT_LOST", "look"],
    ["71-sshkill-logs-follow", 255, "25-expire-queue-after-refresh", null, "look"],
    ["73-sshkill-logs-again", 0, "72-sshkill-queue", null, "follow"],
    ["07-logs-ok", 0, null, "COMPLETED", "finish"],
  ] as const)("%s (exit %i), then %s", (name, exitCode, asked, of, next) => {
    const text = logOf(name);
    const { said } = readLog(text.text, { ...text, final: false });
    const cluster = asked === null ? "" : (/queue for: (\S+)/.exec(transcript(asked).stdout)?.[1] ?? "");
    const queue = asked === null ? null : readQueue(transcript(asked).stdout, cluster);
    const seen = evidence({
      logs: { ...said, exitCode, markerExit: said.exitCode },
      look:
        queue?.ok !== true
          ? null
          : lookOf({ queue: queue.value, cluster: null, job: JOB, remembered: null, absentAnswers: 0 }),
    });
    expect(classify(seen)).toMatchObject({ class: of, next } as object);
  });
});

describe("what status and queue print", () => {
  const AT = 1_796_051_133_000;
  test.each([
    [
      "08-status-refresh",
      "c1",
      AT,
      {
        state: "UP",
        stale: false,
        nodeNames: null,
        resources: { nodes: 1, infra: "slurm/lab", accelerators: "A10G:1" },
      },
    ],
    [
      "301-final-status",
      "z1",
      null,
      { state: "UP", nodeNames: "job17-a10g1", launchedMs: 1_796_052_912_000 },
    ],
    ["24-expire-status-refresh", "c2", AT, { state: "ABSENT", stale: false }],
    ["44-node-status-refresh", "c3", AT, { state: "ABSENT", notice: "Cluster terminated on the cloud: c3" }],
    ["78-nossh-status-refresh", "c5", AT, { state: "UP", stale: true }],
    ["121-ctld-status-refresh", "d2", 1_796_052_255_000, { state: "UP", stale: true }],
    ["115-status", "d1", null, { state: "INIT", nodeNames: null }],
  ] as const)("%s", (name, cluster, askedMs, found) => {
    expect(readCluster(transcript(name).stdout, cluster, askedMs)).toMatchObject({
      ok: true,
      value: found,
    } as object);
  });

  test.each([
    ["06-queue-json", "c1", true, 4, "SUCCEEDED"],
    ["92-queue-pending", "c6", true, 2, "PENDING"],
    ["72-sshkill-queue", "c5", true, 1, "RUNNING"],
  ] as const)("%s", (name, cluster, complete, id, state) => {
    const found = readQueue(transcript(name).stdout, cluster);
    expect(found).toMatchObject({ ok: true, value: { complete } });
    expect(found.ok && found.value.jobs[0]).toMatchObject({ id, state });
  });

  test.each([
    ["22-expire-queue", "c2", "allocation-gone"],
    ["25-expire-queue-after-refresh", "c2", "no-cluster"],
    ["62-preempt-queue", "c4", "allocation-gone"],
    ["76-nossh-queue", "c5", "transport"],
    ["83-slurmdkill-queue", "c5", "node-unreachable"],
    ["120-ctld-queue", "d2", "transport"],
  ] as const)("%s is no answer", (name, cluster, kind) => {
    const found = readQueue(transcript(name).stdout, cluster);
    expect(found).toMatchObject({ ok: true, value: { complete: false, jobs: [] } });
    expect(failureKind(found.ok ? found.value.notice : "")).toBe(kind);
  });

  test.each([
    [
      "banners and colours",
      '\x1b[33mnote {x}\x1b[0m\n[sky.exceptions.X] no\n\x1b[1m[{"name": "c", "status": "up"}]\x1b[0m\n',
      "UP",
    ],
    ["as a mapping", '{"clusters": [{"name": "c", "status": "STOPPED"}]}', "STOPPED"],
    ["a hint after it", '[\n {"name": "c", "status": "UP"}\n]\nA new version is there.\n', "UP"],
    ["another word", '[{"name": "c", "status": "AUTOSTOPPING"}]', "UNKNOWN"],
    ["no word", '[{"name": "c"}]', "UNKNOWN"],
    [
      "a server that starts and a cluster that is not there",
      "Starting API server...\n\x1b[33mCluster(s) not found: \x1b[1mc\x1b[0m.\n\x1b[32m✓ API server started.\x1b[0m\n[]\n",
      "ABSENT",
    ],
    ["another cluster", '[{"name": "d", "status": "UP"}]', "ABSENT"],
  ])("%s", (_, text, state) => {
    expect(readCluster(text, "c", null)).toMatchObject({ ok: true, value: { state } });
  });

  test("a queue behind banners, over many lines", () => {
    const text = `\x1b[2mFetching job queue for: c\x1b[0m\n{\n  "c": [\n    {\n      "job_id": 2,\n      "job_name": "j",\n      "status": "RUNNING"\n    }\n  ]\n}\n`;
    expect(readQueue(text, "c")).toMatchObject({
      ok: true,
      value: { complete: true, jobs: [{ id: 2, name: "j", state: "RUNNING" }] },
    });
  });

  test.each(["", "no json", "[1]", '{"x": 1}', "[{", '"c"'])("malformed status %s", (text) => {
    expect(readCluster(text, "c", null).ok).toBe(false);
  });
  test.each([
    "",
    "[]",
    '{"c": 1}',
    '{"c": [{"job_id": "2", "status": "RUNNING"}]}',
    '{"c": [{"job_id": 2, "status": "ODD"}]}',
  ])("malformed queue %s", (text) => {
    expect(readQueue(text, "c").ok).toBe(false);
  });

  test("the id of a submission", () => {
    expect(submittedId(transcript("10-exec-d").stdout)).toBe(6);
    expect(submittedId("nothing")).toBe(null);
  });
  test("a document among much text is found in time", () => {
    expect(jsonIn("[\n".repeat(2_000_000)).ok).toBe(false);
  });
});

describe("texts of failed calls", () => {
  test.each([
    [transcript("53-scancel-exec-d-stale").stderr, "allocation-gone"],
    [transcript("56-scancel-cancel-stale").stderr, "no-cluster"],
    [transcript("25-expire-logs-after-refresh").stderr, "no-cluster"],
    [transcript("77-nossh-logs").stderr, "transport"],
    [transcript("79-nossh-exec").stderr, "transport"],
    [transcript("84-slurmdkill-exec").stderr, "node-unreachable"],
    [transcript("201-altport-exec").stderr, "transport"],
    ["ssh: Certificate invalid: expired\nPermission denied (publickey).", "certificate"],
    ["Warning: certificate has expired\nConnection closed", "certificate"],
    [CERTIFICATE_MESSAGE, "certificate"],
    ["SkyPilot queue timed out in 3 attempts (60, 90, 135 s)", "transport"],
    ["sky.exceptions.ResourcesMismatchError: no", "other"],
    ["", "other"],
  ] as const)("text %#", (text, kind) => {
    expect(failureKind(text)).toBe(kind);
  });
});
