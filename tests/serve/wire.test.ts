import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { body, type Server, serve } from "./server.ts";

/** Requests as bytes: what a broken client or a clever one sends, and what comes back, answer by answer. */
const POLICY = body("L4: 1").text;
const HEAD = "POST / HTTP/1.1\r\nHost: gate\r\n";
const LENGTH = `Content-Length: ${Buffer.byteLength(POLICY)}\r\n`;
const PLAIN = `${HEAD}${LENGTH}\r\n${POLICY}`;
const HEALTH = "GET /healthz HTTP/1.1\r\nHost: gate\r\n\r\n";
/** A second request hidden behind the first one: no row may get its answer. */
const HIDDEN = "GET /metrics HTTP/1.1\r\nHost: hidden\r\n\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n`;
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const END = "0\r\n\r\n";

let server: Server;
beforeAll(async () => {
  server = await serve();
});
afterAll(() => server.stop());

interface Got {
  /** Statuses of the answers, in their order. */
  readonly statuses: readonly number[];
  readonly text: string;
  readonly closed: boolean;
}

/** Sends parts one after the other; done when the server closes, or when `answers` have come and nothing more does. */
function send(parts: readonly string[], answers: number): Promise<Got> {
  const { hostname, port } = new URL(server.address);
  return new Promise((done) => {
    let text = "";
    let quiet: ReturnType<typeof setTimeout> | undefined;
    const socket = connect({ host: hostname, port: Number(port) });
    const statuses = () => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
    const end = (closed: boolean) => {
      clearTimeout(quiet);
      clearTimeout(limit);
      socket.destroy();
      done({ statuses: statuses(), text, closed });
    };
    const limit = setTimeout(() => end(false), 8_000);
    socket.on("data", (data) => {
      text += data.toString("latin1");
      clearTimeout(quiet);
      if (statuses().length >= answers) quiet = setTimeout(() => end(false), 250);
    });
    socket.on("error", () => end(true));
    socket.on("end", () => end(true));
    (async () => {
      for (const part of parts) {
        socket.write(Buffer.from(part, "latin1"));
        await Bun.sleep(30);
      }
    })();
  });
}

