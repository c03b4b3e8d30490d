import { tokenFileName } from "../bridge/names.ts";
import type { Declared, EvaluationKind } from "../bridge/types.ts";
import { decodeBase64, FrameReader } from "../bridge/wire/client.ts";
import { MAX_FRAME_BYTES } from "../bridge/wire/line.ts";
import { encodeAck, encodeRequest, isArtifactPath, isInvocationId } from "../bridge/wire/request.ts";
import type { LineSocket } from "../host/line-socket.ts";
import { connectUnix } from "../host/socket.ts";
import type { Result } from "../lib/result.ts";
import { type Control, watchUser } from "./client-user.ts";
import { IncomingFiles } from "./incoming-files.ts";

/** How the client ends, as the public one does. */
export type ClientExit = 0 | 1 | 2 | 130;

/** What the client needs of the machine it runs on. */
export interface ClientHost {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Whether whoever read the output went away. */
  readonly isOutputGone: () => boolean;
  readonly readToken: (path: string) => string | null;
  /** Both durable; the reason when they could not be done. */
  readonly writeFile: (path: string, bytes: Uint8Array) => string | null;
  readonly removeFile: (path: string) => string | null;
  /** A file below a folder of the caller's, written as its bytes come; the reason where it cannot be. */
  readonly beginFile: (folder: string, path: string) => Result<IncomingFile, string>;
  readonly makeFolder: (path: string) => string | null;
  readonly newId: () => string;
  readonly sha256Text: (text: string) => string;
  readonly sha256Bytes: (bytes: Uint8Array) => string;
  /** Calls back at each interrupt of the user; the returned function ends that. */
  readonly onInterrupt: (react: () => void) => () => void;
  readonly after: (ms: number, work: () => void) => () => void;
}

export interface ClientOptions {
  readonly kind: EvaluationKind;
  /** Empty, or the benchmark's output flag and path. */
  readonly arguments: readonly string[];
  readonly socketPath: string;
  /** Folder that keeps the id of a request until its result is acknowledged. */
  readonly callerState: string;
  readonly timeoutS: number | null;
  /** Files to be returned besides, and the folder they are put into; absent = none. */
  readonly declared?: { readonly asked: Declared; readonly folder: string };
}

/** A declared file on its way into the caller's folder. */
export interface IncomingFile {
  /** Both return why it could not be done, or null. */
  readonly write: (bytes: Uint8Array) => string | null;
  /** Gives it its name where it is what was announced; whatever was there before is replaced. */
  readonly end: (size: number, sha256: string) => string | null;
  /** Removes what came of it. */
  readonly drop: () => void;
}

/** Whether these are arguments that a bridge takes: none, or a benchmark's flag and a framework's path. */
export function areSupported(kind: EvaluationKind, given: readonly string[]): boolean {
  if (given.length === 0) return true;
  return kind === "benchmark" && given.length === 2 && isArtifactPath(given[1]!);
}

/**
 * Asks a bridge for one evaluation and relays what it says, with the manners of the public client: the same tokens,
 * the same artifacts, the same exit codes (0 completed, 1 failed or no bridge, 130 cancelled, 2 anything else).
 */
