import { openChunks } from "../host/chunks.ts";
import { entryInfo, listing } from "../host/fs.ts";
import { join } from "../host/paths.ts";
import { readLine } from "../ledger/read.ts";
import type { Entry } from "../ledger/types.ts";
import { GateError } from "../lib/errors.ts";

/** `user@host.jsonl`, and what a log rotation makes of it by renaming: `.jsonl.1`, `.jsonl-20261130`. */
const FILE = /^[^.].*\.jsonl(?:[.-]\d+)?$/;
/** Longest line that is put together; one of ours has at most 4 KB. */
const MAX_LINE_CHARACTERS = 65_536;

/** What was found in a ledger's folder beside its entries. */
export interface LedgerReading {
  readonly files: number;
  /** Files that could not be read, or are none: a sentence each. */
  readonly unread: readonly string[];
  /** Lines that are no entry: half-written ones, say. */
  readonly corrupt: number;
  /** Lines that a later program wrote in a form of its own. */
  readonly later: number;
}

/**
 * Hands every entry of a ledger's folder to `take`, file by file. Links are not followed: whoever may write there
 * could point them anywhere. Throws `GateError("input-unreadable")` where there is no folder that can be listed.
 */
export function readLedger(folder: string, take: (entry: Entry) => void): LedgerReading {
  const all = listing(folder);
  if (!all.ok)
    throw new GateError("input-unreadable", all.error.message, "Name a ledger's folder that you may list.");
  const names = all.value.filter((name) => FILE.test(name));
  const unread: string[] = [];
  const counts = { corrupt: 0, later: 0 };
  for (const name of names.sort()) {
    const path = join(folder, name);
    if (entryInfo(path)?.isFile !== true) unread.push(`${path} is not a regular file`);
    else {
      const problem = readFile(path, take, counts);
      if (problem !== null) unread.push(problem);
    }
  }
  return { files: names.length, unread, ...counts };
}

function readFile(
  path: string,
  take: (entry: Entry) => void,
  counts: { corrupt: number; later: number },
): string | null {
  const chunks = openChunks(path);
  if (!chunks.ok) return chunks.error.message;
  const decoder = new TextDecoder();
  const line = (text: string) => {
    const reading = readLine(text);
    if (reading === "corrupt" || reading === "later") counts[reading] += 1;
    else if (reading !== "blank") take(reading);
  };
  let rest = "";
  try {
    for (;;) {
      const chunk = chunks.value.next();
      if (!chunk.ok) return chunk.error.message;
      const ended = chunk.value.length === 0;
      const lines = (rest + decoder.decode(chunk.value, { stream: !ended })).split("\n");
      rest = (ended ? "" : lines.pop()) ?? "";
      for (const text of lines) line(text);
      if (ended) return null;
      // A line without an end is none of ours; its head is enough to count it as corrupt.
      if (rest.length > MAX_LINE_CHARACTERS) rest = rest.slice(0, MAX_LINE_CHARACTERS);
    }
  } finally {
    chunks.value.close();
  }
}
