import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readSacct } from "../../src/slurm/sacct.ts";

const HEAD = "JobID|Cluster|User|Submit|State|ExitCode|Comment|TRESUsageInTot|ReqTRES";
const AT = "2026-11-30T10:00:00";
const S = Date.parse(`${AT}Z`) / 1000;
const REQ = "billing=1,cpu=1,gres/gpu:h100=8,gres/gpu=8,mem=64M,node=1";
/** A row of `sacct -P`; a step has no user and no request. */
const row = (id: string, state: string, exit: string, { at = AT, comment = "", use = "", req = "" } = {}) =>
  [
    id,
    "grid",
    id.includes(".") ? "" : "ada",
    at,
    state,
    exit,
    comment,
    use,
    id.includes(".") ? "" : req || REQ,
  ].join("|");
const read = (...rows: string[]) => readSacct([HEAD, ...rows, ""].join("\n"));

describe("how a job ended", () => {
  // The first eight as a real Slurm 22.05 wrote them down.
  const ROWS: readonly (readonly [string, readonly string[], string, string])[] = [
    [
      "completed",
      [row("1", "COMPLETED", "0:0"), row("1.batch", "COMPLETED", "0:0")],
      "done",
      "COMPLETED 0:0",
    ],
    ["failed", [row("1", "FAILED", "1:0"), row("1.batch", "FAILED", "1:0")], "failed", "FAILED 1:0"],
    [
      "exit 137 is written 9:0",
      [row("1", "FAILED", "9:0"), row("1.batch", "FAILED", "9:0")],
      "killed",
      "FAILED 9:0",
    ],
    ["the batch shell itself was killed", [row("1", "FAILED", "0:9")], "killed", "FAILED 0:9"],
    [
      "killed by Slurm's watch over memory",
      [
        row("1", "FAILED", "0:9"),
        row("1.batch", "CANCELLED by 0", "0:9", { use: "cpu=00:00:00,mem=417087488,vmem=421601280" }),
      ],
      "memory",
      "FAILED 0:9, memory used up",
    ],
    [
      "killed with memory to spare",
      [row("1", "FAILED", "0:9"), row("1.batch", "FAILED", "0:9", { use: "cpu=00:00:00,mem=1000000" })],
      "killed",
      "FAILED 0:9",
    ],
    [
      "cancelled while it waited",
      [row("1", "CANCELLED by 1000", "0:0")],
      "cancelled",
      "CANCELLED by 1000 0:0",
    ],
    ["waiting", [row("1", "PENDING", "0:0")], "open", "PENDING 0:0"],
    ["out of memory", [row("1", "OUT_OF_MEMORY", "0:125")], "memory", "OUT_OF_MEMORY 0:125"],
    [
      "a step out of memory, the script went on",
      [row("1", "COMPLETED", "0:0"), row("1.0", "OUT_OF_MEMORY", "0:125")],
      "memory",
      "OUT_OF_MEMORY 0:125 (step 0)",
    ],
    [
      "a step out of memory, the script failed",
      [row("1", "FAILED", "1:0"), row("1.batch", "FAILED", "1:0"), row("1.0", "OUT_OF_MEMORY", "0:125")],
      "memory",
      "OUT_OF_MEMORY 0:125 (step 0)",
    ],
    ["a failed state with the code of memory", [row("1", "FAILED", "0:125")], "memory", "FAILED 0:125"],
    [
      "a killed step that the script took",
      [row("1", "COMPLETED", "0:0"), row("1.0", "FAILED", "0:9")],
      "done",
      "COMPLETED 0:0",
    ],
    ["137 as newer ones may write it", [row("1", "FAILED", "137:0")], "killed", "FAILED 137:0"],
    [
      "a cancelled job's steps are killed, which tells nothing",
      [row("1", "CANCELLED by 0", "0:15"), row("1.batch", "CANCELLED", "0:9")],
      "cancelled",
      "CANCELLED by 0 0:15",
    ],
    [
      "time limit",
      [row("1", "TIMEOUT", "0:0"), row("1.batch", "CANCELLED", "0:15")],
      "timeout",
      "TIMEOUT 0:0",
    ],
    ["deadline", [row("1", "DEADLINE", "0:0")], "timeout", "DEADLINE 0:0"],
    ["a node that failed", [row("1", "NODE_FAIL", "1:0")], "lost", "NODE_FAIL 1:0"],
    ["preempted", [row("1", "PREEMPTED", "0:0")], "lost", "PREEMPTED 0:0"],
    ["running", [row("1", "RUNNING", "0:0")], "open", "RUNNING 0:0"],
    ["a state nobody knows", [row("1", "TELEPORTED", "0:0")], "unknown", "TELEPORTED 0:0"],
    ["a state that was cut", [row("1", "OUT_OF_ME+", "0:125")], "memory", "OUT_OF_ME+ 0:125"],
    [
      "requeued after a node failed, then completed",
      [row("1", "NODE_FAIL", "0:0"), row("1", "COMPLETED", "0:0", { at: "2026-11-30T10:05:00" })],
      "done",
      "COMPLETED 0:0",
    ],
    [
      "requeued after it ran out of memory, and now runs",
      [
        row("1", "REQUEUED", "0:0"),
        row("1.batch", "OUT_OF_MEMORY", "0:125"),
        row("1", "RUNNING", "0:0", { at: "2026-11-30T10:05:00" }),
      ],
      "memory",
      "OUT_OF_MEMORY 0:125 (step batch)",
    ],
  ];
  for (const [name, rows, fate, told] of ROWS)
    test(name, () => {
      const { jobs, unread } = read(...rows)!;
      expect(unread).toBe(0);
      expect(jobs.length).toBe(1);
      expect([jobs[0]!.fate as string, jobs[0]!.told]).toEqual([fate, told]);
      expect(jobs[0]).toMatchObject({ id: "1", user: "ada", cluster: "grid", submitS: S, cards: 8 });
    });
});

