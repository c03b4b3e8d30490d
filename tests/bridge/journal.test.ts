import { describe, expect, test } from "bun:test";
import { readRecord } from "../../src/bridge/journal/record.ts";
import { superfluous } from "../../src/bridge/journal/retention.ts";
import {
  acknowledge,
  askedAgain,
  began,
  cancelRequested,
  complete,
  nextJobName,
  outputRestarted,
  retry,
  running,
  type Step,
  submitted,
  submitting,
  takenBack,
} from "../../src/bridge/journal/transitions.ts";
import type { JournalRecord } from "../../src/bridge/types.ts";
import {
  ALLOCATION,
  artifact,
  atRunning,
  atSubmitted,
  atSubmitting,
  done,
  hex,
  prepared,
  RESOURCES,
  result,
} from "./journal-fixtures.ts";

const completed = () => done(complete(atRunning(), result()));
const NODE_FAILED = { class: "NODE_FAILED", seen: "Node failure on n1" } as const;

describe("a record's way", () => {
  test("from PREPARED to ACKNOWLEDGED", () => {
    const way = [
      prepared(),
      atSubmitting(),
      atSubmitted(),
      atRunning(),
      completed(),
      done(acknowledge(completed())),
    ];
    expect(way.map(({ phase, attempt }) => `${phase} ${attempt}`)).toEqual([
      "PREPARED 0",
      "SUBMITTING 1",
      "SUBMITTED 1",
      "RUNNING 1",
      "COMPLETED 1",
      "ACKNOWLEDGED 1",
    ]);
    for (const record of way)
      expect(readRecord(JSON.parse(JSON.stringify(record)), hex)).toEqual({ ok: true, value: record });
  });

  test("a retry takes the next job name and begins anew, the count kept", () => {
    const streamed = done(outputRestarted(atRunning()));
    expect([streamed.outputRestarts, streamed.phase]).toEqual([1, "RUNNING"]);
    const again = done(retry(streamed, NODE_FAILED, "def"));
    expect(again).toMatchObject({
      phase: "PREPARED",
      attempt: 1,
      jobName: "vibesys-inv-1-a2",
      nonce: "def",
      remoteJobId: null,
      allocation: null,
      resources: null,
      submittedMs: null,
      startedMs: null,
      outputRestarts: 0,
      failures: [{ attempt: 1, ...NODE_FAILED }],
    });
    expect(done(submitting(again, ALLOCATION, RESOURCES, 9)).attempt).toBe(2);
    expect(again.attemptsBefore).toBeUndefined();
    expect(done(retry(streamed, NODE_FAILED, "def", true)).attemptsBefore).toBe(1);
    expect(nextJobName("vibesys-inv-x-a9")).toBe("vibesys-inv-x-a10");
  });

  test("what is said twice changes nothing", () => {
    const at = atSubmitted();
    expect(done(submitted(at, 4, ALLOCATION.clusterName))).toBe(at);
    const work = atRunning();
    expect(done(running(work, 9_999))).toBe(work);
    expect(done(submitted(work, 4, ALLOCATION.clusterName))).toBe(work);
    const over = done(acknowledge(completed()));
    expect(done(acknowledge(over))).toBe(over);
  });

  test("the moment of submission is the one before sky is asked, and its answer leaves it", () => {
    expect([atSubmitting().submittedMs, atSubmitted().submittedMs]).toEqual([2_000, 2_000]);
  });

  test("a submission that never was does not count, and keeps the name under which it may show up yet", () => {
    const back = done(takenBack(atSubmitting()));
    expect(back).toMatchObject({
      phase: "PREPARED",
      attempt: 0,
      jobName: "vibesys-inv-1-a1",
      nonce: prepared().nonce,
      mayExist: true,
      submittedMs: null,
      allocation: null,
      resources: null,
    });
    const again = done(submitting(back, ALLOCATION, RESOURCES, 5_000));
    expect([again.attempt, again.submittedMs]).toEqual([1, 5_000]);
    expect(done(submitted(again, 9, ALLOCATION.clusterName)).mayExist).toBe(false);
    expect(readRecord(JSON.parse(JSON.stringify(back)), hex)).toEqual({ ok: true, value: back });
  });

  test("a client that asks again takes the workspace as it is, and a cancellation only while its call is under way", () => {
    const now = { requestSha256: "3".repeat(64), snapshotSha256: "4".repeat(64), snapshotKey: "k" };
    const wanted = done(cancelRequested(prepared(), true));
    expect(done(askedAgain(wanted, now, true))).toMatchObject({
      ...now,
      cancelRequested: false,
      timedOut: false,
    });
    expect(done(askedAgain(wanted, now, false))).toMatchObject({
      ...now,
      cancelRequested: true,
      timedOut: true,
    });
  });

  test("a job that began later than was thought", () =>
    expect(done(began(atRunning(), 7_000)).startedMs).toBe(7_000));

  test("what never ran can end too", () => {
    const never = result({ class: "CANCELLED", status: "CANCELLED", exitCode: null });
    expect(done(complete(prepared(), never)).phase).toBe("COMPLETED");
    expect(done(complete(done(cancelRequested(prepared())), never)).cancelRequested).toBe(true);
  });

  const refused: [string, () => Step, string][] = [
    ["retry of PREPARED", () => retry(prepared(), NODE_FAILED, "x"), "is PREPARED and cannot be retried"],
    ["retry of COMPLETED", () => retry(completed(), NODE_FAILED, "x"), "is COMPLETED and cannot be retried"],
    [
      "retry under the same name",
      () => retry(atRunning(), NODE_FAILED, "x", false, "vibesys-inv-1-a1"),
      "another job name",
    ],
    ["acknowledge before the end", () => acknowledge(atRunning()), "is RUNNING and cannot be acknowledged"],
    [
      "submit twice",
      () => submitting(atSubmitting(), ALLOCATION, RESOURCES, 1),
      "is SUBMITTING and cannot submit",
    ],
    [
      "submitted without submitting",
      () => submitted(prepared(), 4, "vibesys-run-1"),
      "is PREPARED and cannot",
    ],
    ["submitted elsewhere", () => submitted(atSubmitting(), 4, "other"), "meant for vibesys-run-1"],
    [
      "submitted with another id",
      () => submitted(atSubmitted(), 5, "vibesys-run-1"),
      "is SUBMITTED and cannot",
    ],
    ["running before it is submitted", () => running(atSubmitting(), 1), "is SUBMITTING and cannot run"],
    ["completed twice", () => complete(completed(), result()), "is COMPLETED and cannot complete"],
    ["success that never ran", () => complete(prepared(), result()), "COMPLETED has no resources"],
    ["cancel after the end", () => cancelRequested(completed()), "is COMPLETED and cannot be cancelled"],
    ["taken back once it is known", () => takenBack(atSubmitted()), "is SUBMITTED and cannot be taken back"],
    ["taken back while it is asked for", () => takenBack(prepared()), "is PREPARED and cannot be taken back"],
    [
      "another candidate for a job that may exist",
      () => askedAgain(atSubmitting(), { requestSha256: "", snapshotSha256: "" }, true),
      "is SUBMITTING and cannot take another candidate",
    ],
    ["begun before it runs", () => began(atSubmitted(), 1), "is SUBMITTED and cannot begin later"],
    ["output anew after the end", () => outputRestarted(completed()), "cannot have its output read anew"],
  ];
  for (const [name, step, said] of refused)
    test(`refused: ${name}`, () => {
      const outcome = step();
      expect(outcome.ok ? "allowed" : outcome.error).toContain(said);
    });
});

