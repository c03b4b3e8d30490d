import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { arrayTasks } from "../../src/request/array.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import { countHosts, readNodes } from "../../src/request/nodes.ts";
import { plainRequest } from "../../src/request/plain.ts";
import { hoursOfTime } from "../../src/request/time.ts";
import { isJudged } from "../../src/request/types.ts";

describe("hours of a time limit", () => {
  const ROWS: [string, number | null][] = [
    ["30", 0.5],
    ["90:30", 90.5 / 60],
    ["01:30:00", 1.5],
    ["100:00:00", 100],
    ["1-0", 24],
    ["1-02", 26],
    ["1-02:30", 26.5],
    ["1-02:03:04", 26 + 3 / 60 + 4 / 3600],
    ["0-00:30:00", 0.5],
    [" 60 ", 1],
    ["UNLIMITED", null],
    ["infinite", null],
    ["-1", null],
    ["2982616-04:14:00", null],
    ["0", null],
    ["", null],
    ["1h", null],
    ["1:2:3:4", null],
    ["1-", null],
    ["1.5", null],
    ["9".repeat(400), null],
  ];
  for (const [text, hours] of ROWS) {
    test(JSON.stringify(text.slice(0, 30)), () => {
      if (hours === null) expect(hoursOfTime(text)).toBe(null);
      else expect(hoursOfTime(text)).toBeCloseTo(hours, 9);
    });
  }
  test("days, hours, minutes and seconds add up", () => {
    const part = fc.integer({ min: 0, max: 59 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), part, part, part, (days, hours, minutes, seconds) => {
        expect(hoursOfTime(`${days}-${hours}:${minutes}:${seconds}`)).toBeCloseTo(
          days * 24 + hours + minutes / 60 + seconds / 3600,
          6,
        );
      }),
    );
  });
});

describe("tasks of an array", () => {
  const ROWS: [string, number | null][] = [
    ["0-9", 10],
    ["0-9%2", 10],
    ["5", 1],
    ["1,3,5-7:2", 4],
    ["0-15:4", 4],
    ["1-10,5-12", 12],
    ["1,1,1", 1],
    ["[0-3]%2", 4],
    ["[0-3]", 4],
    ["1-3%1,7%1", 4],
    ["0-4000000", 4_000_001],
    ["", 1],
    ["9-0", null],
    ["a", null],
    ["1-", null],
    ["-1", null],
    ["0-9:0", null],
    ["0-99999999", null],
    ["1,,2", null],
    [`${"0-4000000,".repeat(300)}1`, null],
  ];
  for (const [text, tasks] of ROWS) {
    test(JSON.stringify(text.slice(0, 30)), () => expect(arrayTasks(text)).toBe(tasks));
  }
  test("is the number of distinct indices", () => {
    const range = fc.tuple(fc.nat(200), fc.nat(50), fc.integer({ min: 1, max: 9 }));
    fc.assert(
      fc.property(fc.array(range, { minLength: 1, maxLength: 6 }), (ranges) => {
        const indices = new Set<number>();
        for (const [first, more, step] of ranges)
          for (let i = first; i <= first + more; i += step) indices.add(i);
        expect(
          arrayTasks(ranges.map(([first, more, step]) => `${first}-${first + more}:${step}`).join(",")),
        ).toBe(indices.size);
      }),
    );
  });
});

describe("nodes", () => {
  const ROWS: [string, number | null, boolean?][] = [
    ["4", 4, true],
    ["2-6", 2, false],
    ["2-2", 2, true],
    ["2-", 2, false],
    ["0-4", 1, false],
    ["0", 1, true],
    ["1k", 1024, true],
    ["1k-2k", 1024, false],
    ["4,2,8", 2, false],
    ["2-8:2", 2, false],
    ["6-2", null],
    ["two", null],
    ["-2", null],
    ["2.5", null],
    ["1,x", null],
    ["99999999999", null],
    ["", null],
    ["2-4\n", 2, false],
    ["2-\n4", 2, false],
    ["2\r-4x", null],
  ];
  for (const [text, least, fixed] of ROWS) {
    test(JSON.stringify(text), () =>
      expect(readNodes(text)).toEqual(least === null ? null : { least, fixed: fixed === true }),
    );
  }
});

describe("hosts of a node list", () => {
  const ROWS: [string, number | null][] = [
    ["n1", 1],
    ["n1,n2", 2],
    ["n1,n1", 1],
    ["n[1-4]", 4],
    ["n[1-4,7],k1", 6],
    ["gpu[01-10]", 10],
    ["r[0-1]n[0-3]", 8],
    ["./hosts.txt", null],
    ["n[1", null],
    ["n[a-b]", null],
    ["", null],
  ];
  for (const [text, hosts] of ROWS) test(JSON.stringify(text), () => expect(countHosts(text)).toBe(hosts));
});

describe("a request on plain flags", () => {
  const table = buildCardTable();
  const ROWS: [string, string | null, string][] = [
    ["H100:8", null, "H100:8 = H100"],
    ["H100", null, "H100:1 = H100"],
    ["h100:8", "2", "h100:8 x 2 nodes = H100"],
    ["H100:8", "2-4", "H100:8 x 2 nodes = H100"],
    ["H100:1.0", null, "H100:1 = H100"],
    ["a100_3g.20gb:2", null, "a100_3g.20gb:2 = A100-40-3g.20gb"],
    ["80GB:8", null, "80GB:8 = 80GB"],
    ["H100:0.5", null, "H100:0.5 ! fractional"],
    ["8xH100", null, "8xH100:1 ! card-unknown"],
    ["FOO:2", null, "FOO:2 ! card-unknown"],
    ["H100:", null, "H100: ! unreadable-request"],
    ["H100:0", null, "H100:0 ! unreadable-request"],
    ["H100:-1", null, "H100:-1 ! unreadable-request"],
    ["H100:8:2", null, "H100:8:2 ! unreadable-request"],
    ["", null, " ! unreadable-request"],
    ["H100:8", "two", "H100:8 ! unreadable-request"],
    ["H100:8", "0", "H100:8 ! unreadable-request"],
    [":8", null, ":8 ! unreadable-request"],
    ["tpu-v5e-8", null, "tpu-v5e-8:1 ! not-a-gpu"],
  ];
  for (const [text, nodes, expected] of ROWS) {
    test(`${JSON.stringify(text)} --nodes ${nodes}`, () => {
      const [candidate] = plainRequest(text, nodes, table).candidates;
      const come =
        candidate === undefined
          ? ""
          : isJudged(candidate)
            ? `= ${candidate.card.id}`
            : `! ${candidate.reason}`;
      expect(`${candidate?.label} ${come}`).toBe(expected);
    });
  }
  test("a swapped spelling is put right", () => {
    expect(plainRequest("8xH100", null, table).candidates).toMatchObject([
      { message: expect.stringContaining("H100:8") },
    ]);
  });
});
