import { failureKind } from "../bridge/evidence/failure-text.ts";
import { LogReader } from "../bridge/evidence/log-reader.ts";
import { startChild } from "../host/child-stream.ts";
import type { LogsEnd, LogsOptions } from "./types.ts";

/** Exit codes with which `sky logs` leaves a job that is over. */
const OVER = [0, 100, 103];
const MAX_CAUSES = 12;

/** Masks secrets in a text that comes in pieces. */
export interface StreamRedactor {
  push(text: string): string;
  end(): string;
}

/** Follows a job's log from its start to its end, one piece at a time, as fast as its consumer takes it. */
export async function followLogs(
  program: string,
  place: Parameters<typeof startChild>[1],
  redactor: StreamRedactor,
  options: LogsOptions,
): Promise<LogsEnd> {
  const { clusterName, jobId, nonce, signal } = options;
  const child = startChild([program, "logs", clusterName, String(jobId), "--tail", "0"], place);
  const stop = () => child.kill();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  const causes: string[] = [];
  const reader = new LogReader({ clusterName, jobId, nonce });
  const pieces: Uint8Array[] = [];
  const keep = (piece: Uint8Array) => void pieces.push(piece);
  const handOn = async () => {
    if (pieces.length === 0) return;
    const whole = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    pieces.length = 0;
    await options.onOutput(whole);
  };
  const readOutput = async () => {
    for await (const chunk of child.stdout) {
      reader.take(chunk, keep);
      await handOn();
      if (signal.aborted) break;
    }
  };
  const readErrors = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) heed(redactor.push(decoder.decode(chunk, { stream: true })));
    heed(redactor.push(decoder.decode()) + redactor.end());
  };
  const heed = (masked: string) => {
    if (masked === "") return;
    options.onStderr(masked);
    for (const line of masked.split("\n"))
      if (failureKind(line) !== "other" && causes.length < MAX_CAUSES) causes.push(line.trim().slice(0, 300));
  };
  try {
    const [, , ended] = await Promise.all([readOutput(), readErrors(), child.ended]);
    const said = reader.end(OVER.includes(ended.exitCode ?? -1), keep);
    await handOn();
    return {
      exitCode: ended.exitCode,
      finished: said.finished,
      markerExit: said.exitCode,
      stopped: said.stopped,
      listedExit: said.listedExit,
      artifact: said.artifact,
      files: said.files,
      causes: [...said.causes, ...causes],
    };
  } finally {
    signal.removeEventListener("abort", stop);
    child.kill();
  }
}
