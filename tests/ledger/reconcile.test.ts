import { describe, expect, test } from "bun:test";
import { reconcile, reconcileTotals } from "../../src/ledger/reconcile.ts";
import type { Entry } from "../../src/ledger/types.ts";
import type { RanJob } from "../../src/lib/ran-job.ts";
import { readJobsQueue } from "../../src/skypilot/jobs-queue.ts";
import { verdictEntry } from "./entries.ts";

const T = Date.parse("2026-11-29T10:00:00Z") / 1000;
const entry = (more: Partial<Entry> = {}) => verdictEntry({ decision: "warn", stopped: false, ...more });
const job = (more: Partial<RanJob> = {}): RanJob => ({
  id: "1",
  cluster: "grid",
  user: "ada",
  comment: null,
  submitS: T,
  cards: 1,
  tasks: 1,
  fate: "done",
  fates: { done: 1 },
  told: "COMPLETED 0:0",
  usedGb: null,
  ...more,
});
const OPTIONS = { withinS: 60, repeats: false };
const at = (seconds: number) => new Date((T + seconds) * 1000).toISOString();

describe("a verdict's job", () => {
  const ROWS: readonly (readonly [string, Partial<Entry>, Partial<RanJob>, string])[] = [
    ["the same user, cluster, cards and second", {}, {}, "job"],
    ["a fraction before its verdict, as accounting cuts it", { time: at(0.9) }, {}, "job"],
    ["half a minute later", {}, { submitS: T + 30 }, "job"],
    ["two minutes later", {}, { submitS: T + 120 }, "none"],
    ["five seconds before", {}, { submitS: T - 5 }, "none"],
    ["another user", {}, { user: "bo" }, "none"],
    ["another cluster", {}, { cluster: "lab" }, "none"],
    ["the cluster in other letters", { cluster: "Grid" }, {}, "job"],
    ["no cluster recorded", { cluster: null }, {}, "job"],
    ["other cards", {}, { cards: 2 }, "none"],
    ["cards that accounting does not keep", {}, { cards: null }, "job"],
    ["cards over nodes", { count: 4, nodes: 2 }, { cards: 8 }, "job"],
    ["an unknown request", { count: null }, { cards: 4 }, "job"],
    ["a digest in place of the user", { user: "anon-0123456789ab" }, {}, "job"],
    ["the filter's comment", {}, { comment: "mine neurarch:does-not-fit need=339.4GB on a10g:1" }, "job"],
    [
      "the filter's comment about another need",
      {},
      { comment: "neurarch:fits need=12.0GB on a10g:1" },
      "none",
    ],
    [
      "a need that the user wrote, and then the filter",
      {},
      { comment: "neurarch:fits need=1.0GB neurarch:x need=339.4GB on y" },
      "job",
    ],
    ["stopped before it was one", { decision: "refuse", stopped: true }, {}, "stopped"],
    ["an array whose tasks accounting does not all show", { tasks: 10 }, { tasks: 3 }, "job"],
  ];
  for (const [name, of, is, match] of ROWS)
    test(name, () => expect(reconcile([entry(of)], [job(is)], OPTIONS)[0]!.match).toBe(match as "job"));

  test("each job belongs to one verdict, the likeliest first", () => {
    const entries = [
      entry({ id: "verdict-a", time: at(0.2), tasks: 1 }),
      entry({ id: "verdict-b", time: at(0.4), tasks: 10 }),
      entry({ id: "verdict-c", time: at(0.6) }),
    ];
    const jobs = [job({ id: "10", submitS: T }), job({ id: "11", submitS: T, tasks: 10 })];
    const rows = reconcile(entries, jobs, OPTIONS);
    expect(rows.map((row) => [row.entry.id, row.match, row.job?.id ?? null])).toEqual([
      ["verdict-a", "job", "10"],
      ["verdict-b", "job", "11"],
      ["verdict-c", "none", null],
    ]);
  });

  test("a comment outweighs the time", () => {
    const entries = [entry({ needGb: 12, time: at(0) }), entry({ needGb: 99.04, time: at(3) })];
    const jobs = [
      job({ id: "a", submitS: T, comment: "neurarch:fits need=99.0GB on x" }),
      job({ id: "b", submitS: T + 3, comment: "neurarch:fits need=12.0GB on x" }),
    ];
    // The second's job would be three seconds before its verdict, which cannot be.
    expect(reconcile(entries, jobs, OPTIONS).map((row) => row.job?.id ?? null)).toEqual(["b", null]);
  });

  test("asked several times a launch, one job", () => {
    const entries = [entry({ time: at(0) }), entry({ time: at(40) }), entry({ time: at(90) })];
    const rows = reconcile(entries, [job({ submitS: T + 95 })], { withinS: 900, repeats: true });
    expect(rows.map(({ match }) => match)).toEqual(["repeat", "repeat", "job"]);
    expect(reconcileTotals(rows)).toMatchObject({ matched: 1, repeated: 2, notFound: 0 });
  });
});

