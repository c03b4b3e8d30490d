/** Requests over connections that stay open, each sending its next one when the last is answered. */

export interface Load {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Bodies as whole HTTP requests: what is sent costs the load nothing while it runs. */
export function requestsOf(bodies: readonly string[], path = "/"): Buffer[] {
  return bodies.map((body) => {
    const bytes = Buffer.from(body);
    const head = `POST ${path} HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\nContent-Length: ${bytes.length}\r\n\r\n`;
    return Buffer.concat([Buffer.from(head), bytes]);
  });
}

interface Client {
  /** What has come of the answer under way, and how much of it there is; 0 until its head is here. */
  got: Buffer;
  due: number;
  sentMs: number;
  unsent: Buffer;
}

const HEAD_END = Buffer.from("\r\n\r\n");

/** Sends `count` requests, the list over and over, and calls `mark` once `markAt` are answered. Throws when a connection breaks. */
export async function load(
  url: URL,
  requests: readonly Buffer[],
  {
    connections,
    count,
    markAt,
    mark,
  }: { connections: number; count: number; markAt?: number; mark?: () => void },
): Promise<Load> {
  const waitsMs = new Float64Array(count);
  const statuses: Record<string, number> = {};
  let sent = 0;
  let answered = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();

  const push = (socket: Bun.Socket<Client>) => {
    const { data } = socket;
    const wrote = socket.write(data.unsent);
    data.unsent = data.unsent.subarray(Math.max(0, wrote));
  };
  const next = (socket: Bun.Socket<Client>) => {
    if (sent === count) return;
    socket.data.unsent = requests[sent++ % requests.length]!;
    socket.data.sentMs = performance.now();
    push(socket);
  };
  const handlers: Bun.SocketHandler<Client> = {
    open: next,
    drain: push,
    data: (socket, chunk) => {
      const { data } = socket;
      data.got = data.got.length === 0 ? Buffer.from(chunk) : Buffer.concat([data.got, chunk]);
      if (data.due === 0) {
        const end = data.got.indexOf(HEAD_END);
        if (end < 0) return;
        const head = data.got.toString("latin1", 0, end);
        const length = /\r\ncontent-length: *(\d+)/i.exec(head);
        if (length === null) return reject(new Error(`an answer without a length: ${head}`));
        data.due = end + HEAD_END.length + Number(length[1]);
        const status = head.slice(9, 12);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      if (data.got.length < data.due) return;
      waitsMs[answered++] = performance.now() - data.sentMs;
      data.got = Buffer.alloc(0);
      data.due = 0;
      if (answered === markAt) mark?.();
      if (answered === count) resolve();
      else next(socket);
    },
    close: () => {
      if (answered < count) reject(new Error(`a connection closed after ${answered} answers`));
    },
    error: (_, error) => reject(error),
  };
  const startMs = performance.now();
  const sockets = await Promise.all(
    Array.from({ length: connections }, () =>
      Bun.connect<Client>({
        hostname: url.hostname,
        port: Number(url.port),
        socket: handlers,
        data: { got: Buffer.alloc(0), due: 0, sentMs: 0, unsent: Buffer.alloc(0) },
      }),
    ),
  );
  await promise;
  const seconds = (performance.now() - startMs) / 1000;
  for (const socket of sockets) socket.end();
  waitsMs.sort();
  const part = (share: number) => waitsMs[Math.min(count - 1, Math.floor(count * share))]!;
  return {
    perSecond: count / seconds,
    p50Ms: part(0.5),
    p99Ms: part(0.99),
    maxMs: waitsMs[count - 1]!,
    statuses,
  };
}
