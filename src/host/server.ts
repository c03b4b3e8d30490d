import { timingSafeEqual } from "node:crypto";
import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import { connect } from "node:net";

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
  /** Seconds without a byte after which a connection is closed. */
  readonly idleTimeoutS: number;
  readonly answer: (request: HttpRequest) => Promise<HttpReply>;
}

export interface RunningServer {
  /** `http://127.0.0.1:18765`, `unix:/run/x.sock`. */
  readonly address: string;
  /** Takes no new connections and waits for the answers under way, at most `graceMs`. */
  stop(graceMs: number): Promise<void>;
}

/** Starts an HTTP server. Throws what the system says (address in use, permission, a bad certificate). */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { listen, tls, answer } = options;
  let underWay = 0;
  let idle: (() => void) | null = null;
  const common = {
    maxRequestBodySize: options.maxBodyBytes,
    development: false,
    fetch: async (request: Request) => {
      underWay++;
      try {
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
  if (listen.kind === "unix") await removeStaleSocket(listen.path);
  const { idleTimeoutS: idleTimeout } = options;
  const server =
    listen.kind === "unix"
      ? Bun.serve({ ...common, unix: listen.path })
      : Bun.serve({
          ...common,
          hostname: listen.host,
          port: listen.port,
          // Outside development Bun shares a port with whoever else asks for it.
          reusePort: false,
          idleTimeout,
          ...(tls === null ? {} : { tls }),
        });
  if (listen.kind === "unix" && options.socketMode !== undefined) chmodSync(listen.path, options.socketMode);
  const address =
    listen.kind === "unix"
      ? `unix:${listen.path}`
      : `${tls === null ? "http" : "https"}://${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${server.port}`;
  return {
    address,
    stop: async (graceMs) => {
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

/** A socket that nobody answers on is what a killed server left; one that answers stays, and so does anything else. */
async function removeStaleSocket(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return;
  const answered = await new Promise<boolean>((done) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", () => done(false));
  });
  if (!answered) removeQuietly(path);
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // it is gone already
  }
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
