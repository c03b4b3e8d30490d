import { readRecord } from "../bridge/journal/record.ts";
import { MOST_FORGOTTEN, superfluous } from "../bridge/journal/retention.ts";
import type { JournalRecord } from "../bridge/types.ts";
import { sha256 } from "../host/copy.ts";
import { type DurableFile, openDurable, privateFolder, replaceDurably, syncFolder } from "../host/durable.ts";
import { lockFolder } from "../host/lock.ts";
import { GateError } from "../lib/errors.ts";
import { allLines, forgetLine, headLine, openJournalFile, putLine } from "./journal-file.ts";
import { type CommittedSpool, openSpool } from "./spool.ts";
import { pruneSpools } from "./spool-prune.ts";
import type { Journal } from "./types.ts";

/** A journal on disk, and what its opening found. */
export interface JournalOnDisk extends Journal {
  /** An evaluation that was acknowledged so long ago that only its id is known; one that is asked for again begins anew. */
  forgotten(invocationId: string): boolean;
}

/** A file with this much and several times what counts is written anew. */
const COMPACT_BYTES = 4_000_000;
const COMPACT_FACTOR = 3;

/**
 * Opens the durable memory in a folder of our own (made 0700): `journal`, `spool/`, and the lock that keeps a second
 * daemon out until `close` or this process's end. Throws a GateError, one line with the path and the remedy.
 */
export async function openJournal(folder: string): Promise<JournalOnDisk> {
  privateFolder(folder);
  const lock = await lockFolder(folder);
  try {
    privateFolder(`${folder}/spool`);
    const opened = await openJournalFile(`${folder}/journal`, sha256);
    const journal = new DiskJournal(folder, opened.file, opened.content, () => lock.release());
    await journal.begin();
    return journal;
  } catch (error) {
    lock.release();
    throw error;
  }
}

class DiskJournal implements JournalOnDisk {
  readonly notices: readonly string[];
  readonly #path: string;
  readonly #spoolFolder: string;
  readonly #records: Map<string, JournalRecord>;
  readonly #forgotten: Set<string>;
  readonly #spools = new Map<string, CommittedSpool>();
  readonly #release: () => void;
  #file: DurableFile;
  /** Lines that are in no file yet. */
  #pending: Uint8Array[] = [];
  /** Bytes of each record's last line, and all together: what a journal written anew would have, nearly. */
  readonly #lengths = new Map<string, number>();
  #liveBytes = 0;
  /** The file's own pages are in doubt after a failed sync: only a new file is to be trusted. */
  #rewrite = false;
  #spoolFolderDirty = true;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #closed = false;

  constructor(
    folder: string,
    file: DurableFile,
    content: Awaited<ReturnType<typeof openJournalFile>>["content"],
    release: () => void,
  ) {
    this.#path = `${folder}/journal`;
    this.#spoolFolder = `${folder}/spool`;
    this.#file = file;
    this.#records = content.records;
    this.#forgotten = content.forgotten;
    this.notices = content.notices;
    this.#release = release;
  }

