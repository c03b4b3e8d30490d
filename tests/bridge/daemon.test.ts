/** The daemon's sockets and manners, driven byte by byte. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { listenUnix, takeAway } from "../../src/host/socket.ts";
import {
  ack,
  type Bench,
  type BenchOptions,
  bench,
  benchmarkRequest,
  newId,
  RESULT_PATH,
  rawClient,
  request,
} from "./bridge-kit.ts";

async function on(options: BenchOptions, work: (b: Bench) => Promise<void>): Promise<void> {
  const made = bench(options);
  try {
    await work(made);
  } finally {
    await made.remove();
  }
}
const until = async (done: () => boolean) => {
  while (!done()) await Bun.sleep(10);
};
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** One request and all that is answered until the end. */
async function asked(b: Bench, value: unknown, reply?: unknown) {
  const client = await rawClient(b.socket);
  client.send(value);
  if (reply !== undefined) {
    await client.until((it) => it.frame("result") !== undefined);
    client.send(reply);
  }
  await client.until(() => false);
  return client;
}

test("sockets are 0600 in 0700 folders, the operator's outside the clients' folder", () =>
  on({}, async (b) => {
    await b.start();
    const operator = join(b.state, "operator", "bridge.sock");
    expect([b.socket, dirname(b.socket), operator, dirname(operator), b.state].map(mode)).toEqual([
      "600",
      "700",
      "600",
      "700",
      "700",
    ]);
  }));

test.skipIf(process.getuid?.() !== 0)("another user cannot connect, for two reasons", () =>
  on({}, async (b) => {
    await b.start();
    chmodSync(b.root, 0o755);
    const connects = (path: string) =>
      Bun.spawnSync([
        ...[
          "env",
          "PATH=/usr/bin:/bin",
          "setpriv",
          "--reuid=65534",
          "--regid=65534",
          "--clear-groups",
          "python3",
          "-c",
        ],
        "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])",
        path,
      ]);
    const operator = join(b.state, "operator", "bridge.sock");
    for (const path of [b.socket, operator]) {
      expect(connects(path).stderr.toString()).toContain("PermissionError");
      // Even where the folders are open, the socket is not.
      for (const folder of [dirname(path), b.state]) chmodSync(folder, 0o755);
      expect(connects(path).stderr.toString()).toContain("PermissionError");
      chmodSync(path, 0o666);
      expect(connects(path).exitCode).toBe(0);
    }
  }),
);

test("every frame of an evaluation, exact to the key, and the acknowledgement", () =>
  on({}, async (b) => {
    await b.start();
    const id = newId();
    const client = await asked(b, benchmarkRequest(id), ack(id));
    expect(client.frames.map(({ type }) => type)).toEqual(["stdout", "artifact", "result", "acked"]);
    const [stdout, artifact, result, acked] = client.frames;
    expect(stdout).toEqual({ version: 2, type: "stdout", data: "bench\n" });
    expect(artifact).toEqual({
      version: 2,
      type: "artifact",
      path: RESULT_PATH,
      size: 12,
      sha256: "c8491311ec52ae9560b66e7dc3d65bcc9e1b04ff3d90d7e5bfc437d7ddc952cd",
      data_base64: "eyJzY29yZSI6IDF9",
    });
    expect(result).toEqual({
      version: 2,
      type: "result",
      status: "COMPLETED",
      sky_exit_code: 0,
      remote_job_id: 2,
    });
    expect(acked).toEqual({ version: 2, type: "acked", invocation_id: id });
    // Asked again after the end: the result, no output, nothing run.
    const again = await asked(b, benchmarkRequest(id), ack(id));
    expect(again.frames.map(({ type }) => type)).toEqual(["artifact", "result", "acked"]);
    expect(b.sky.commands().filter((name) => name === "exec").length).toBe(1);
  }));