describe("which rows are one job", () => {
  test("an array: its tasks, and those that wait under one id", () => {
    const { jobs } = read(
      row("7_0", "COMPLETED", "0:0"),
      row("7_1", "OUT_OF_MEMORY", "0:125"),
      row("7_1.batch", "OUT_OF_MEMORY", "0:125"),
      row("7_2", "FAILED", "1:0"),
      row("7_[3-9:2,12%4]", "PENDING", "0:0"),
    )!;
    expect(jobs).toEqual([
      expect.objectContaining({
        id: "7",
        tasks: 8,
        fate: "memory",
        fates: { done: 1, memory: 1, failed: 1, open: 5 },
      }),
    ]);
  });

  test("a heterogeneous job: a job for each component", () => {
    const { jobs } = read(
      row("8+0", "COMPLETED", "0:0", { req: "gres/gpu=2" }),
      row("8+0.batch", "COMPLETED", "0:0"),
      row("8+1", "FAILED", "9:0", { req: "gres/gpu:a10g=1,gres/gpu=1" }),
      row("8+1.0", "COMPLETED", "0:0"),
    )!;
    expect(jobs.map(({ id, cards, fate }) => [id, cards, fate])).toEqual([
      ["8+0", 2, "done"],
      ["8+1", 1, "killed"],
    ]);
  });

  test("jobs of one number in two clusters are two", () => {
    expect(
      read(row("9", "COMPLETED", "0:0"), row("9", "FAILED", "1:0").replace("grid", "lab"))!.jobs.length,
    ).toBe(2);
  });

  test("steps without their job are none", () =>
    expect(read(row("9.batch", "FAILED", "1:0"))!.jobs).toEqual([]));
});

