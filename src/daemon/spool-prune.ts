import type { JournalRecord } from "../bridge/types.ts";
import { namesIn, removeFile, sizeOf } from "../host/durable.ts";

/** Output of acknowledged evaluations that is kept to be looked at. */
const MOST_SPOOL_BYTES = 256_000_000;

/**
 * Removes from a folder of spools the output of evaluations that are forgotten, and the oldest acknowledged beyond what
 * is kept. `records` by invocation id, the oldest first; the paths in `open` stay.
 */
export function pruneSpools(
  folder: string,
  records: ReadonlyMap<string, JournalRecord>,
  open: ReadonlySet<string>,
): void {
  let bytes = 0;
  const byAge = new Map([...records.keys()].reverse().map((id, index) => [id, index]));
  const files = namesIn(folder).filter((name) => !name.endsWith(".delivered"));
  const rank = (name: string) => byAge.get(name.slice(0, 32)) ?? Number.POSITIVE_INFINITY;
  for (const name of files.sort((a, b) => rank(a) - rank(b))) {
    const path = `${folder}/${name}`;
    if (open.has(path)) continue;
    const record = records.get(name.slice(0, 32));
    if (record !== undefined && record.phase !== "ACKNOWLEDGED") continue;
    bytes += sizeOf(path);
    if (record !== undefined && bytes <= MOST_SPOOL_BYTES) continue;
    removeFile(path);
    removeFile(`${path}.delivered`);
  }
}
