import { afterAll } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const TLS = join(import.meta.dir, "../fixtures/tls");
export const CERTIFICATE = join(TLS, "localhost.cert.pem");

/** What a server saw of one request. */
export interface Seen {
  readonly path: string;
  readonly authorization: string | null;
  readonly headers: Record<string, string>;
}

export interface Hub {
  readonly url: string;
  readonly port: number;
  readonly seen: Seen[];
}

export type Answering = (path: string, seen: Seen) => Response | Promise<Response>;

const servers: { stop(force: boolean): unknown }[] = [];
afterAll(() => {
  for (const server of servers) server.stop(true);
});

/** A hub on loopback that notes what it is asked. */
export function hub(
  answer: Answering,
  options: { readonly tls?: boolean; readonly host?: string } = {},
): Hub {
  const seen: Seen[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: options.host ?? "127.0.0.1",
    idleTimeout: 60,
    ...(options.tls
      ? {
          tls: {
            cert: readFileSync(CERTIFICATE, "utf8"),
            key: readFileSync(join(TLS, "localhost.key.pem"), "utf8"),
          },
        }
      : {}),
    fetch: (request) => {
      const path = new URL(request.url).pathname;
      const one = {
        path,
        authorization: request.headers.get("authorization"),
        headers: Object.fromEntries(request.headers),
      };
      seen.push(one);
      return answer(path, one);
    },
  });
  servers.push(server);
  const port = server.port!;
  return { url: `${options.tls ? "https" : "http"}://127.0.0.1:${port}`, port, seen };
}

export const COMMIT = "c0ffee".padEnd(40, "0");

/** A 200 with the headers the hub gives. */
export function given(body: string, headers: Record<string, string> = {}): Response {
  return new Response(body, {
    headers: { "content-type": "application/json", "x-repo-commit": COMMIT, ...headers },
  });
}

export function status(code: number, errorCode?: string): Response {
  return new Response("Entry not found", {
    status: code,
    headers: errorCode === undefined ? {} : { "x-error-code": errorCode },
  });
}

export function moved(to: string, code = 307): Response {
  return new Response("", { status: code, headers: { location: to, "x-repo-commit": COMMIT } });
}
