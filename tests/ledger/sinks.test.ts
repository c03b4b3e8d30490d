import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLine } from "../../src/ledger/read.ts";
import type { Entry } from "../../src/ledger/types.ts";
import { sinkOf } from "../../src/lib/sink.ts";
import { run } from "../acceptance/run.ts";
import { type Server, serve } from "../serve/server.ts";
import { verdictEntry } from "./entries.ts";

const TOKEN = "collector-token-5f1c";
let root = "";
let made = 0;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "gate-sinks-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));
const fresh = () => {
  const folder = join(root, String(++made));
  mkdirSync(folder);
  return folder;
};
const put = (path: string, text: string, mode = 0o600) => {
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};

function entriesOf(folder: string): Entry[] {
  return readdirSync(folder)
    .filter((name) => name.includes(".jsonl"))
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1))
    .map((line) => readLine(line) as Entry);
}

/** A home whose verdicts wait below it, and what waits. */
function user() {
  const home = fresh();
  const spool = join(home, ".local/state/neurarch/ledger");
  return {
    home,
    spool,
    waiting: () => (existsSync(spool) ? readdirSync(spool).filter((name) => name.endsWith(".jsonl")) : []),
    env: { HOME: home, HF_HUB_OFFLINE: "1" },
  };
}

const SUBMIT = ["slurm", "--gres", "gpu:a10g:1", "--model", "Qwen/Qwen3-8B", "--mode", "reject"];
const submit = (ledger: string, env: Record<string, string>, ...more: string[]) =>
  run([...SUBMIT, "--ledger", ledger, ...more], { env });