describe("requests that are refused", () => {
  const good = () => request(newId());
  const cases: readonly (readonly [string, () => unknown, RegExp])[] = [
    ["an extra key", () => ({ ...good(), host: "x" }), /unknown key "host"/],
    ["version 1", () => ({ ...good(), version: 1 }), /version/],
    ["version true", () => ({ ...good(), version: true }), /version/],
    ["an unknown kind", () => ({ ...good(), kind: "profile" }), /kind/],
    ["a short id", () => ({ ...good(), invocation_id: "ab" }), /invocation_id/],
    ["arguments for accuracy", () => ({ ...good(), arguments: ["x"] }), /neither arguments/],
    [
      "another output path",
      () => ({ ...benchmarkRequest(newId()), arguments: ["--output-json", "/etc/passwd"] }),
      /output path/,
    ],
    ["no JSON", () => "hello\n", /not JSON/],
    ["too long a line", () => `${"x".repeat(5000)}\n`, /4096 bytes/],
    ["a cancel of nothing", () => ({ version: 2, kind: "cancel", invocation_id: newId() }), /no evaluation/],
    [
      "a cancel with an extra key",
      () => ({ version: 2, kind: "cancel", invocation_id: newId(), x: 1 }),
      /unknown key "x"/,
    ],
  ];
  test.each(cases)("%s", (_, value, words) =>
    on({}, async (b) => {
      await b.start();
      const client = await asked(b, value());
      const [diagnosis, error] = client.frames;
      expect(diagnosis?.type).toBe("stderr");
      expect(diagnosis?.data).toMatch(words);
      expect(error).toEqual({
        version: 2,
        type: "error",
        error: "ValueError",
        message: expect.stringMatching(words) as unknown as string,
      });
      expect(client.frames.length).toBe(2);
    }),
  );

  test("mainline error frames have no message", () =>
    on({ more: "" }, async (b) => {
      const path = join(b.root, "campaign.toml");
      writeFileSync(path, readFileSync(path, "utf8").replace('error_frames = "campaign"', ""));
      await b.start();
      const client = await asked(b, { ...good(), kind: "x" });
      expect(client.frames.at(-1)).toEqual({ version: 2, type: "error", error: "ValueError" });
    }));

  test("the same id for another request", () =>
    on({}, async (b) => {
      await b.start();
      const id = newId();
      await asked(b, request(id), ack(id));
      const client = await asked(b, request(id, "benchmark"));
      expect(client.frame("error")?.message).toContain("used for another request");
    }));
});

test("a daemon keeps no file of an evaluation open that is over, whether its client stayed or left", () =>
  on({}, async (b) => {
    const daemon = await b.start();
    const open = () => readdirSync(`/proc/${daemon.pid}/fd`).length;
    const first = newId();
    await asked(b, request(first), ack(first));
    const before = open();
    for (let round = 0; round < 6; round++) {
      const id = newId();
      const client = await rawClient(b.socket);
      client.send(round % 2 === 0 ? request(id) : benchmarkRequest(id));
      await client.until((it) => it.frame("result") !== undefined);
      if (round % 3 !== 0) client.send(ack(id));
      client.socket.end();
      await client.until(() => false);
      if (round % 3 === 0) await asked(b, round % 2 === 0 ? request(id) : benchmarkRequest(id), ack(id));
    }
    await Bun.sleep(100);
    expect(open()).toBeLessThanOrEqual(before);
  }));

test("a client that connects and sends nothing is answered after its time", () =>
  on({}, async (b) => {
    await b.start({ limits: { requestMs: 200 } });
    const client = await rawClient(b.socket);
    await client.until(() => false);
    expect(client.frame("error")?.message).toContain("no request came within 0.2 s");
  }));

/** How many frames: more by hand (`FUZZED_FRAMES=100000`). */
const FUZZED = Number(process.env.FUZZED_FRAMES ?? 1500);
test(`${FUZZED} frames of nonsense leave the daemon as it was`, () =>
  on({}, async (b) => {
    const daemon = await b.start();
    const bytes = (length: number) =>
      Buffer.from(Array.from({ length }, () => Math.floor(Math.random() * 256)));
    const good = JSON.stringify(benchmarkRequest(newId()));
    const nonsense = [
      () => bytes(200),
      () => Buffer.concat([bytes(30), Buffer.from("\n")]),
      () => Buffer.from(`${good.slice(0, Math.floor(Math.random() * good.length))}\n`),
      () => Buffer.from(`${good.replace(/[a-z]/g, (letter) => (Math.random() < 0.02 ? "{" : letter))}x\n`),
      () => Buffer.alloc(9000, 65),
      () => Buffer.from(`[${"[".repeat(2000)}\n`),
    ];
    const one = async (round: number) => {
      const client = await rawClient(b.socket);
      client.socket.end(nonsense[round % nonsense.length]!());
      await client.until(() => false);
      client.socket.destroy();
    };
    const fds = () =>
      Bun.spawnSync(["ls", `/proc/${daemon.pid}/fd`])
        .stdout.toString()
        .split("\n").length;
    await one(0);
    const before = fds();
    const kilobytes = () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1]);
    let early = 0;
    for (let round = 0; round < FUZZED; round += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, at) => one(round + at)));
      if (early === 0 && round >= FUZZED / 3) early = kilobytes();
    }
    await Bun.sleep(100);
    expect(fds()).toBeLessThanOrEqual(before + 2);
    expect(kilobytes()).toBeLessThan(early + 40_000);
    expect((await b.evaluate(["accuracy"])).exit).toBe(0);
  }));

