/** How long an allocation is waited for, over a clock of the test's own. */
import { expect, test } from "bun:test";
import { Patience } from "../../src/daemon/patience.ts";

const MIN = 60_000;

function over(boundMs: number | null = null) {
  const clock = { wallMs: 1_000_000, awakeMs: 0 };
  const patience = new Patience({
    clusterName: "c",
    boundMs,
    unseenMs: 5 * MIN,
    unreachableMs: 10 * MIN,
    nowMs: () => clock.wallMs,
    awakeMs: () => clock.awakeMs,
  });
  const pass = (ms: number) => {
    clock.wallMs += ms;
    clock.awakeMs += ms;
  };
  return { clock, patience, pass };
}

test("as long as it is in the queue, and a word at times: at once, then ever more seldom", () => {
  const { patience, pass } = over();
  const told: (readonly [number, string])[] = [];
  for (let minute = 0; minute <= 300; minute++) {
    const notice = patience.pending();
    if (notice !== null) told.push([minute, notice]);
    expect(patience.over()).toBeNull();
    pass(MIN);
  }
  expect(told.map(([minute]) => minute)).toEqual([0, 1, 5, 15, 30, 60, 120, 180, 240, 300]);
  expect(told[3]?.[1]).toContain("still waited for, 15 min so far");
});

const after = (minutes: number, said: "unseen" | "unreachable") => (it: ReturnType<typeof over>) => {
  it.pass(minutes * MIN);
  it.patience[said]();
};
const ENDS: readonly (readonly [string, (it: ReturnType<typeof over>) => void, RegExp | null])[] = [
  ["unseen for less than its time", after(4, "unseen"), null],
  ["unseen for longer", after(5, "unseen"), /nothing is seen of it/],
  ["unreachable has more", after(9, "unreachable"), null],
  ["unreachable for longer", after(10, "unreachable"), /could not be asked about for 600 s/],
  [
    "a machine that slept heard nothing, which is no silence",
    ({ patience, clock }) => {
      patience.pending();
      clock.wallMs += 8 * 60 * MIN;
      patience.unreachable();
    },
    null,
  ],
  [
    "a clock that is set back",
    ({ patience, clock }) => {
      clock.wallMs -= 60 * MIN;
      patience.pending();
    },
    null,
  ],
];
test.each(ENDS)("%s", (_, happens, why) => {
  const it = over();
  happens(it);
  const end = it.patience.over();
  if (why === null) expect(end).toBeNull();
  else expect(end?.message).toMatch(why);
});

test("the campaign's own bound counts however well it is seen", () => {
  const { patience, pass } = over(20 * MIN);
  pass(19 * MIN);
  patience.pending();
  expect(patience.over()).toBeNull();
  pass(MIN);
  patience.pending();
  expect(patience.over()?.message).toContain("was not ready within 1200 s (`launch_timeout`)");
});