const ROWS: readonly (readonly [name: string, parts: readonly string[], statuses: readonly number[]])[] = [
  ["a body of a known length", [PLAIN], [200]],
  ["one request after the other", [PLAIN, PLAIN], [200, 200]],
  ["three at once", [PLAIN + PLAIN + HEALTH], [200, 200, 200]],
  ["a body in pieces", [PLAIN.slice(0, 90), PLAIN.slice(90, 200), PLAIN.slice(200)], [200]],
  ["a head in pieces", [HEAD.slice(0, 3), HEAD.slice(3), `${LENGTH}\r\n`, POLICY], [200]],
  ["chunks", [`${CHUNKED}\r\n${chunk(POLICY.slice(0, 50))}${chunk(POLICY.slice(50))}${END}`], [200]],
  ["chunks one by one", [`${CHUNKED}\r\n`, chunk(POLICY.slice(0, 9)), chunk(POLICY.slice(9)), END], [200]],
  // Bun takes no trailers: what stands there is no request of its own either.
  ["chunks with trailers", [`${CHUNKED}\r\n${chunk(POLICY)}0\r\nX-T: 1\r\n\r\n`], [200, 400]],
  ["a request in the trailers", [`${CHUNKED}\r\n${chunk(POLICY)}0\r\n${HIDDEN}`], [200, 400]],
  ["a chunk of no size", [`${CHUNKED}\r\nzz\r\nabc\r\n${END}`], [400]],
  ["a chunk without end", [`${CHUNKED}\r\nffffffffffffffff\r\nabc\r\n${END}`], [400]],
  ["chunks above the limit", [`${CHUNKED}\r\n${chunk("x".repeat(2_500_000)).repeat(2)}${END}`], [413]],
  [
    "chunks and a length, the shorter first",
    [`${CHUNKED}Content-Length: 6\r\n\r\n0\r\n\r\n${HIDDEN}`],
    [400],
  ],
  ["chunks and a length that agree", [`${CHUNKED}${LENGTH}\r\n${chunk(POLICY)}${END}`], [400]],
  ["two encodings", [`${CHUNKED}Transfer-Encoding: identity\r\n\r\n${chunk(POLICY)}${END}${HIDDEN}`], [400]],
  ["an encoding unknown", [`${HEAD}Transfer-Encoding: xchunked\r\n${LENGTH}\r\n${POLICY}${HIDDEN}`], [400]],
  [
    "an encoding with a space",
    [`${HEAD}Transfer-Encoding : chunked\r\n${LENGTH}\r\n${POLICY}${HIDDEN}`],
    [400],
  ],
  ["two lengths", [`${HEAD}Content-Length: 5\r\n${LENGTH}\r\n${POLICY}${HIDDEN}`], [400]],
  ...["5, 5", "-5", "+5", "0x5", "five", "", "99999999999999999999999"].map(
    (length) =>
      [
        `a length of ${length || "nothing"}`,
        [`${HEAD}Content-Length: ${length}\r\n\r\nhello${HIDDEN}`],
        [400],
      ] as const,
  ),
  ["a length above the limit", [`${HEAD}Content-Length: 50000000\r\n\r\nhello`], [413]],
  ["no length", [`${HEAD}\r\n`], [400]],
  ["a folded header", [`${HEAD}X: a\r\n b\r\n${LENGTH}\r\n${POLICY}`], [400]],
  ["a header with a zero byte", [`${HEAD}X: a\0b\r\n${LENGTH}\r\n${POLICY}`], [400]],
  ["a header of 100 kB", [`${HEAD}X: ${"y".repeat(100_000)}\r\n${LENGTH}\r\n${POLICY}`], [431]],
  ["2,000 headers", [`${HEAD}${"X: 1\r\n".repeat(2000)}${LENGTH}\r\n${POLICY}`], [431]],
  [
    "a client that asks before it sends",
    [`${HEAD}${LENGTH}Expect: 100-continue\r\n\r\n`, POLICY],
    [100, 200],
  ],
  [
    "one that asks for too much",
    [`${HEAD}Content-Length: 50000000\r\nExpect: 100-continue\r\n\r\n`],
    [100, 413],
  ],
  ["no host", [PLAIN.replace("Host: gate\r\n", "")], [400]],
  ["another version", [PLAIN.replace("HTTP/1.1", "HTTP/2.0")], [505]],
  ["a whole address", [PLAIN.replace("POST /", "POST http://elsewhere/")], [200]],
  ["dots in a path", [PLAIN.replace("POST /", "POST /x/../v1/judge")], [400]],
  ["HEAD", [HEALTH.replace("GET", "HEAD")], [200]],
  ["OPTIONS", [HEALTH.replace("GET", "OPTIONS")], [404]],
  ["TRACE", [HEALTH.replace("GET", "TRACE")], [404]],
  [
    "a body of a GET",
    [HEALTH.replace("\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello") + HEALTH],
    [200, 200],
  ],
  ["an upgrade", [PLAIN.replace("\r\n\r\n", "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")], [200]],
  ["a greeting of TLS", ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh\r\n\r\n"], [400]],
];

describe("requests as bytes", () => {
  test.each(ROWS)("%s", async (_, parts, statuses) => {
    const got = await send(parts, statuses.length);
    expect(got.statuses).toEqual([...statuses]);
    // A request that cannot be read to its end is the last one of its connection.
    if (statuses.some((status) => [413, 431, 505].includes(status))) expect(got.closed).toBe(true);
    expect(got.text).not.toContain("neurarch_gate_");
    expect(got.text).not.toMatch(/access-control-allow|planted-secret"[^\\]*Neurarch/i);
  });

  test("HEAD has no body", async () => {
    const { text } = await send([HEALTH.replace("GET", "HEAD")], 1);
    expect(text).toEndWith("\r\n\r\n");
  });

  test("a method that is none closes the connection, and the next one is served", async () => {
    const got = await send([PLAIN.replace("POST", "BREW")], 1);
    expect(got.closed).toBe(true);
    expect((await send([HEALTH], 1)).statuses).toEqual([200]);
  });

  test("a client that leaves in the middle of its body leaves nothing behind", async () => {
    const { hostname, port } = new URL(server.address);
    for (let turn = 0; turn < 20; turn++) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on("error", () => {});
      await new Promise<void>((done) => socket.write(PLAIN.slice(0, 200), () => done()));
      socket.destroy();
    }
    expect((await send([PLAIN], 1)).statuses).toEqual([200]);
  });

  test("an answer under way when it is asked to end still comes, and then nothing more", async () => {
    const own = await serve();
    const { hostname, port } = new URL(own.address);
    const socket = connect({ host: hostname, port: Number(port) });
    let text = "";
    socket.on("data", (data) => {
      text += data.toString("latin1");
    });
    const ended = new Promise<void>((done) => socket.on("close", () => done()));
    const head = PLAIN.indexOf("\r\n\r\n") + 4;
    socket.write(PLAIN.slice(0, head + 40));
    await Bun.sleep(150);
    const stopped = own.stop();
    await Bun.sleep(150);
    const sentMs = performance.now();
    socket.write(PLAIN.slice(head + 40));
    expect(await stopped).toBe(0);
    // Nobody waits for the time that answers have (10 s) once they are out.
    expect(performance.now() - sentMs).toBeLessThan(8_000);
    await ended;
    expect(text).toStartWith("HTTP/1.1 200");
    await expect(fetch(`${own.address}/healthz`)).rejects.toThrow();
  });
});
