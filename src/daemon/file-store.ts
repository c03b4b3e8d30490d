import type { DeclaredFile, JournalRecord } from "../bridge/types.ts";
import { feedFile, sha256, startDigest } from "../host/copy.ts";
import {
  namesIn,
  openDurable,
  privateFolder,
  removeFile,
  renameDurably,
  replaceDurably,
  sizeOf,
} from "../host/durable.ts";

/** Bytes of declared files of acknowledged evaluations that are kept, for a client whose `acked` was lost. */
const MOST_KEPT_BYTES = 1_000_000_000;
/** Read and handed out at a time: as base64 well below a frame. */
const PIECE_BYTES = 393_216;

type Known = Pick<DeclaredFile, "size" | "sha256">;

/** The declared files of a run in its state folder: each under its evaluation and its digest. */
export interface FileStore {
  has(invocationId: string, file: Known): boolean;
  /** Keeps a file whose digest was checked. Resolves when it is durable; throws a GateError. */
  put(invocationId: string, bytes: Uint8Array): Promise<void>;
  /** How much is there of a file that is being fetched. */
  partBytes(invocationId: string, file: Known): number;
  part(invocationId: string, file: Known): FilePart;
  /** Whether what is there is the file; only then has it its name, else nothing is left of it. */
  complete(invocationId: string, file: Known): Promise<boolean>;
  /** Whether the copy here still is what it was when it came. */
  isWhole(invocationId: string, file: Known): Promise<boolean>;
  /** The file in order, piece by piece. */
  pieces(invocationId: string, file: Known): Generator<Uint8Array>;
  /** Removes what no evaluation of the journal needs. Never throws. */
  prune(records: readonly JournalRecord[]): void;
}

/** A file that is being fetched: it only grows, and what came before a kill is gone on from. */
export interface FilePart {
  readonly bytes: number;
  append(bytes: Uint8Array): void;
  /** Resolves when all of it is on the disk. */
  end(): Promise<void>;
}

export function openFileStore(folder: string): FileStore {
  privateFolder(folder);
  const pathOf = (id: string, { sha256: digest }: Known) => `${folder}/${id}-${digest}`;
  const partOf = (id: string, file: Known) => `${pathOf(id, file)}.part`;
  const digestOf = async (path: string): Promise<string> => {
    const digest = startDigest();
    await feedFile(path, (piece) => digest.update(piece));
    return digest.hex();
  };
  return {
    // A name is given only to what is whole and on the disk.
    has: (id, file) => namesIn(folder).includes(`${id}-${file.sha256}`),
    put: (id, bytes) => replaceDurably(pathOf(id, { size: bytes.length, sha256: sha256(bytes) }), [bytes]),
    partBytes: (id, file) => sizeOf(partOf(id, file)),
    part(id, file) {
      const part = openDurable(partOf(id, file));
      return {
        get bytes() {
          return part.size;
        },
        append: (bytes) => part.append(bytes),
        async end() {
          try {
            await part.sync();
          } finally {
            part.close();
          }
        },
      };
    },
    async complete(id, file) {
      const path = partOf(id, file);
      if (sizeOf(path) === file.size && (await digestOf(path)) === file.sha256) {
        await renameDurably(path, pathOf(id, file));
        return true;
      }
      removeFile(path);
      return false;
    },
    async isWhole(id, file) {
      try {
        return (await digestOf(pathOf(id, file))) === file.sha256;
      } catch {
        return false;
      }
    },
    *pieces(id, file) {
      const whole = openDurable(pathOf(id, file));
      try {
        for (let at = 0; at < whole.size; at += PIECE_BYTES) yield whole.read(at, at + PIECE_BYTES);
      } finally {
        whole.close();
      }
    },
    prune(records) {
      const newestFirst = [...records].reverse();
      const byId = new Map(newestFirst.map((record, rank) => [record.invocationId, { record, rank }]));
      const rankOf = (name: string) => byId.get(name.slice(0, 32))?.rank ?? Number.POSITIVE_INFINITY;
      let kept = 0;
      for (const name of [...namesIn(folder)].sort((a, b) => rankOf(a) - rankOf(b))) {
        const phase = byId.get(name.slice(0, 32))?.record.phase;
        if (phase !== undefined && phase !== "ACKNOWLEDGED" && phase !== "PREPARED") continue;
        kept += sizeOf(`${folder}/${name}`);
        if (phase === "ACKNOWLEDGED" && !name.endsWith(".part") && kept <= MOST_KEPT_BYTES) continue;
        removeFile(`${folder}/${name}`);
      }
    },
  };
}