  /** The first write of a run: a new file where there was none, a smaller one where much of it is past. */
  async begin(): Promise<void> {
    try {
      const over = this.#forget();
      for (const record of this.#records.values()) this.#count(record.invocationId, putLine(record).length);
      const damaged = this.notices.length > 0;
      if (this.#file.size === 0) this.#pending = [headLine()];
      else if (over || damaged || this.#file.size > this.#liveBytes + 65_536) this.#rewrite = true;
      pruneSpools(this.#spoolFolder, this.#records, new Set(this.#spools.keys()));
      await this.#commitOnce();
    } catch (error) {
      this.#file.close();
      throw error;
    }
  }

  load(invocationId: string): JournalRecord | null {
    return this.#records.get(invocationId) ?? null;
  }

  all(): readonly JournalRecord[] {
    return [...this.#records.values()];
  }

  forgotten(invocationId: string): boolean {
    return this.#forgotten.has(invocationId);
  }

  put(record: JournalRecord): void {
    this.#open();
    const checked = readRecord(record, sha256);
    if (!checked.ok) throw new GateError("internal", `A record cannot be kept: ${checked.error}`);
    const line = putLine(record);
    this.#records.set(record.invocationId, record);
    this.#forgotten.delete(record.invocationId);
    this.#pending.push(line);
    this.#count(record.invocationId, line.length);
    if (record.phase === "ACKNOWLEDGED") this.#forget();
  }

  commit(): Promise<void> {
    if (this.#running === null) {
      if (!this.#dirty()) return Promise.resolve();
      this.#running = this.#commitOnce().finally(() => {
        this.#running = null;
      });
      return this.#running;
    }
    // Everything that comes while the disk is at work waits for one sync together.
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = null;
        return this.commit();
      });
    return this.#next;
  }

  spool(invocationId: string, jobName: string): CommittedSpool {
    this.#open();
    if (!/^[0-9a-f]{32}$/.test(invocationId) || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(jobName))
      throw new GateError("internal", `No spool can be named after ${invocationId} and ${jobName}`);
    const path = `${this.#spoolFolder}/${invocationId}-${jobName}`;
    const known = this.#spools.get(path);
    if (known !== undefined) {
      known.keep();
      return known;
    }
    const spool = openSpool(path, () => this.#spools.delete(path));
    if (spool.fresh) this.#spoolFolderDirty = true;
    this.#spools.set(path, spool);
    return spool;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.commit();
      await this.commit();
    } finally {
      this.#closed = true;
      for (const spool of [...this.#spools.values()]) spool.end();
      this.#file.close();
      this.#release();
    }
  }

  #count(invocationId: string, bytes: number): void {
    this.#liveBytes += bytes - (this.#lengths.get(invocationId) ?? 0);
    if (bytes > 0) this.#lengths.set(invocationId, bytes);
    else this.#lengths.delete(invocationId);
  }

  #open(): void {
    if (this.#closed) throw new GateError("internal", "The journal is closed");
  }

  #dirty(): boolean {
    return (
      this.#pending.length > 0 ||
      this.#rewrite ||
      this.#spoolFolderDirty ||
      [...this.#spools.values()].some((spool) => spool.dirty)
    );
  }

  /** Output first: a record on the disk never speaks of output that is not there. */
  async #commitOnce(): Promise<void> {
    const lines = this.#pending;
    this.#pending = [];
    try {
      const waits = [...this.#spools.values()].filter((spool) => spool.dirty).map((spool) => spool.sync());
      if (this.#spoolFolderDirty) {
        this.#spoolFolderDirty = false;
        waits.push(syncFolder(this.#spoolFolder));
      }
      await allOf(waits);
      if (this.#rewrite || this.#file.size > Math.max(COMPACT_BYTES, this.#liveBytes * COMPACT_FACTOR))
        await this.#writeAnew();
      else if (lines.length > 0) {
        this.#file.append(joined(lines));
        lines.length = 0;
        await this.#syncFile();
      }
    } catch (error) {
      // Whatever was not written is written with the next commit, which may find room again.
      this.#pending = [...lines, ...this.#pending];
      this.#spoolFolderDirty = true;
      throw error;
    }
  }

  async #syncFile(): Promise<void> {
    try {
      await this.#file.sync();
    } catch (error) {
      this.#rewrite = true;
      throw error;
    }
  }

  async #writeAnew(): Promise<void> {
    // Lines that come while the new file is made are in it or behind it, never lost.
    const lines = [...allLines(this.#records.values(), this.#forgotten)];
    await replaceDurably(this.#path, lines);
    const old = this.#file;
    this.#file = openDurable(this.#path);
    old.close();
    this.#rewrite = false;
    pruneSpools(this.#spoolFolder, this.#records, new Set(this.#spools.keys()));
  }

  /** Lets go of what was acknowledged long ago, but for its ids. */
  #forget(): boolean {
    const over = superfluous(this.#records.values());
    if (over.length === 0) return false;
    for (const id of over) {
      this.#records.delete(id);
      this.#count(id, 0);
      this.#forgotten.add(id);
    }
    for (const id of this.#forgotten) {
      if (this.#forgotten.size <= MOST_FORGOTTEN) break;
      this.#forgotten.delete(id);
    }
    this.#pending.push(forgetLine(over));
    return true;
  }
}

/** Waits for all, also where one fails, and then fails as the first of them did. */
async function allOf(waits: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(waits))
    if (outcome.status === "rejected") throw outcome.reason;
}

function joined(lines: readonly Uint8Array[]): Uint8Array {
  if (lines.length === 1) return lines[0] as Uint8Array;
  const all = new Uint8Array(lines.reduce((sum, line) => sum + line.length, 0));
  let at = 0;
  for (const line of lines) {
    all.set(line, at);
    at += line.length;
  }
  return all;
}
