import { decodeLog, encodeEntry, JOURNAL_VERSION } from "../bridge/journal/log.ts";
import { readRecord, type Sha256 } from "../bridge/journal/record.ts";
import type { JournalRecord } from "../bridge/types.ts";
import { type DurableFile, openDurable, removeFile, replaceDurably } from "../host/durable.ts";
import { GateError } from "../lib/errors.ts";

/** What a journal's file holds. */
export interface JournalContent {
  readonly records: Map<string, JournalRecord>;
  /** Ids of evaluations that ended so long ago that only their ids are kept. */
  readonly forgotten: Set<string>;
  /** What was found wrong and how it was dealt with, a sentence each. */
  readonly notices: readonly string[];
}

/** What one line may say. */
interface Entry {
  readonly journal?: unknown;
  readonly put?: unknown;
  readonly forget?: unknown;
}

/** A record of which the fields are not what they should be. */
interface Unusable {
  readonly id: string;
  readonly text: string;
  readonly why: string;
}

/** Largest journal that is read; a compacted one has some megabytes. */
const MOST_BYTES = 1_000_000_000;

/**
 * Opens and reads a journal. An unfinished end is cut off; damage in front of whole entries is set aside in a file
 * of its own and said. Throws a GateError where a newer version wrote it or the disk refuses.
 */
export async function openJournalFile(
  path: string,
  sha256: Sha256,
): Promise<{ readonly file: DurableFile; readonly content: JournalContent }> {
  removeFile(`${path}.new`);
  const file = openDurable(path);
  try {
    if (file.size > MOST_BYTES)
      throw new GateError(
        "settings-invalid",
        `${path} is larger than 1.0 GB`,
        "Name another folder with --state",
      );
    const bytes = file.read(0, file.size);
    const { entries, wholeBytes, damaged } = decodeLog(bytes);
    const notices: string[] = [];
    const { unusable, ...content } = readEntries(path, entries, sha256);
    for (const { id, text, why } of unusable) {
      const aside = `${path}.unusable-${id}`;
      await replaceDurably(aside, [new TextEncoder().encode(`${text}\n`)]);
      notices.push(`${path} has a record of ${id} that cannot be used (${why}); it is set aside in ${aside}`);
    }
    for (const { from, to } of damaged) {
      const aside = `${path}.damaged-${from}`;
      await replaceDurably(aside, [bytes.subarray(from, to)]);
      notices.push(
        `${path} is damaged from byte ${from} to ${to}: what stood there is set aside in ${aside}, everything else was read`,
      );
    }
    if (wholeBytes < file.size) {
      notices.push(
        `${path} ended in ${file.size - wholeBytes} bytes of an unfinished entry, which were cut off`,
      );
      file.cut(wholeBytes);
    }
    return { file, content: { ...content, notices } };
  } catch (error) {
    file.close();
    throw error;
  }
}

function readEntries(
  path: string,
  entries: readonly string[],
  sha256: Sha256,
): Omit<JournalContent, "notices"> & { readonly unusable: readonly Unusable[] } {
  const latest = new Map<string, unknown>();
  const forgotten = new Set<string>();
  for (const text of entries) {
    const entry = parsed(text);
    if (entry === null) continue;
    if (entry.journal !== undefined) refuseNewer(path, entry.journal);
    if (Array.isArray(entry.forget))
      for (const id of entry.forget as string[]) {
        latest.delete(id);
        forgotten.add(id);
      }
    if (entry.put === undefined) continue;
    const { invocationId, schema } = entry.put as { invocationId?: unknown; schema?: unknown };
    refuseNewer(path, schema);
    if (typeof invocationId !== "string" || !/^[0-9a-f]{32}$/.test(invocationId)) continue;
    forgotten.delete(invocationId);
    latest.set(invocationId, entry.put);
  }
  const records = new Map<string, JournalRecord>();
  const unusable: Unusable[] = [];
  // Only the last word on each evaluation counts, so only that is checked.
  for (const [id, value] of latest) {
    const read = readRecord(value, sha256);
    if (read.ok) records.set(id, read.value);
    else unusable.push({ id, text: JSON.stringify(value), why: read.error });
  }
  return { records, forgotten, unusable };
}

function parsed(text: string): Entry | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" ? (value as Entry) : null;
  } catch {
    return null;
  }
}

function refuseNewer(path: string, version: unknown): void {
  if (typeof version !== "number" || version <= JOURNAL_VERSION) return; // what is no version is no record either
  throw new GateError(
    "settings-invalid",
    `${path} was written by a newer neurarch-gate (journal version ${version}, this one reads ${JOURNAL_VERSION})`,
    "Update neurarch-gate, or name another folder with --state",
  );
}

export function headLine(): Uint8Array {
  return encodeEntry(JSON.stringify({ journal: JOURNAL_VERSION } satisfies Entry));
}

export function putLine(record: JournalRecord): Uint8Array {
  return encodeEntry(JSON.stringify({ put: record } satisfies Entry));
}

export function forgetLine(ids: readonly string[]): Uint8Array {
  return encodeEntry(JSON.stringify({ forget: ids } satisfies Entry));
}

/** A whole journal anew: what is known now and nothing of how it came about. */
export function* allLines(
  records: Iterable<JournalRecord>,
  forgotten: ReadonlySet<string>,
): Generator<Uint8Array> {
  yield headLine();
  if (forgotten.size > 0) yield forgetLine([...forgotten]);
  for (const record of records) yield putLine(record);
}
