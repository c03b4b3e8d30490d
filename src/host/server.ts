import { timingSafeEqual } from "node:crypto";
import { chmodSync } from "node:fs";
import { watchCrowd } from "./crowd.ts";
import { removeQuietly } from "./remove.ts";
import { probeUnix } from "./socket.ts";

/** Where a server listens. */
export type Listen =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

export interface HttpRequest {
  readonly method: string;
  /** Without query. */
  readonly path: string;
  header(name: string): string | null;
  /** The body as text; rejects when the client goes away. */
  body(): Promise<string>;
}

export interface HttpReply {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ServerOptions {
  readonly listen: Listen;
  /** Permission bits of a unix socket; absent = what the umask leaves. */
  readonly socketMode?: number;
  /** PEM texts. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** A larger body is answered with 413 and not read. */
  readonly maxBodyBytes: number;
  /** Seconds that an answer may take: a connection without a byte for longer is closed. */
  readonly idleTimeoutS: number;
  readonly answer: (request: HttpRequest) => Promise<HttpReply>;
  /** Takes a line about the server itself; absent = nobody reads it. */
  readonly tell?: (line: string) => void;
}

/** Seconds that a connection may be open without a request under way (TCP; a unix socket has one limit for both). */
const SILENT_S = 10;

export interface RunningServer {
  /** `http://127.0.0.1:18765`, `unix:/run/x.sock`. */
  readonly address: string;
  /** Takes no new connections and waits for the answers under way, at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Starts an HTTP server. Throws what the system says (address in use, permission, a bad certificate). */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { listen, tls, answer, idleTimeoutS: idleTimeout } = options;
  let underWay = 0;
  let idle: (() => void) | null = null;
  const common = {
    maxRequestBodySize: options.maxBodyBytes,
    development: false,
    fetch: async (request: Request, server: Bun.Server<undefined>) => {
      underWay++;
      try {
        if (listen.kind === "tcp") server.timeout(request, idleTimeout);
        const reply = await answer({
          method: request.method,
          path: pathOf(request.url),
          header: (name) => request.headers.get(name),
          body: () => request.text(),
        });
        const headers = { "content-type": reply.contentType, ...reply.headers };
        return new Response(reply.body, { status: reply.status, headers });
      } finally {
        underWay--;
        if (underWay === 0) idle?.();
      }
    },
    // Only a client that goes away while its body is read comes here.
    error: () => new Response("", { status: 400 }),
  };
  // The types keep it from a unix socket, but without it an answer that takes 10 s is cut off there.
  const unixOnly: object = { idleTimeout };
  if (listen.kind === "unix") await removeStaleSocket(listen.path);
  const server =
    listen.kind === "unix"
      ? underMode(options.socketMode, () => Bun.serve({ ...common, unix: listen.path, ...unixOnly }))
      : Bun.serve({
          ...common,
          hostname: listen.host,
          port: listen.port,
          // Outside development Bun shares a port with whoever else asks for it.
          reusePort: false,
          idleTimeout: SILENT_S,
          ...(tls === null ? {} : { tls }),
        });
  const endWatch = watchCrowd(() => server.closeIdleConnections(), options.tell ?? (() => {}));
  if (listen.kind === "unix" && options.socketMode !== undefined) chmodSync(listen.path, options.socketMode);
  const address =
    listen.kind === "unix"
      ? `unix:${listen.path}`
      : `${tls === null ? "http" : "https"}://${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${server.port}`;
  return {
    address,
    stop: async (graceMs) => {
      endWatch();
      const stopped = server.stop(false);
      if (underWay > 0) await within(graceMs, [new Promise<void>((done) => (idle = done))]);
      // Connections that only wait for another request would keep it open for as long as their clients like.
      await within(500, [server.stop(true), stopped]);
      if (listen.kind === "unix") removeQuietly(listen.path);
    },
  };
}

/** The first of several to be done, or the time; nothing of the timer is left, which would keep the process. */
async function within(ms: number, several: readonly Promise<unknown>[]): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  await Promise.race([...several, late]);
  clearTimeout(timer);
}

function pathOf(url: string): string {
  try {
    return new URL(url).pathname;
  } catch {
    return "/";
  }
}

/** Makes a socket that has its mode from the first moment on; without a mode it has what the umask leaves. */
function underMode<T>(mode: number | undefined, bind: () => T): T {
  if (mode === undefined) return bind();
  const before = process.umask(0o777 & ~mode);
  try {
    return bind();
  } finally {
    process.umask(before);
  }
}

/** A socket that nobody listens on is what a killed server left; any other stays, and so does what is no socket. */
async function removeStaleSocket(path: string): Promise<void> {
  // One with a full queue lets us wait: it lives.
  if ((await probeUnix(path)) === "dead") removeQuietly(path);
}

/** Resolves when the process is asked to end (SIGTERM, SIGINT). */
export function stopSignal(): Promise<string> {
  return new Promise((done) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => done(name));
  });
}

/** Whether two secrets are equal, in a time that does not tell how much of them is. */
export function sameSecret(one: string, other: string): boolean {
  const hash = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest();
  return timingSafeEqual(hash(one), hash(other));
}

/** Bytes of memory that the process holds. */
export function residentBytes(): number {
  return process.memoryUsage.rss();
}
