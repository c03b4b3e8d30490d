import { crcText } from "./crc.ts";

/**
 * The journal's file: one line an entry, `CHECKSUM LENGTH JSON`, the checksum over the rest of the line without its
 * end. The first line is `{"journal":1}`. A line that was cut short or altered is never taken for an entry.
 */
export const JOURNAL_VERSION = 1;

/** One entry as its line. `json` has no line end in it, as JSON.stringify gives it. */
export function encodeEntry(json: string): Uint8Array {
  const body = encoder.encode(json);
  const head = encoder.encode(`${body.length} `);
  const rest = new Uint8Array(head.length + body.length);
  rest.set(head);
  rest.set(body, head.length);
  const line = new Uint8Array(rest.length + 10);
  line.set(encoder.encode(`${crcText(rest)} `));
  line.set(rest, 9);
  line[line.length - 1] = LINE_END;
  return line;
}

export interface DecodedLog {
  /** The entries that are whole, in order. */
  readonly entries: readonly string[];
  /** Bytes from the start that hold whole entries or damage before one; what lies behind was never finished. */
  readonly wholeBytes: number;
  /** Stretches in front of a whole entry that are none: a file that was altered, or a disk that lost something. */
  readonly damaged: readonly { readonly from: number; readonly to: number }[];
}

/** Reads a log: every whole entry, the damage between them, and where an unfinished end begins. */
export function decodeLog(bytes: Uint8Array): DecodedLog {
  const entries: string[] = [];
  const damaged: { from: number; to: number }[] = [];
  let wholeBytes = 0;
  let at = 0;
  while (at < bytes.length) {
    const start = bodyStart(bytes, at);
    const end = start === null ? null : entryEnd(bytes, at, start);
    if (start === null || end === null) {
      const next = bytes.indexOf(LINE_END, at);
      if (next === -1) break;
      at = next + 1;
      continue;
    }
    if (at > wholeBytes) damaged.push({ from: wholeBytes, to: at });
    entries.push(decoder.decode(bytes.subarray(start, end)));
    // An altered line end does not make the entry in front of it wrong; what it was merged with stands right behind.
    if (bytes[end] !== LINE_END) damaged.push({ from: end, to: end + 1 });
    at = end + 1;
    wholeBytes = at;
  }
  return { entries, wholeBytes, damaged };
}

const LINE_END = 0x0a;
const BLANK = 0x20;
/** Digits of a length: an entry is far below 100 MB. */
const MOST_DIGITS = 8;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Where the entry that begins at `at`, its JSON at `start`, ends (its line end is there); null when none does. */
function entryEnd(bytes: Uint8Array, at: number, start: number): number | null {
  const end = start + Number(decoder.decode(bytes.subarray(at + 9, start - 1)));
  // One without its line end was never finished, and the next one could not be told from it.
  if (end >= bytes.length) return null;
  return crcText(bytes.subarray(at + 9, end)) === decoder.decode(bytes.subarray(at, at + 8)) ? end : null;
}

function bodyStart(bytes: Uint8Array, at: number): number | null {
  if (bytes[at + 8] !== BLANK) return null;
  for (let digits = 0; digits <= MOST_DIGITS; digits++) {
    const byte = bytes[at + 9 + digits];
    if (byte === BLANK) return digits === 0 ? null : at + 10 + digits;
    if (byte === undefined || byte < 0x30 || byte > 0x39) return null;
  }
  return null;
}