export async function evaluate(options: ClientOptions, host: ClientHost): Promise<ClientExit> {
  const { kind, socketPath, callerState } = options;
  const say = (text: string) => host.err(`neurarch-gate evaluate: ${text}\n`);
  const artifacts = options.arguments.slice(1);
  const folder = host.makeFolder(callerState);
  if (folder !== null) {
    say(`the caller state folder ${callerState} cannot be made: ${folder}`);
    return 2;
  }
  const asked = options.declared?.asked;
  const tokenPath = `${callerState}/${tokenFileName(kind, options.arguments, host.sha256Text, asked)}`;
  const kept = host.readToken(tokenPath)?.trim() ?? "";
  const known = isInvocationId(kept);
  const id = known ? kept : host.newId();
  if (!known) {
    const unwritten = host.writeFile(tokenPath, new TextEncoder().encode(id));
    if (unwritten !== null) {
      say(`the token ${tokenPath} cannot be written: ${unwritten}`);
      return 2;
    }
  } else say(`going on with evaluation ${id.slice(0, 8)}, whose result an earlier call did not get.`);
  let socket: LineSocket;
  try {
    socket = await connectUnix(socketPath);
  } catch (error) {
    say(`no bridge answers on ${socketPath} (${(error as { code?: string }).code ?? error}).`);
    return 1;
  }
  const declares = asked === undefined ? {} : { declared: asked };
  const request = encodeRequest({
    kind,
    invocationId: id,
    arguments: options.arguments,
    artifacts,
    ...declares,
  });
  const control = watchUser(options, id, socket, host, say);
  try {
    await socket.send(new TextEncoder().encode(request), null);
    const files = options.declared === undefined ? null : new IncomingFiles(options.declared, host);
    try {
      const wanted = { invocationId: id, artifacts, ...declares };
      return await relay(socket, { wanted, tokenPath, files }, host, say, control);
    } finally {
      files?.drop();
    }
  } finally {
    control.end();
    socket.destroy();
  }
}

/** Relays frames until the result; what ends it otherwise is exit 2, and the token stays. */
async function relay(
  socket: LineSocket,
  {
    wanted,
    tokenPath,
    files,
  }: {
    wanted: ConstructorParameters<typeof FrameReader>[0];
    tokenPath: string;
    files: IncomingFiles | null;
  },
  host: ClientHost,
  say: (text: string) => void,
  control: Control,
): Promise<ClientExit> {
  const id = wanted.invocationId;
  const reader = new FrameReader(wanted, host.sha256Bytes);
  let exit: ClientExit | null = null;
  let lastError = "";
  for (;;) {
    const line = await socket.readLine(MAX_FRAME_BYTES, null);
    if (control.detached()) return 130;
    if (line.kind !== "line") {
      say(
        line.kind === "closed"
          ? "the bridge closed without a result; the next call goes on with this evaluation."
          : "the bridge returned an invalid frame.",
      );
      return 2;
    }
    const read = reader.read(line.bytes);
    if (!read.ok) {
      say(`${read.error}.`);
      return 2;
    }
    const frame = read.value;
    if (exit !== null && frame.type !== "acked") {
      say("the bridge returned an invalid acknowledgement.");
      return 2;
    }
    switch (frame.type) {
      case "stdout":
        host.out(frame.data);
        if (host.isOutputGone()) {
          say("nobody reads the output any more; the next call goes on with this evaluation.");
          return 2;
        }
        break;
      case "stderr":
        host.err(frame.data);
        lastError = frame.data;
        break;
      case "artifact": {
        const { path, dataBase64 } = frame.artifact;
        const unwritten = host.writeFile(path, decodeBase64(dataBase64)!);
        if (unwritten !== null) {
          say(`the result file ${path} cannot be written: ${unwritten}.`);
          return 2;
        }
        break;
      }
      case "file":
      case "file_data":
      case "files": {
        const unwritten = files?.take(frame) ?? null;
        if (unwritten === null) break;
        say(unwritten);
        return 2;
      }
      case "result":
        exit = EXITS[frame.status];
        await socket.send(new TextEncoder().encode(encodeAck(id)), null);
        break;
      case "acked": {
        if (exit === null) {
          say("the bridge acknowledged what it was not asked.");
          return 2;
        }
        const kept = host.removeFile(tokenPath);
        if (kept === null) return exit;
        say(`the token ${tokenPath} cannot be removed: ${kept}.`);
        return 2;
      }
      case "error":
        // The diagnosis stands on stderr already.
        say(
          frame.message === "" || lastError.includes(frame.message)
            ? `the bridge ended the call with ${frame.error}.`
            : `the bridge ended the call with ${frame.error}: ${frame.message}`,
        );
        return 2;
    }
  }
}

const EXITS = { COMPLETED: 0, APPLICATION_FAILED: 1, CANCELLED: 130 } as const;