const post = (address: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${address}/v1/ledger`, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers,
  });

describe("a server that collects", () => {
  let server: Server;
  let folder = "";
  beforeAll(async () => {
    folder = fresh();
    server = await serve(["--ledger", folder]);
  });
  afterAll(() => server.stop());

  test("takes what is a verdict, once, and says what became of the rest", async () => {
    const sent = [
      verdictEntry({ id: "first-verdict" }),
      verdictEntry({ id: "second-verdict", user: "bo" }),
      verdictEntry({}),
      verdictEntry({ id: "short" }),
      { ...verdictEntry({ id: "no-such-decision" }), decision: "maybe" },
      { ...verdictEntry({ id: "far-too-long" }), more: "x".repeat(5000) },
      { v: 2, id: "of-a-later-form", what: "ever" },
      7,
      null,
      "text",
      [],
    ];
    const receipt = (taken: number, known: number, dropped: number) => ({
      schema: "neurarch-gate/ledger-receipt",
      version: 1,
      taken,
      known,
      dropped,
    });
    const first = await post(server.address, sent);
    expect([first.status, await first.json()]).toEqual([200, receipt(3, 0, 8)]);
    const again = await post(server.address, sent);
    expect(await again.json()).toEqual(receipt(0, 3, 8));
    expect(entriesOf(folder).filter((entry) => typeof entry === "object")).toEqual([
      verdictEntry({ id: "first-verdict" }),
      verdictEntry({ id: "second-verdict", user: "bo" }),
    ]);
  });

  const BAD: readonly (readonly [string, string, number])[] = [
    ["no JSON", "x", 400],
    ["no array", "{}", 400],
    ["nothing in it", "[]", 200],
    ["more than 1 MB", `["${"x".repeat(1_000_001)}"]`, 413],
  ];
  for (const [name, body, status] of BAD)
    test(name, async () => expect((await post(server.address, body)).status).toBe(status));

  test("a line break in a text stays in its line", async () => {
    await post(server.address, [{ ...verdictEntry({ id: "broken-name" }), model: 'a\n{"v":1}\n' }]);
    const found = entriesOf(folder).find(({ id }) => id === "broken-name");
    expect(found?.model).toBe('a\n{"v":1}\n');
  });

  test("only who shows a key, and only where a folder is kept", async () => {
    const keys = put(join(root, "keys"), `${TOKEN}\nuser:password-9\n`);
    const kept = fresh();
    const guarded = await serve(["--ledger", kept, "--auth-file", keys]);
    const entry = [verdictEntry({ id: "guarded-one" })];
    expect((await post(guarded.address, entry)).status).toBe(401);
    expect((await post(guarded.address, entry, { authorization: "Bearer wrong-key" })).status).toBe(401);
    expect((await post(guarded.address, entry, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
    expect(await guarded.stop()).toBe(0);
    expect(entriesOf(kept).length).toBe(1);
    const without = await serve([]);
    expect((await post(without.address, entry)).status).toBe(404);
    await without.stop();
  });

  test("a ledger that cannot be written: the sender keeps its lines", async () => {
    const broken = await serve(["--ledger", join(root, "no", "such", "folder")]);
    expect((await post(broken.address, [verdictEntry({ id: "kept-by-sender" })])).status).toBe(503);
    const { env, waiting } = user();
    expect((await submit(broken.address, env)).out).toStartWith("decision=reject\n");
    expect(waiting().length).toBe(1);
    await broken.stop();
  });

  test("anonymous: names become digests here", async () => {
    const kept = fresh();
    const anonymous = await serve(["--ledger", kept, "--ledger-anonymous"]);
    await post(anonymous.address, [
      verdictEntry({ id: "named-verdict" }),
      verdictEntry({ id: "anonymous-verdict", user: "anon-0123456789ab" }),
      verdictEntry({ id: "nobody-verdict", user: null }),
    ]);
    await anonymous.stop();
    expect(entriesOf(kept).map((entry) => entry.user)).toEqual([
      expect.stringMatching(/^anon-[0-9a-f]{12}$/),
      "anon-0123456789ab",
      null,
    ]);
  });
});

describe("a submit whose ledger is a collector", () => {
  test("over a unix socket that every user may connect to, and over http", async () => {
    for (const listen of [`unix:${join(fresh(), "gate.sock")}`, "127.0.0.1:0"]) {
      const kept = fresh();
      const unix = listen.startsWith("unix:");
      const words = ["--ledger", kept, "--listen", listen, ...(unix ? ["--socket-mode", "0666"] : [])];
      const server = await serve(words);
      if (unix) expect(statSync(listen.slice(5)).mode & 0o777).toBe(0o666);
      const { env, waiting } = user();
      for (let times = 0; times < 3; times += 1)
        expect((await submit(unix ? listen : server.address, env)).out).toStartWith("decision=reject\n");
      expect(await server.stop()).toBe(0);
      expect(waiting()).toEqual([]);
      const entries = entriesOf(kept);
      expect(entries.map(({ adapter, stopped }) => [adapter, stopped])).toEqual(
        Array.from({ length: 3 }, () => ["slurm", true]),
      );
      expect(new Set(entries.map(({ id }) => id)).size).toBe(3);
    }
  });

  test("with a key from a file, which nothing prints and nothing keeps", async () => {
    const kept = fresh();
    const server = await serve(["--ledger", kept, "--auth-file", put(join(root, "keys2"), `${TOKEN}\n`)]);
    const { env, home, waiting } = user();
    put(join(home, "token"), `${TOKEN}\n`);
    const config = put(
      join(root, "token.toml"),
      `ledger = "${server.address}"\nledger_token_file = "~/token"\nmode = "reject"\n`,
    );
    const { out, err } = await run([...SUBMIT, "--config", config], { env });
    expect(out).toStartWith("decision=reject\n");
    expect(waiting()).toEqual([]);
    // A file that others read is no secret: it is not used.
    chmodSync(join(home, "token"), 0o644);
    await run([...SUBMIT, "--config", config], { env });
    expect(waiting().length).toBe(1);
    const doctor = await run(["doctor", "ledger", "--config", config, "--json"], { env });
    expect([doctor.exit, doctor.out.includes("is open to others")]).toEqual([4, true]);
    await server.stop();
    expect(entriesOf(kept).length).toBe(1);
    for (const text of [out, err, doctor.out, doctor.err, server.log()]) expect(text).not.toContain(TOKEN);
    const everything = [kept, join(home, ".local/state/neurarch/ledger")].flatMap((folder) =>
      readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8")),
    );
    for (const text of everything) expect(text).not.toContain(TOKEN);
  });

  test("while it is away the verdict is the same and waits; later it is delivered, once", async () => {
    const socket = join(fresh(), "gate.sock");
    const { env, spool, waiting } = user();
    const plain = await run(SUBMIT, { env });
    expect(await submit(`unix:${socket}`, env)).toEqual(plain);
    expect(await submit(`unix:${socket}`, env)).toEqual(plain);
    expect(waiting().length).toBe(2);
    for (const name of waiting()) expect(statSync(join(spool, name)).mode & 0o777).toBe(0o600);
    expect((await run(["ledger", "send", "--ledger", `unix:${socket}`], { env })).exit).toBe(5);
    const told = await run(["doctor", "ledger", "--ledger", `unix:${socket}`], { env });
    expect(told.out).toContain("does not take verdicts");
    expect(told.out).toContain("2 files of verdicts wait");
    expect(told.exit).toBe(4);

    const kept = fresh();
    const server = await serve(["--ledger", kept, "--listen", `unix:${socket}`]);
    const copies = waiting().map((name) => [name, readFileSync(join(spool, name), "utf8")] as const);
    const sent = await run(["ledger", "send", "--ledger", `unix:${socket}`], { env });
    expect([sent.exit, sent.out]).toEqual([0, `2 verdicts sent to unix:${socket}\n`]);
    expect(waiting()).toEqual([]);
    // Another process had read them before they went.
    for (const [name, text] of copies) put(join(spool, name), text);
    await run(["ledger", "send", "--ledger", `unix:${socket}`], { env });
    expect((await run(["doctor", "ledger", "--ledger", `unix:${socket}`], { env })).exit).toBe(0);
    await server.stop();
    expect(entriesOf(kept).length).toBe(2);
    expect((await run(["ledger", "send", "--ledger", kept], { env })).exit).toBe(2);
  });

  test("the next submit takes along what waits, and a collector that was away is left alone for a while", async () => {
    const socket = join(fresh(), "gate.sock");
    const { env, spool, waiting } = user();
    await submit(`unix:${socket}`, env);
    const kept = fresh();
    const server = await serve(["--ledger", kept, "--listen", `unix:${socket}`]);
    await submit(`unix:${socket}`, env);
    expect(waiting().length).toBe(2);
    const before = new Date(Date.now() - 60_000);
    utimesSync(join(spool, "away"), before, before);
    await submit(`unix:${socket}`, env);
    expect(waiting()).toEqual([]);
    expect(existsSync(join(spool, "away"))).toBe(false);
    await server.stop();
    expect(entriesOf(kept).length).toBe(3);
  });

  test("a restart of the collector doubles nothing in the report", async () => {
    const kept = fresh();
    for (let times = 0; times < 2; times += 1) {
      const server = await serve(["--ledger", kept]);
      await post(server.address, [verdictEntry({ id: "sent-again-later" })]);
      await server.stop();
    }
    expect(JSON.parse((await run(["ledger", kept, "--json"])).out).totals.verdicts).toBe(1);
  });

  test("one that takes the connection and says nothing holds a submit up for its deadline, not longer", async () => {
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { env, waiting } = user();
    const started = performance.now();
    expect((await submit(`http://127.0.0.1:${silent.port}`, env)).out).toStartWith("decision=reject\n");
    const firstMs = performance.now() - started;
    silent.stop(true);
    expect(waiting().length).toBe(1);
    // 200 ms of it; the rest is the start of a process on a machine under load. The filter's own limit is 5 s.
    expect(firstMs).toBeLessThan(4000);
  });

  test("one that answers, but is no collector, gets nothing for good", async () => {
    const portal = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("<html>log in</html>"),
    });
    const { env, waiting } = user();
    await submit(`http://127.0.0.1:${portal.port}`, env);
    expect(waiting().length).toBe(1);
    portal.stop(true);
  });

  test("without a home, or with one that cannot be written, the verdict is the same", async () => {
    const plain = await run(SUBMIT, { env: { HF_HUB_OFFLINE: "1" } });
    for (const home of ["/proc/nowhere", "relative", ""])
      expect(await submit("unix:/nowhere/gate.sock", { HOME: home, HF_HUB_OFFLINE: "1" })).toEqual(plain);
  });

  test("a server's own verdicts and SkyPilot's go there as well", async () => {
    const kept = fresh();
    const collector = await serve(["--ledger", kept]);
    const { env } = user();
    const server = await serve(["--ledger", collector.address], env);
    await fetch(`${server.address}/v1/judge`, {
      method: "POST",
      body: '{"model": "Qwen/Qwen3-8B", "request": "A10G:1"}',
    });
    expect(await server.stop()).toBe(0);
    const stdin = JSON.stringify({
      task: "resources:\n  accelerators: A10G:1\nenvs:\n  NEURARCH_MODEL: Qwen/Qwen3-8B\n",
      skypilot_config: "",
      request_name: "launch",
      user: "",
    });
    await run(["judge", "--admin-policy", "--ledger", collector.address], { env, stdin });
    await collector.stop();
    expect(entriesOf(kept).map(({ adapter }) => adapter)).toEqual(["serve", "skypilot"]);
  });
});