describe("what is read of a request and of its use", () => {
  const TRES: readonly (readonly [string, number | null])[] = [
    ["gres/gpu=8", 8],
    ["cpu=4,gres/gpu:h100=8,gres/gpu=8,node=2", 8],
    ["gres/gpu:h100=2,gres/gpu:a100=1", 3],
    ["cpu=4,mem=1G", null],
    ["gres/gpumem=4G", null],
  ];
  for (const [req, cards] of TRES)
    test(req, () => expect(read(row("1", "COMPLETED", "0:0", { req }))!.jobs[0]!.cards).toBe(cards));

  const USE: readonly (readonly [string, number | null])[] = [
    ["cpu=00:00:01,gres/gpumem=20G,gres/gpuutil=90", (20 * 2 ** 30) / 1e9],
    ["gres/gpumem=21474836480", 21.47483648],
    ["gres/gpumem=0", null],
    ["mem=20G", null],
  ];
  for (const [use, gb] of USE)
    test(use, () => {
      const rows = [row("1", "COMPLETED", "0:0"), row("1.0", "COMPLETED", "0:0", { use })];
      expect(read(...rows)!.jobs[0]!.usedGb).toBe(gb);
    });
});

describe("a text", () => {
  const fields = (text: string) =>
    readSacct(text)?.jobs.map(({ id, comment, submitS }) => [id, comment, submitS]);
  test("of sacct -p, whose lines end with a delimiter", () => {
    expect(fields("JobID|Submit|State|ExitCode|Comment|\n1|2026-11-30T10:00:00|COMPLETED|0:0|x|\n")).toEqual([
      ["1", "x", S],
    ]);
  });
  test("with columns in another order, another delimiter and words before it", () => {
    const text = `sacct: warning\nState;;JobID;;ExitCode;;JobName;;Submit\nFAILED;;5;;1:0;;a|b;;${S}\n`;
    expect(fields(text)).toEqual([["5", null, S]]);
  });
  test("whose comment has a line break, in the middle or at the end", () => {
    const middle = `${HEAD}\n${row("1", "COMPLETED", "0:0", { comment: "a\nb\nc" })}\n${row("2", "COMPLETED", "0:0")}\n`;
    expect(fields(middle)).toEqual([
      ["1", "a\nb\nc", S],
      ["2", null, S],
    ]);
    const end = `JobID|Submit|State|ExitCode|Comment\n1|${AT}|COMPLETED|0:0|a\nb\n2|${AT}|COMPLETED|0:0|\n`;
    expect(fields(end)!.map(([id]) => id)).toEqual(["1", "2"]);
  });
  test("whose names hold the delimiter: that row is counted, not guessed", () => {
    const read_ = read(row("1", "COMPLETED", "0:0", { comment: "a|b" }), row("2", "COMPLETED", "0:0"))!;
    expect([read_.unread, read_.jobs.map(({ id }) => id)]).toEqual([1, ["2"]]);
  });
  test("with odd characters", () => {
    const comment = "\u001b[31m\u202eüñ\u0000 neurarch:fits";
    expect(read(row("1", "COMPLETED", "0:0", { comment }))!.jobs[0]!.comment).toBe(comment);
  });
  test("times in a zone", () => {
    const text = `JobID|Submit|State|ExitCode\n1|${AT}|COMPLETED|0:0\n`;
    expect(readSacct(text, 3600)!.jobs[0]!.submitS).toBe(S - 3600);
  });
  test("a job without a submit time is counted", () => {
    expect(read(row("1", "PENDING", "0:0", { at: "Unknown" }))).toEqual({ jobs: [], unread: 1 });
  });
  for (const text of ["", "\n", "{}", "JobID|State\n1|COMPLETED\n", "hello world"])
    test(`that is none: ${JSON.stringify(text)}`, () => expect(readSacct(text)).toBeNull());

  test("whatever is in it is read without an error", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), (text) => {
        readSacct(text);
        readSacct(`${HEAD}\n${text}\n`);
      }),
    );
  });
});
