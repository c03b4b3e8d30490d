import type { JournalRecord } from "../types.ts";

/** How many acknowledged evaluations are remembered whole, so that a client whose `acked` was lost can ask again. */
export const MOST_ACKNOWLEDGED = 100;
/** How much artifact text of theirs, in characters, besides the newest few. */
export const MOST_ACKNOWLEDGED_TEXT = 8_000_000;
/** Acknowledged evaluations that are kept whatever their artifacts weigh. */
export const ALWAYS_KEPT = 8;
/** Ids of evaluations that are remembered by id alone; what asks for one of them again begins anew. */
export const MOST_FORGOTTEN = 20_000;

/** The acknowledged records, given oldest first, that are more than what is remembered. */
export function superfluous(records: Iterable<JournalRecord>): readonly string[] {
  const acknowledged = [...records].filter(({ phase }) => phase === "ACKNOWLEDGED");
  const over: string[] = [];
  let kept = 0;
  let text = 0;
  for (const record of acknowledged.reverse()) {
    text += record.result?.artifact?.dataBase64.length ?? 0;
    if (kept < ALWAYS_KEPT || (kept < MOST_ACKNOWLEDGED && text <= MOST_ACKNOWLEDGED_TEXT)) kept++;
    else over.push(record.invocationId);
  }
  return over;
}
