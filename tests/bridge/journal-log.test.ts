import { expect, test } from "bun:test";
import { crc32 as zlibCrc32 } from "node:zlib";
import fc from "fast-check";
import { crc32 } from "../../src/bridge/journal/crc.ts";
import { decodeLog, encodeEntry } from "../../src/bridge/journal/log.ts";

const entry = fc
  .dictionary(fc.string(), fc.oneof(fc.string({ unit: "binary" }), fc.integer()))
  .map((value) => JSON.stringify(value));
const entries = fc.array(entry, { minLength: 1, maxLength: 12 });
const log = (list: readonly string[]) => new Uint8Array(Buffer.concat(list.map(encodeEntry)));

/** Whether `some` is `all` with any of them left out. */
function isPartOf(some: readonly string[], all: readonly string[]): boolean {
  let at = 0;
  for (const one of all) if (some[at] === one) at++;
  return at === some.length;
}

test("the checksum is zlib's", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => crc32(bytes) === zlibCrc32(bytes)));
});

test("what was written is read", () => {
  fc.assert(
    fc.property(entries, (list) => {
      const bytes = log(list);
      expect(decodeLog(bytes)).toEqual({ entries: list, wholeBytes: bytes.length, damaged: [] });
    }),
  );
});

test("a log that was cut anywhere gives its first entries, and says where to go on", () => {
  fc.assert(
    fc.property(entries, fc.nat(), (list, at) => {
      const bytes = log(list);
      const cut = decodeLog(bytes.subarray(0, at % bytes.length));
      expect(cut.entries).toEqual(list.slice(0, cut.entries.length));
      expect(cut.damaged).toEqual([]);
      // Whatever is appended at that place is read.
      const again = decodeLog(
        new Uint8Array(Buffer.concat([bytes.subarray(0, cut.wholeBytes), encodeEntry('"new"')])),
      );
      expect(again.entries).toEqual([...cut.entries, '"new"']);
    }),
  );
});

test("no bit that flips makes an entry of what was none, and the others are read", () => {
  fc.assert(
    fc.property(entries, fc.nat(), fc.nat(7), (list, at, bit) => {
      const bytes = log(list);
      const place = at % bytes.length;
      bytes[place] = (bytes[place] as number) ^ (1 << bit);
      const read = decodeLog(bytes);
      expect(isPartOf(read.entries, list)).toBe(true);
      expect(read.entries.length).toBeGreaterThanOrEqual(list.length - 1);
      expect(read.damaged.length > 0 || read.wholeBytes < bytes.length).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test("nothing at all makes an entry of garbage", () => {
  fc.assert(
    fc.property(
      entries,
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 20 }),
      (list, changes) => {
        const bytes = log(list);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        expect(isPartOf(decodeLog(bytes).entries, list)).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => decodeLog(bytes).entries.length === 0),
  );
});
