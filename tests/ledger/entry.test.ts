import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { entryOf, lineOf, type Occasion, type Recorded } from "../../src/ledger/entry.ts";
import { readLine } from "../../src/ledger/read.ts";
import { Report } from "../../src/ledger/totals.ts";
import type { Entry } from "../../src/ledger/types.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import type { Judged, Verdict } from "../../src/verdict/types.ts";

const TABLE = buildCardTable({ prices: { H100: 2, A10G: 1 } });
const card = (name: string) => TABLE.find(name)!;

const OCCASION: Occasion = {
  time: "2026-11-30T10:00:00.000Z",
  adapter: "slurm",
  user: "ada",
  host: "login1",
  cluster: "grid",
  version: "0.1.0",
  id: "012345678901234567890123",
};

/** A verdict as far as an entry looks at it. */
function judged(more: Partial<Judged> = {}, count = 8, nodes = 2, name = "H100"): Judged {
  return {
    kind: "judged",
    candidate: {
      accelerator: name,
      count,
      nodes,
      card: card(name),
      label: `${name}:${count}`,
      memoryForm: false,
    },
    decision: "allow",
    rule: null,
    reason: "fits",
    requestGb: 1280,
    needGb: 900,
    pooled: true,
    fit: "right-sized",
    rightSized: null,
    rightSizedCard: null,
    ...more,
  } as Judged;
}

function record(more: Partial<Recorded> = {}): Recorded {
  const verdict: Verdict = judged();
  return {
    model: "Qwen/Qwen3-8B",
    sizing: null,
    verdict,
    candidates: 1,
    decision: "allow",
    stopped: false,
    reason: null,
    hours: 3,
    tasks: 1,
    ...more,
  };
}

describe("an entry", () => {
  const ROWS: readonly (readonly [string, Partial<Recorded>, Partial<Entry>])[] = [
    ["cards x nodes x hours", {}, { gpuHours: 48, usd: 96, card: "H100", count: 8, nodes: 2 }],
    ["and x array tasks", { tasks: 10 }, { gpuHours: 480, usd: 960, tasks: 10 }],
    ["no hours", { hours: null }, { gpuHours: null, usd: null }],
    [
      "nothing judged",
      { verdict: null, model: null, reason: "facts-unreadable" },
      { request: null, gpuHours: null, reason: "facts-unreadable" },
    ],
    [
      "an unknown card",
      {
        verdict: {
          kind: "unjudged",
          reason: "card-unknown",
          message: "secret text",
          candidate: {
            accelerator: "foo",
            count: 2,
            nodes: 1,
            label: "foo:2",
            reason: "card-unknown",
            message: "secret text",
          },
        },
      },
      { card: null, request: "foo:2", gpuHours: 6, usd: null, reason: "card-unknown" },
    ],
    [
      "a pool too large",
      {
        verdict: judged({
          fit: "over",
          rightSized: { accelerator: "H100", count: 4 },
          rightSizedCard: card("H100"),
        }),
      },
      { fit: "over", overUsd: 96 - 24 },
    ],
    [
      "cards not pooled, too large",
      {
        verdict: judged({
          fit: "over",
          pooled: false,
          rightSized: { accelerator: "A10G", count: 8 },
          rightSizedCard: card("A10G"),
        }),
      },
      { overUsd: 96 - 48 },
    ],
    [
      "too large without hours",
      {
        hours: null,
        verdict: judged({
          fit: "over",
          rightSized: { accelerator: "H100", count: 4 },
          rightSizedCard: card("H100"),
        }),
      },
      { fit: "over", overUsd: null },
    ],
    [
      "a waiver's owner, not its reason",
      {
        verdict: judged({
          waiver: { file: "/secret", owner: "bo", expires: "2027-01-01", reason: "secret" },
        }),
      },
      { waiver: "bo" },
    ],
    ["a long model name", { model: "m".repeat(900) }, { model: `${"m".repeat(200)}...` }],
    [
      "an address with keys",
      { model: "https://bo:hunter2@hub/x/y?token=abc#d" },
      { model: "https://hub/x/y" },
    ],
    ["line breaks in a name", { model: "a\nb\u0000c" }, { model: "a b?c" }],
  ];
  for (const [name, more, expected] of ROWS) {
    test(name, () => {
      const entry = entryOf(record(more), OCCASION);
      expect(entry).toMatchObject(expected);
      expect(readLine(lineOf(entry).trimEnd())).toEqual(entry);
      expect(lineOf(entry)).not.toMatch(/secret|hunter2|abc/);
    });
  }

  test("is one line of at most 4 KB, whatever the names", () => {
    const text = fc.string({ unit: "binary", maxLength: 3000 });
    fc.assert(
      fc.property(text, text, text, text, (model, user, host, label) => {
        const verdict = judged({ waiver: { file: label, owner: label, expires: label, reason: label } });
        const named = { ...verdict, candidate: { ...verdict.candidate, label } };
        const entry = entryOf(record({ model, verdict: named }), { ...OCCASION, user, host, cluster: label });
        const line = lineOf(entry);
        expect(new TextEncoder().encode(line).length).toBeLessThanOrEqual(4096);
        expect(line.indexOf("\n")).toBe(line.length - 1);
        expect(readLine(line.trimEnd())).toEqual(entry);
      }),
    );
  });
});

