import { expect, test } from "bun:test";
import fc from "fast-check";
import { Envelope } from "../../src/sizing/envelope.ts";

const line = fc.record({ fixed: fc.integer({ min: 0, max: 60 }), per: fc.integer({ min: 0, max: 12 }) });

test("the hull is as high as the highest of all that was offered, at every batch, and holds nothing else", () => {
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 40 }), (offered) => {
      const envelope = new Envelope();
      offered.forEach(({ fixed, per }, index) => {
        envelope.offer(fixed, per, `offer ${index}`, [index]);
      });
      const hull = envelope.hull();
      for (let batch = 0; batch <= 100; batch += 0.5) {
        const at = (lines: readonly { fixed: number; per: number }[]) =>
          Math.max(...lines.map(({ fixed, per }) => fixed + per * batch));
        expect(at(hull)).toBe(at(offered));
      }
      hull.forEach(({ fixed, per, phase, byKind }, index) => {
        // Of equal ones the first that was offered, with what lived then.
        const first = offered.findIndex((one) => one.fixed === fixed && one.per === per);
        expect([phase, byKind]).toEqual([`offer ${first}`, [first]]);
        const before = hull[index - 1];
        if (before) expect(before.per < per && before.fixed > fixed).toBe(true);
      });
    }),
    { numRuns: 300 },
  );
});

test("what is kept of a maximum is a copy of the live bytes", () => {
  const envelope = new Envelope();
  const live = [1, 2];
  envelope.offer(5, 1, "forward", live);
  live[0] = 9;
  expect(envelope.hull()[0]?.byKind).toEqual([1, 2]);
});