describe("a stored record", () => {
  const withArtifact = (over: object) => ({
    ...completed(),
    result: result({ artifact: { ...artifact("result"), ...over } }),
  });
  test("with an artifact gives its bytes back", () => {
    const value = withArtifact({});
    const read = readRecord(JSON.parse(JSON.stringify(value)), hex);
    expect(read.ok && Buffer.from(read.value.result?.artifact?.dataBase64 ?? "", "base64").toString()).toBe(
      "result",
    );
  });

  const without = (key: keyof JournalRecord) => {
    const { [key]: _, ...rest } = atRunning();
    return rest;
  };
  const refused: [string, unknown, string][] = [
    [
      "delivered beyond spooled",
      { ...atRunning(), deliveredBytes: 1 },
      "deliveredBytes is beyond spooledBytes",
    ],
    ["terminal without result", { ...completed(), result: null }, "COMPLETED has no result"],
    ["result before the end", { ...atRunning(), result: result() }, "RUNNING has a result before its end"],
    ["PREPARED with a cluster", { ...prepared(), allocation: ALLOCATION }, "PREPARED has an allocation"],
    ["PREPARED with resources", { ...prepared(), resources: RESOURCES }, "PREPARED has resources"],
    ["later phase without resources", { ...atSubmitting(), resources: null }, "SUBMITTING has no resources"],
    ["RUNNING without an id", { ...atRunning(), remoteJobId: null }, "RUNNING has no job id"],
    ["attempt 0 at work", { ...atRunning(), attempt: 0 }, "RUNNING has attempt 0"],
    ["an unknown key", { ...atRunning(), color: 1 }, 'unknown key "color"'],
    ["a missing key", without("nonce"), "nonce is missing"],
    ["an inner unknown key", { ...atRunning(), allocation: { ...ALLOCATION, x: 1 } }, "allocation is not"],
    ["a true for a number", { ...atRunning(), attempt: true }, "attempt is not a whole number"],
    ["a negative offset", { ...atRunning(), spooledBytes: -1 }, "spooledBytes is not"],
    ["an id that is none", { ...atRunning(), invocationId: "../x" }, "invocationId is not"],
    ["a job name with a slash", { ...atRunning(), jobName: "a/b" }, "jobName is not"],
    ["another schema", { ...atRunning(), schema: 0 }, "schema is not 1"],
    ["no object", [], "not an object"],
    ["bad base64", withArtifact({ dataBase64: "cmVzdWx0=" }), "not base64"],
    ["base64 with stray bits", withArtifact({ size: 1, dataBase64: "cm==" }), "not base64"],
    ["wrong size", withArtifact({ size: 5 }), "size differs"],
    ["wrong digest", withArtifact({ sha256: "0".repeat(64) }), "sha256 differs"],
    ["too large", withArtifact({ size: 524_289 }), "larger than"],
    [
      "an artifact without success",
      {
        ...completed(),
        result: result({ class: "APPLICATION_FAILED", status: "APPLICATION_FAILED", artifact: artifact() }),
      },
      "APPLICATION_FAILED has an artifact",
    ],
  ];
  for (const [name, value, said] of refused)
    test(`refused: ${name}`, () => {
      const read = readRecord(value, hex);
      expect(read.ok ? "accepted" : read.error).toContain(said);
    });
});

test("the newest acknowledged evaluations are remembered, and none that is under way is let go", () => {
  const acknowledged = Array.from({ length: 130 }, (_, n) =>
    done(acknowledge({ ...completed(), invocationId: `${n}` })),
  );
  expect(superfluous([prepared(), ...acknowledged])).toHaveLength(30);
  expect(superfluous([...acknowledged, atRunning()])).toContain("0");
  const heavy = acknowledged.map((record) => ({
    ...record,
    result: result({ artifact: { ...artifact(), dataBase64: "a".repeat(700_000) } }),
  }));
  expect(heavy.length - superfluous(heavy).length).toBe(11);
});