describe("what became of it", () => {
  const over = { fit: "over", needGb: 20, requestGb: 141 } as const;
  const ROWS: readonly (readonly [string, Partial<Entry>, Partial<RanJob>, string, string | null])[] = [
    ["refused in warn mode and died", { decision: "refuse" }, { fate: "memory" }, "refused", null],
    ["waived", { waiver: "bo" }, {}, "waived", null],
    ["borderline", { fit: "right-sized" }, {}, "warned", null],
    ["an over-request that used less", over, { usedGb: 18 }, "over-requested", "real"],
    ["an over-request that used more", over, { usedGb: 25 }, "over-requested", "not-real"],
    ["an over-request whose use nobody wrote down", over, {}, "over-requested", "not-said"],
    ["allowed", { decision: "allow" }, {}, "allowed", null],
    ["rewritten", { decision: "rewrite" }, {}, "rewritten", null],
    ["not judged", { decision: "unjudged" }, {}, "unjudged", null],
  ];
  for (const [name, of, is, said, check] of ROWS)
    test(name, () => {
      const [row] = reconcile([entry(of)], [job(is)], OPTIONS);
      expect([row!.said as string, row!.over as string | null]).toEqual([said, check]);
    });

  test("the totals count jobs by verdict and fate", () => {
    const entries = ["refuse", "refuse", "warn", "allow"].map((decision, index) =>
      entry({ decision: decision as "warn", time: at(index * 10), count: index + 1 }),
    );
    const fates = ["memory", "killed", "failed", "done"] as const;
    const jobs = fates.map((fate, index) =>
      job({ id: String(index), submitS: T + index * 10, cards: index + 1, fate }),
    );
    const totals = reconcileTotals(
      reconcile([...entries, entry({ stopped: true, decision: "refuse" })], jobs, OPTIONS),
    );
    expect(totals).toMatchObject({ verdicts: 5, matched: 4, stopped: 1, notFound: 0 });
    expect(totals.bySaid.refused).toMatchObject({ jobs: 2, memory: 1, killed: 1, done: 0 });
    expect(totals.bySaid.warned).toMatchObject({ jobs: 1, failed: 1 });
    expect(totals.bySaid.allowed).toMatchObject({ jobs: 1, done: 1 });
  });
});

describe("sky jobs queue", () => {
  const record = (more: object) => ({
    job_id: 3,
    task_id: 0,
    user_name: "ada",
    status: "SUCCEEDED",
    submitted_at: T + 0.5,
    resources: "1x[H100:8]",
    accelerators: { H100: 8 },
    failure_reason: null,
    ...more,
  });
  const ROWS: readonly (readonly [string, object, Partial<RanJob>])[] = [
    ["done", {}, { id: "3", user: "ada", fate: "done", cards: 8, submitS: T + 0.5 }],
    ["on two nodes", { resources: "2x[H100:8]" }, { cards: 16 }],
    [
      "cards in the resources alone",
      { accelerators: null, resources: "1x[cpus=8, mem=32, {A10G:4}]" },
      { cards: 4 },
    ],
    ["no cards", { accelerators: null, resources: "1x[cpus=8+, mem=32+]" }, { cards: null }],
    [
      "failed",
      { status: "FAILED", failure_reason: "To see the details, run: sky jobs logs 3" },
      { fate: "failed" },
    ],
    ["exit code 137", { status: "FAILED", failure_reason: "job exited with code 137" }, { fate: "killed" }],
    [
      "a pod that was killed",
      { status: "FAILED", failure_reason: "container OOMKilled" },
      { fate: "memory" },
    ],
    [
      "no reason that counts for a job that ended well",
      { failure_reason: "out of memory" },
      { fate: "done" },
    ],
    ["no resources", { status: "FAILED_NO_RESOURCE" }, { fate: "lost" }],
    ["recovering", { status: "RECOVERING" }, { fate: "open" }],
    ["as an enum's text", { status: "ManagedJobStatus.CANCELLED" }, { fate: "cancelled" }],
    ["the second task of a pipeline", { task_id: 1 }, { id: "3.1" }],
  ];
  for (const [name, more, expected] of ROWS)
    test(name, () => {
      const text = `Fetching managed job statuses...\n${JSON.stringify([record(more)], null, 2)}\n`;
      expect(readJobsQueue(text)!.jobs[0]).toMatchObject(expected);
    });
  test("what is none", () => {
    expect(readJobsQueue("No in-progress managed jobs.\n")).toBeNull();
    expect(readJobsQueue("[]")).toEqual({ jobs: [], unread: 0 });
    expect(readJobsQueue(JSON.stringify([record({ submitted_at: null }), 7, null]))).toEqual({
      jobs: [],
      unread: 3,
    });
  });
});
