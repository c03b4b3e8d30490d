/**
 * Loads `neurarch-gate serve` with SkyPilot's own requests and prints one JSON document of figures; beside it, in turns
 * in the same run, the published Python policy behind a small REST server:
 * `bun tests/bench/serve.ts GATE BODIES PYTHON CLI REQUESTS`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Trouble } from "./hostile.ts";
import { type Load, load, requestsOf } from "./load.ts";

const [gate = "", bodiesPath = "", python = "", cli = "", count = "100000"] = process.argv.slice(2);
const REQUESTS = Number(count);
const CONNECTIONS = 32;

interface Running {
  readonly url: URL;
  readonly residentMib: () => number;
  stop(): Promise<void>;
}

/** Starts a server that says "listening on URL" on stderr. */
async function start(argv: readonly string[]): Promise<Running> {
  const child = Bun.spawn([...argv], {
    env: { ...process.env, HF_HUB_OFFLINE: "1" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const { promise, resolve } = Promise.withResolvers<URL>();
  // What it logs is read, as a service manager does.
  (async () => {
    let head = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) {
      if (head.length > 100_000) continue;
      head += decoder.decode(chunk);
      const address = /listening on (\S+)/.exec(head)?.[1];
      if (address === undefined) continue;
      head = " ".repeat(200_000);
      resolve(new URL(address));
    }
  })();
  const ended = child.exited.then((code) => {
    throw new Error(`${argv[0]} ended with ${code} before it listened`);
  });
  const url = await Promise.race([promise, ended]);
  ended.catch(() => {});
  return {
    url,
    residentMib: () =>
      Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
    stop: async () => {
      child.kill("SIGTERM");
      await child.exited;
    },
  };
}

const requests = requestsOf(readFileSync(bodiesPath, "utf8").trim().split("\n"));
const server = await start([gate, "serve", "--listen", "127.0.0.1:0"]);
const early = Math.round(REQUESTS / 10);
let earlyMib = 0;
// The very first requests count: their models are sized, and code is compiled.
const all = await load(server.url, requests, {
  connections: CONNECTIONS,
  count: REQUESTS,
  markAt: early,
  mark: () => {
    earlyMib = server.residentMib();
  },
});
const lateMib = server.residentMib();
const trouble = new Trouble(server.url, 64);
const beside = await load(server.url, requests, { connections: CONNECTIONS, count: early * 2 });
trouble.end();
await server.stop();

// The peer, and ours again next to it: half of ours before, half after.
const small = Math.min(requests.length, early);
const theirs = await start([python, join(import.meta.dir, "peer_rest.py"), cli]);
const ours = await start([gate, "serve", "--listen", "127.0.0.1:0"]);
const turn = (running: Running): Promise<Load> =>
  load(running.url, requests, { connections: CONNECTIONS, count: small });
const before = await turn(ours);
const peer = await turn(theirs);
const after = await turn(ours);
await Promise.all([theirs.stop(), ours.stop()]);

console.log(
  JSON.stringify({
    all,
    beside,
    malformed: trouble.malformed,
    unexpected: trouble.unexpected,
    earlyMib,
    lateMib,
    requests: REQUESTS,
    peer,
    paired: (before.perSecond + after.perSecond) / 2,
  }),
);
