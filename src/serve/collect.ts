import { anonymous, appendLines, SALT } from "../gate/ledger-write.ts";
import type { Recorder } from "../gate/recorder.ts";
import { randomText, sharedText } from "../host/append.ts";
import { resolve } from "../host/paths.ts";
import type { HttpReply } from "../host/server.ts";
import { type LineReading, readLine } from "../ledger/read.ts";
import { isAddress } from "../lib/sink.ts";
import { errorDocument } from "../render/json.ts";
import { jsonReply } from "./reply.ts";

/** Largest body that is read. */
export const MAX_LEDGER_BYTES = 1_000_000;
/** Longest line that is kept; one of ours has at most 4 KB. */
const MAX_LINE_BYTES = 4096;
/** Ids that are remembered: of what was sent twice, the second is dropped at once. The report drops the others. */
const MOST_IDS = 100_000;

/** What became of the lines of one delivery. */
export interface Receipt {
  readonly schema: "neurarch-gate/ledger-receipt";
  readonly version: 1;
  /** Written down now. */
  readonly taken: number;
  /** There already. */
  readonly known: number;
  /** No verdicts, or without an id; sending them again is of no use. */
  readonly dropped: number;
}

/** Takes verdicts of other hosts (`POST /v1/ledger`) into this server's ledger. */
export class LedgerCollector {
  readonly #ids = new Set<string>();

  constructor(private readonly recorder: Recorder) {}

  /** False where this server's own ledger is no folder: it has nowhere to put them. */
  static takes(recorder: Recorder | null | undefined): recorder is Recorder {
    return recorder != null && !isAddress(recorder.settings.ledger);
  }

  /**
   * The receipt for a JSON array of entries. 400 for what is none, 503 where a line could not be written: the sender
   * keeps it then and sends it again.
   */
  take(body: string): HttpReply {
    const values = arrayOf(body);
    if (values === null)
      return jsonReply(
        400,
        errorDocument("input-invalid", "the body is no JSON array of ledger entries", null),
      );
    const { settings, place } = this.recorder;
    const folder = resolve(place.cwd, settings.ledger);
    const salt = settings.ledgerAnonymous ? sharedText(folder, SALT, randomText()) : null;
    const named = (name: string) => (settings.ledgerAnonymous ? anonymous(name, salt) : name);
    const counts = { taken: 0, known: 0, dropped: 0 };
    for (const value of values) {
      const read = lineToKeep(value, named);
      if (read === null) counts.dropped += 1;
      else if (this.#ids.has(read.id)) counts.known += 1;
      else if (appendLines(folder, [read.line], { named, env: place.env, settings }) === 1) {
        this.#remember(read.id);
        counts.taken += 1;
      } else
        return jsonReply(
          503,
          errorDocument("unreachable", "the ledger cannot be written at the moment", null),
        );
    }
    const receipt: Receipt = { schema: "neurarch-gate/ledger-receipt", version: 1, ...counts };
    return jsonReply(200, receipt);
  }

  #remember(id: string): void {
    this.#ids.add(id);
    if (this.#ids.size <= MOST_IDS) return;
    const [oldest] = this.#ids;
    if (oldest !== undefined) this.#ids.delete(oldest);
  }
}

/** The line of an entry, and of one of a later form with an id; null for anything else. */
function lineToKeep(value: unknown, named: (name: string) => string): { id: string; line: string } | null {
  const text = JSON.stringify(value);
  const reading: LineReading = readLine(text);
  const id = (value as { id?: unknown } | null)?.id;
  if (reading === "blank" || reading === "corrupt" || typeof id !== "string" || !/^[\w-]{8,64}$/.test(id))
    return null;
  const known = typeof reading === "object" && reading.user !== null && !/^anon\b/.test(reading.user);
  const line = `${known ? JSON.stringify({ ...reading, user: named(reading.user!) }) : text}\n`;
  return new TextEncoder().encode(line).length > MAX_LINE_BYTES ? null : { id, line };
}

function arrayOf(body: string): readonly unknown[] | null {
  try {
    const value: unknown = JSON.parse(body);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