describe("a line", () => {
  const whole = lineOf(entryOf(record(), OCCASION)).trimEnd();
  const with_ = (more: object) => JSON.stringify({ ...JSON.parse(whole), ...more });
  const ROWS: readonly (readonly [string, string, string])[] = [
    ["empty", "", "blank"],
    ["blanks", "  ", "blank"],
    ["half of one", whole.slice(0, 100), "corrupt"],
    ["two that ran together", whole + whole, "corrupt"],
    ["a number", "7", "corrupt"],
    ["an array", "[1]", "corrupt"],
    ["without a version", '{"time":"x"}', "corrupt"],
    ["of a later form", '{"v":2,"what":"ever"}', "later"],
    ["an adapter nobody has", with_({ adapter: "pbs" }), "corrupt"],
    ["a decision nobody makes", with_({ decision: "maybe" }), "corrupt"],
    ["dollars as text", with_({ usd: "96" }), "corrupt"],
    ["dollars below zero", with_({ usd: -1 }), "corrupt"],
    ["a time that is none", with_({ time: "yesterday" }), "corrupt"],
    ["no host", with_({ host: null }), "corrupt"],
  ];
  for (const [name, line, expected] of ROWS)
    test(name, () => expect(readLine(line)).toBe(expected as "blank"));

  test("a key that a later program adds does not matter", () => {
    expect(readLine(with_({ more: 1 }))).toMatchObject({ user: "ada" });
  });

  test("no beginning of a line is taken for a whole one", () => {
    for (let length = 1; length < whole.length; length += 1)
      expect(readLine(whole.slice(0, length))).toBe("corrupt");
  });
});

describe("the totals", () => {
  const base = entryOf(record(), OCCASION);
  const report = new Report();
  const entries: Partial<Entry>[] = [
    {},
    { decision: "refuse", stopped: true, usd: 100, gpuHours: 50 },
    { decision: "refuse", stopped: true, usd: null, gpuHours: null },
    { decision: "refuse", stopped: false, usd: 1000, gpuHours: 500, user: "bo" },
    { decision: "warn", fit: "over", overUsd: 7, time: "2026-12-01T00:00:00.000Z", model: null },
    { decision: "warn", waiver: "bo", card: "A10G" },
  ];
  for (const more of entries) report.add({ ...base, ...more });

  test("count what was stopped, and only that, as held back", () => {
    expect(report.totals).toEqual({
      verdicts: 6,
      byDecision: { allow: 1, warn: 2, refuse: 3, rewrite: 0, unjudged: 0 },
      stopped: 2,
      gpuHoursHeldBack: 50,
      usdHeldBack: 100,
      stoppedWithoutPrice: 1,
      overRequested: 1,
      overUsd: 7,
      waiversUsed: 1,
    });
  });

  test("break down, and each breakdown adds up", () => {
    const keys = (name: "day" | "user" | "model" | "card") =>
      report.by(name).map(({ key, verdicts }) => [key, verdicts]);
    expect(keys("day")).toEqual([
      ["2026-11-30", 5],
      ["2026-12-01", 1],
    ]);
    expect(keys("user")).toEqual([
      ["ada", 5],
      ["bo", 1],
    ]);
    expect(keys("model")).toEqual([
      ["Qwen/Qwen3-8B", 5],
      [null, 1],
    ]);
    expect(keys("card")).toEqual([
      ["H100", 5],
      ["A10G", 1],
    ]);
    for (const name of ["day", "user", "model", "card"] as const)
      expect(report.by(name).reduce((sum, { usdHeldBack }) => sum + usdHeldBack, 0)).toBe(100);
  });
});