describe("an address", () => {
  const ROWS: readonly (readonly [string, string])[] = [
    ["/var/log/neurarch", "folder"],
    ["ledger", "folder"],
    ["unix:/run/gate.sock", "unix"],
    ["unix:gate.sock", "invalid"],
    [`unix:/${"x".repeat(120)}`, "invalid"],
    ["http://collector:8765", "http"],
    ["https://collector/below/", "http"],
    ["https://user:password@collector", "invalid"],
    ["https://collector?key=x", "invalid"],
    ["http://", "invalid"],
  ];
  for (const [text, kind] of ROWS) test(text, () => expect(sinkOf(text).kind).toBe(kind as "folder"));

  test("that is no good changes no verdict, and doctor says why without what may be a key", async () => {
    const { env } = user();
    const plain = await run(SUBMIT, { env });
    const address = `https://user:${TOKEN}@127.0.0.1:1`;
    expect(await submit(address, env)).toEqual(plain);
    const doctor = await run(["doctor", "ledger", "--ledger", address], { env });
    expect([doctor.exit, doctor.out.includes("holds a key"), doctor.out.includes(TOKEN)]).toEqual([
      4,
      true,
      false,
    ]);
    const report = await run(["ledger", address], { env });
    expect([report.exit, report.err.includes(TOKEN)]).toEqual([2, false]);
  });

  test.skipIf(Bun.which("strace") === null && process.env.CI !== "true")(
    "nothing of a network is loaded for a folder",
    () => {
      const folder = fresh();
      const trace = join(root, "trace");
      const words = [...SUBMIT, "--ledger", folder];
      const child = Bun.spawnSync(
        [
          "strace",
          "-f",
          "-e",
          "trace=socket,connect",
          "-o",
          trace,
          join(import.meta.dir, "../../dist/neurarch-gate"),
          ...words,
        ],
        { env: { HOME: folder, HF_HUB_OFFLINE: "1", PATH: "/usr/bin:/bin" } },
      );
      expect(child.exitCode).toBe(0);
      expect(readFileSync(trace, "utf8")).not.toMatch(/AF_UNIX|AF_INET/);
    },
  );
});