test("a client that never reads is dropped after its time, its evaluation goes on, and the next call gets all of it", () =>
  on({ accuracy: "sh check.sh" }, async (b) => {
    b.write(
      "check.sh",
      "i=0; while [ $i -lt 20 ]; do head -c 100000 /dev/zero | tr '\\0' b; echo; i=$((i+1)); done; echo end",
    );
    const daemon = await b.start({ limits: { stallMs: 300 } });
    const id = newId();
    const client = await rawClient(b.socket);
    client.socket.pause();
    client.send(request(id));
    await until(() => daemon.log().includes("took nothing was dropped"));
    await until(() => JSON.stringify(b.journal()).includes('"COMPLETED"'));
    client.socket.destroy();
    const next = await asked(b, request(id), ack(id));
    expect(next.frame("result")?.status).toBe("COMPLETED");
    expect(next.output().endsWith("end\n")).toBe(true);
    expect(next.frame("acked")).toBeDefined();
  }));

test("a second evaluation waits for its turn and is told so; one whose client leaves is never begun", () =>
  on({ accuracy: "sh check.sh" }, async (b) => {
    b.write("check.sh", "echo one; sleep 0.6; echo two");
    await b.start();
    const first = await rawClient(b.socket);
    const [one, two, three] = [newId(), newId(), newId()];
    first.send(request(one));
    await first.until((it) => it.output() === "one\n");
    const left = await rawClient(b.socket);
    left.send(request(three));
    await left.until((it) => it.output("stderr").includes("waits for its turn"));
    left.socket.destroy();
    const second = await rawClient(b.socket);
    second.send(request(two));
    await second.until((it) => it.frame("result") !== undefined);
    expect(second.output("stderr")).toContain(
      `(accuracy ${one.slice(0, 8)}) is under way; this one waits for its turn`,
    );
    expect(second.output()).toBe("one\ntwo\n");
    expect(b.sky.commands().filter((name) => name === "exec").length).toBe(2);
  }));

test("two calls with one token: the second gets what the first leaves", () =>
  on({ accuracy: "sh check.sh" }, async (b) => {
    b.write("check.sh", "echo one; sleep 0.6; echo two");
    await b.start();
    const id = newId();
    const first = await rawClient(b.socket);
    first.send(request(id));
    await first.until((it) => it.output() === "one\n");
    const second = await rawClient(b.socket);
    second.send(request(id));
    await second.until((it) => it.output("stderr").includes("this one waits for it"));
    first.socket.destroy();
    await second.until((it) => it.frame("result") !== undefined);
    expect(second.output()).toBe("two\n");
  }));

test("half a character waits for the rest of it", () =>
  on({ accuracy: "sh check.sh" }, async (b) => {
    b.write("check.sh", "printf 'a\\303'; sleep 0.4; printf '\\244b\\377\\n'");
    await b.start();
    const { out } = await b.evaluate(["accuracy"]);
    expect(out).toBe("a\u00e4b\ufffd\n");
  }));

describe("the place of the socket", () => {
  test("a socket that a killed daemon left is taken over", () =>
    on({}, async (b) => {
      const first = await b.start();
      await first.kill("SIGKILL");
      expect(existsSync(b.socket)).toBe(true);
      const second = await b.start();
      expect(second.log()).toContain("which a daemon that is gone had left");
      expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    }));

  test("two that come at once: a living socket is neither taken away nor listened over", () =>
    on({}, async (b) => {
      mkdirSync(dirname(b.socket), { mode: 0o700 });
      const first = listenUnix(b.socket, (socket) => socket.end());
      // What the second found dead a moment ago.
      expect(await takeAway(b.socket)).toBe(false);
      expect(() => listenUnix(b.socket, () => {})).toThrow("another daemon took");
      const client = await rawClient(b.socket);
      await client.until(() => false);
      expect(readdirSync(dirname(b.socket))).toEqual(["bridge.sock"]);
      first.stop();
      expect(readdirSync(dirname(b.socket))).toEqual([]);
      expect(await takeAway(b.socket)).toBe(true);
    }));

  test("a second daemon is refused, and the first goes on", () =>
    on({}, async (b) => {
      await b.start();
      const second = await b.start();
      expect(await second.ended).not.toBe(0);
      expect(second.log()).toContain("Another bridge daemon");
      expect((await b.evaluate(["accuracy"])).exit).toBe(0);
    }));

  test("a socket on which something else answers, and a file, are left alone", () =>
    on({}, async (b) => {
      mkdirSync(dirname(b.socket), { mode: 0o700 });
      writeFileSync(b.socket, "mine");
      const first = await b.start();
      expect(await first.ended).not.toBe(0);
      expect(first.log()).toContain("is there and is no socket");
      expect(readFileSync(b.socket, "utf8")).toBe("mine");
      rmSync(b.socket);
      const server = createServer().listen(b.socket);
      await Bun.sleep(50);
      const second = await b.start();
      expect(await second.ended).not.toBe(0);
      expect(second.log()).toContain("another daemon answers on");
      server.close();
      expect(b.sky.commands()).toEqual([]);
    }));

  test("a folder in which others may write is refused", () =>
    on({}, async (b) => {
      mkdirSync(dirname(b.socket));
      writeFileSync(join(dirname(b.socket), "other"), "");
      chmodSync(dirname(b.socket), 0o777);
      const daemon = await b.start();
      expect(await daemon.ended).not.toBe(0);
      expect(daemon.log()).toContain("others may write in the socket's folder");
    }));

  test("too long a path is explained", () =>
    on({}, async (b) => {
      const long = join(b.root, "d".repeat(120), "bridge.sock");
      const { exit, err } = await b.cli([
        "bridge",
        "--campaign",
        join(b.root, "campaign.toml"),
        "--socket",
        long,
      ]);
      expect(exit).toBe(2);
      expect(err).toContain(`${long}, ${long.length} bytes long`);
      expect(err).toContain("107");
    }));

  test("a state folder too deep for the operator's socket", () =>
    on({}, async (b) => {
      const deep = join(b.root, ...Array.from({ length: 12 }, () => "deep-folder"));
      const path = join(b.root, "campaign.toml");
      writeFileSync(path, readFileSync(path, "utf8").replace(JSON.stringify(b.state), JSON.stringify(deep)));
      const daemon = await b.start();
      const { exit, out } = await b.cli(["bridge", "status", "--state", deep]);
      expect([exit, out.includes("serving")]).toEqual([0, true]);
      expect(await daemon.kill()).toBe(0);
    }));
});

