import { MAX_FRAME_BYTES } from "../bridge/wire/line.ts";
import type { LineSocket } from "../host/line-socket.ts";
import { connectUnix } from "../host/socket.ts";
import { cancelRequestLine } from "./cancel-request.ts";
import type { ClientHost, ClientOptions } from "./client.ts";

/** Time that a cancelled evaluation has to end before the client leaves it. */
const CANCEL_PATIENCE_MS = 60_000;

export interface Control {
  /** The user left; the evaluation goes on. */
  readonly detached: () => boolean;
  readonly end: () => void;
}

/** First interrupt or timeout: the evaluation is cancelled and its end waited for. Second: the client leaves. */
export function watchUser(
  options: ClientOptions,
  id: string,
  socket: LineSocket,
  host: ClientHost,
  say: (text: string) => void,
): Control {
  let cancelled = false;
  let detached = false;
  const stops: (() => void)[] = [];
  const leave = (why: string) => {
    detached = true;
    say(`${why} The next call gets its result.`);
    socket.destroy();
  };
  const cancel = (why: string) => {
    cancelled = true;
    say(`${why}; cancelling the evaluation. Interrupt once more to leave it alone.`);
    void cancelRemotely(options.socketPath, id, say);
    stops.push(
      host.after(CANCEL_PATIENCE_MS, () =>
        leave(`The evaluation did not end within ${CANCEL_PATIENCE_MS / 1000} s of being cancelled.`),
      ),
    );
  };
  stops.push(
    host.onInterrupt(() => {
      if (!cancelled) cancel("Interrupted");
      else if (!detached) leave("Left the evaluation, which goes on until it is cancelled.");
    }),
  );
  const { timeoutS } = options;
  if (timeoutS !== null) {
    stops.push(
      host.after(timeoutS * 1000, () => {
        if (!cancelled) cancel(`The timeout of ${timeoutS} s is over`);
      }),
    );
  }
  return {
    detached: () => detached,
    end: () => {
      for (const stop of stops) stop();
    },
  };
}

async function cancelRemotely(socketPath: string, id: string, say: (text: string) => void): Promise<void> {
  try {
    const socket = await connectUnix(socketPath);
    await socket.send(new TextEncoder().encode(cancelRequestLine(id)), 5000);
    await socket.readLine(MAX_FRAME_BYTES, 30_000);
    socket.destroy();
  } catch (error) {
    say(`the cancellation did not reach the bridge (${(error as { code?: string }).code ?? error})`);
  }
}
