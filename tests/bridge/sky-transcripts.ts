/** What SkyPilot 0.13.0 over Slurm 22.05 printed: command, exit code, stdout, stderr (paths shortened). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LogReader, type LogSaid } from "../../src/bridge/evidence/log-reader.ts";

export interface Transcript {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function transcript(name: string): Transcript {
  const text = readFileSync(join(import.meta.dir, "../fixtures/bridge/sky", `${name}.txt`), "utf8");
  const found =
    /^\$ [\s\S]*?\n# \S+ rc=(\d+) seconds=[\d.]+\n--- stdout\n([\s\S]*)--- stderr\n([\s\S]*)$/.exec(text);
  if (found === null) throw new Error(`${name} is no transcript`);
  return { exitCode: Number(found[1]), stdout: found[2] ?? "", stderr: found[3] ?? "" };
}

/** The log in a transcript as `sky logs` prints it; of an attached exec, with the announcement it does not have. */
export function logOf(name: string): { text: string; clusterName: string; jobId: number } {
  const { stdout } = transcript(name);
  const head = /Tailing logs of job (\d+) on cluster '([^']+)'/.exec(stdout);
  if (head !== null) return { text: stdout, jobId: Number(head[1]), clusterName: head[2] ?? "" };
  const jobId = Number(/Job submitted, ID: (\d+)/.exec(stdout)?.[1]);
  const from = stdout.indexOf("\x1b[2m├── ");
  const until = stdout.indexOf("\n📋 Useful Commands");
  const text = stdout.slice(from, until === -1 ? undefined : until);
  return {
    text: `\x1b[33mTailing logs of job ${jobId} on cluster 'c'...\x1b[0m\n${text}`,
    jobId,
    clusterName: "c",
  };
}

export const NONCE = "0123456789abcdef0123456789abcdef";

/** Reads a log in chunks of the given sizes (the last one again and again). */
export function readLog(
  bytes: string | Uint8Array,
  options: { clusterName?: string; jobId?: number; final?: boolean; sizes?: readonly number[] } = {},
): { out: string; bytes: Buffer; said: LogSaid } {
  const data = typeof bytes === "string" ? Buffer.from(bytes) : Buffer.from(bytes);
  const reader = new LogReader({
    clusterName: options.clusterName ?? "c",
    jobId: options.jobId ?? 4,
    nonce: NONCE,
  });
  const pieces: Buffer[] = [];
  const keep = (piece: Uint8Array) => void pieces.push(Buffer.from(piece));
  const sizes = options.sizes ?? [data.length || 1];
  for (let at = 0, round = 0; at < data.length; round++) {
    const size = Math.max(1, sizes[Math.min(round, sizes.length - 1)] ?? 1);
    // A copy that is overwritten afterwards: what was handed on must not need it any longer.
    const chunk = Uint8Array.from(data.subarray(at, at + size));
    reader.take(chunk, keep);
    chunk.fill(0x21);
    at += size;
  }
  const said = reader.end(options.final ?? true, keep);
  const all = Buffer.concat(pieces);
  return { out: all.toString(), bytes: all, said };
}