describe("the operator", () => {
  test("status, cancel and release, by state folder and by socket", () =>
    on({ accuracy: "sh check.sh" }, async (b) => {
      b.write("check.sh", "echo one; sleep 20");
      await b.start();
      const running = b.evaluating(["accuracy"]);
      await until(() => running.out() === "one\n");
      const status = await b.cli(["bridge", "status", "--socket", b.socket, "--json"]);
      const document = JSON.parse(status.out) as {
        state: string;
        evaluations: { phase: string; jobId: number }[];
      };
      expect([document.state, document.evaluations[0]?.phase, document.evaluations[0]?.jobId]).toEqual([
        "serving",
        "RUNNING",
        2,
      ]);
      const busy = await b.cli(["bridge", "release", "--state", b.state]);
      expect([busy.exit, busy.err.includes("cancel it first")]).toEqual([5, true]);
      const cancel = await b.cli(["bridge", "cancel", "--state", b.state]);
      expect([cancel.exit, cancel.err.includes("the allocation stays")]).toEqual([0, true]);
      expect((await running.ran).exit).toBe(130);
      expect(b.sky.running().length).toBe(1);
      const nothing = await b.cli(["bridge", "cancel", "--state", b.state]);
      expect([nothing.exit, nothing.err.includes("nothing is running")]).toEqual([5, true]);
      expect((await b.cli(["bridge", "release", "--socket", b.socket])).exit).toBe(0);
      expect(b.sky.running()).toEqual([]);
      b.write("check.sh", "echo again");
      expect((await b.evaluate(["accuracy"])).out).toBe("again\n");
    }));

  test("what a killed daemon left is released without one", () =>
    on({}, async (b) => {
      const daemon = await b.start();
      await daemon.kill("SIGKILL");
      expect(b.sky.running().length).toBe(1);
      const status = await b.cli(["bridge", "status", "--state", b.state]);
      expect([status.exit, status.out.includes("No daemon runs")]).toEqual([5, true]);
      expect((await b.cli(["bridge", "release", "--state", b.state])).exit).toBe(0);
      expect(b.sky.running()).toEqual([]);
    }));

  test("--keep leaves the allocation, and the next daemon uses it", () =>
    on({ more: "keep = true\n" }, async (b) => {
      await (await b.start()).kill();
      expect(b.sky.running().length).toBe(1);
      await b.start();
      expect((await b.evaluate(["accuracy"])).exit).toBe(0);
      expect(b.sky.slurm().length).toBe(1);
    }));
});

test("a model that the accelerators cannot hold: nothing is asked of the cluster", () =>
  on({ tables: '[job]\nmodel = "meta-llama/Llama-3.1-405B"\nbatch = 8\nseq-len = 4096\n' }, async (b) => {
    const { exit, err } = await b.cli(["bridge", "--campaign", join(b.root, "campaign.toml")]);
    expect([exit, err]).toEqual([1, expect.stringContaining("Neurarch") as unknown as string]);
    expect(b.sky.commands()).toEqual([]);
    expect(existsSync(b.socket)).toBe(false);
  }));
