import { crcText } from "../bridge/journal/crc.ts";
import { type DurableFile, type Mark, openDurable, openMark } from "../host/durable.ts";
import { GateError } from "../lib/errors.ts";
import type { Spool } from "./types.ts";

/** A spool as the journal's commit sees it. */
export interface CommittedSpool extends Spool {
  /** Puts what is still in memory into the file, and resolves when the disk has it. */
  sync(): Promise<void>;
  /** One more has it open: it is closed when each has. */
  keep(): void;
  /** Closes it whoever has it open. */
  end(): void;
  /** Whether the disk lacks something. */
  readonly dirty: boolean;
  /** Made in this run, so its name in the folder has to reach the disk too. */
  readonly fresh: boolean;
}

/** Bytes gathered before they are written. */
const CHUNK_BYTES = 262_144;
/** Bytes held while the disk takes none; with more, appending is refused. */
const MOST_HELD_BYTES = 8_388_608;

/**
 * Opens the spool that lies at `path`; how much of it was delivered stands beside it in `path.delivered`, written
 * over without waiting. `onClosed` is called when the files are closed. Throws a GateError when the disk refuses.
 */
export function openSpool(path: string, onClosed: () => void): CommittedSpool {
  const file = openDurable(path);
  const mark = openMark(`${path}.delivered`);
  const fresh = file.size === 0;
  const held = new HeldBytes();
  let delivered = Math.min(readDelivered(mark), file.size);
  // What a killed daemon had written may still be in the page cache only.
  let syncedBytes = 0;
  let broken: Error | null = null;
  let users = 1;
  let closed = false;

  const flush = () => held.into(file);
  const endNow = () => {
    if (closed) return;
    closed = true;
    file.close();
    mark.close();
    onClosed();
  };
  return {
    fresh,
    get bytes() {
      return file.size + held.bytes;
    },
    get delivered() {
      return delivered;
    },
    get dirty() {
      return held.bytes > 0 || file.size > syncedBytes;
    },
    append(chunk) {
      held.add(chunk);
      if (held.bytes < CHUNK_BYTES) return;
      try {
        flush();
      } catch (error) {
        // The commit that follows tells; until there is room again only so much is held.
        if (held.bytes > MOST_HELD_BYTES) throw error;
      }
    },
    read(from, maxBytes) {
      const to = Math.min(from + maxBytes, file.size + held.bytes);
      if (to > file.size) flush();
      return file.read(from, to);
    },
    markDelivered(bytes) {
      if (bytes > file.size + held.bytes)
        throw new GateError("internal", `${bytes} delivered bytes are more than ${path} has`);
      if (bytes === delivered) return;
      mark.write(encodeDelivered(bytes));
      delivered = bytes;
    },
    keep() {
      users++;
    },
    end() {
      users = 0;
      if (held.bytes === 0 && file.size === syncedBytes) endNow();
    },
    async sync() {
      // After a failed sync the kernel takes the lost pages for written: no later sync can be believed.
      if (broken !== null) throw broken;
      flush();
      const size = file.size;
      try {
        await file.sync();
      } catch (error) {
        broken = error as Error;
        throw error;
      }
      syncedBytes = Math.max(syncedBytes, size);
      if (users === 0 && !held.bytes && file.size === syncedBytes) endNow();
    },
    close() {
      users = Math.max(0, users - 1);
      // What is not on the disk yet is closed after the next commit.
      if (users === 0 && held.bytes === 0 && file.size === syncedBytes) endNow();
    },
  };
}

/** Bytes on their way into a file, gathered into few large writes. */
class HeldBytes {
  #buffer: Uint8Array | null = null;
  #used = 0;

  get bytes(): number {
    return this.#used;
  }

  add(chunk: Uint8Array): void {
    const wanted = this.#used + chunk.length;
    if (this.#buffer === null || this.#buffer.length < wanted) {
      const grown = new Uint8Array(Math.max(CHUNK_BYTES * 2, wanted));
      if (this.#buffer !== null) grown.set(this.#buffer.subarray(0, this.#used));
      this.#buffer = grown;
    }
    this.#buffer.set(chunk, this.#used);
    this.#used = wanted;
  }

  into(file: DurableFile): void {
    if (this.#buffer === null || this.#used === 0) return;
    file.append(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
    if (this.#buffer.length > CHUNK_BYTES * 4) this.#buffer = null;
  }
}

const DIGITS = 16;

function encodeDelivered(bytes: number): Uint8Array {
  const digits = new TextEncoder().encode(String(bytes).padStart(DIGITS, "0"));
  return new TextEncoder().encode(`${String(bytes).padStart(DIGITS, "0")} ${crcText(digits)}\n`);
}

/** 0 where nothing or nothing whole was written. */
function readDelivered(mark: Mark): number {
  const bytes = mark.read(DIGITS + 10);
  const [digits = "", crc] = new TextDecoder().decode(bytes).trim().split(" ");
  if (!/^\d{16}$/.test(digits) || crcText(new TextEncoder().encode(digits)) !== crc) return 0;
  return Number(digits);
}
