import type { ErrorFrames, Frame } from "../bridge/types.ts";
import { cutOutput, cutText, encodeFrame } from "../bridge/wire/frames.ts";
import type { LineSocket, Sent, SentNote } from "../host/line-socket.ts";
import type { Evaluation } from "./evaluation.ts";
import { nextPart, type OutputPart, spoken } from "./output.ts";

/** Bytes of output in one frame: as many characters at most, and few enough for a line of the client's limit. */
const CHUNK_BYTES = 65_536;

const encoder = new TextEncoder();

/** A client that a daemon answers: frames go out one after another, and the first that does not ends it. */
export class Client {
  /** Set when the client left or takes nothing any more. */
  gone: Sent | null = null;

  constructor(
    readonly socket: LineSocket,
    readonly errorFrames: ErrorFrames,
    readonly stallMs: number,
  ) {}

  /** False when the client is gone. */
  async send(frame: Frame, note?: SentNote): Promise<boolean> {
    if (this.gone !== null) return false;
    const bytes = encoder.encode(encodeFrame(frame, this.errorFrames));
    const sent = await this.socket.send(bytes, this.stallMs, note);
    if (sent !== "sent") this.gone = sent;
    return this.gone === null;
  }

  /** A line for the client's stderr. */
  say(text: string): Promise<boolean> {
    return this.send({ type: "stderr", data: spoken(text) });
  }

  /** The diagnosis on stderr first, since one of the two forms of an error has no message. */
  async refuse(error: string, message: string): Promise<void> {
    await this.say(message);
    await this.send({ type: "error", error, message });
  }
}

/**
 * Hands an evaluation's output to a client as it becomes durable, until it is over and all is handed out, or the client
 * is gone. Each byte goes out once: how far it went is noted just before the kernel gets the frame, and taken back where
 * it took none.
 */
export async function deliver(evaluation: Evaluation, client: Client): Promise<boolean> {
  const { output } = evaluation;
  let wake: () => void = () => {};
  let changed = false;
  const stop = output.onChange(() => {
    changed = true;
    wake();
  });
  void client.socket.closed.then(() => {
    changed = true;
    wake();
  });
  try {
    for (;;) {
      if (client.gone === null && client.socket.isClosed) client.gone = "gone";
      if (client.gone !== null) return false;
      changed = false;
      const over = evaluation.outcome !== null;
      const next = nextPart(output);
      if (next === null) {
        if (over) return true;
        if (!changed)
          await new Promise<void>((done) => {
            wake = done;
          });
        continue;
      }
      if (next.kind === "notice") {
        const { part } = next;
        for (const data of cutText(part.data)) {
          if (await client.send({ type: "stderr", data })) part.told = true;
        }
        continue;
      }
      if (!(await handOut(next.part, next.upTo, over || next.part.sealed, client)) && !changed && !over) {
        // Half a character: the rest of it is not there yet.
        await new Promise<void>((done) => {
          wake = done;
        });
      }
    }
  } finally {
    stop();
  }
}

/** Sends one chunk; false when there is no whole character to send. */
async function handOut(part: OutputPart, upTo: number, isLast: boolean, client: Client): Promise<boolean> {
  const from = part.spool.delivered;
  const bytes = part.spool.read(from, Math.min(CHUNK_BYTES, upTo - from));
  const [piece] = cutOutput(bytes, isLast && from + bytes.length === upTo);
  if (piece === undefined) return false;
  await client.send(
    { type: "stdout", data: piece.data },
    {
      given: () => part.spool.markDelivered(from + piece.bytes),
      undo: () => part.spool.markDelivered(from),
    },
  );
  return true;
}
