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

/** A writer may put a file aside under another name while it is read: the folder is looked at until nothing is new. */
const MOST_LOOKS = 4;

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
  const unread: string[] = [];
  const counts = { corrupt: 0, later: 0 };
  const seen = new Set<string>();
  const ids = new Set<string>();
  // A line that was sent twice, and a file that was renamed between two looks at it, count once.
  const once = (entry: Entry) => {
    if (entry.id !== undefined) {
      if (ids.has(entry.id)) return;
      ids.add(entry.id);
    }
    take(entry);
  };
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const fresh = unseen(folder, seen);
    if (fresh.length === 0) break;
    for (const { path, isFile, identity } of fresh) {
      const problem = isFile ? readFile(path, once, { counts, seen }) : `${path} is not a regular file`;
      if (problem === null) continue;
      seen.add(identity);
      unread.push(problem);
    }
  }
  return { files: seen.size, unread, ...counts };
}

/** Files that were not there, or under another name, at an earlier look. */
function unseen(folder: string, seen: ReadonlySet<string>) {
  const all = listing(folder);
  if (!all.ok)
    throw new GateError("input-unreadable", all.error.message, "Name a ledger's folder that you may list.");
  return all.value
    .filter((name) => FILE.test(name))
    .sort()
    .flatMap((name) => {
      const path = join(folder, name);
      const info = entryInfo(path);
      return info === null || seen.has(info.identity) ? [] : [{ path, ...info }];
    });
}

function readFile(
  path: string,
  take: (entry: Entry) => void,
  { counts, seen }: { readonly counts: { corrupt: number; later: number }; readonly seen: Set<string> },
): string | null {
  const chunks = openChunks(path);
  if (!chunks.ok) return chunks.error.message;
  // What is opened may be another file than the one that was listed under that name.
  if (seen.has(chunks.value.identity)) {
    chunks.value.close();
    return null;
  }
  seen.add(chunks.value.identity);
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
