import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { BINARY, run, shown } from "../acceptance/run.ts";
import { freshFolder } from "../sources/support.ts";
import { body, type Server, serve } from "./server.ts";

const post = (server: Server, text: string, path = "/", init: RequestInit = {}) =>
  fetch(`${server.address}${path}`, { method: "POST", body: text, ...init });

describe("SkyPilot's RESTful policy", () => {
  let server: Server;
  beforeAll(async () => {
    server = await serve(["--mutate"]);
  });
  afterAll(async () => {
    expect(await server.stop()).toBe(0);
  });

  test.each(["/", "/policy", "/any/path?and=query"])(
    "echoes what fits byte for byte, at %s",
    async (path) => {
      const { task, config, text } = body("L4: 1");
      const reply = await post(server, text, path);
      expect(reply.status).toBe(200);
      expect(await reply.text()).toBe(JSON.stringify(JSON.stringify({ task, skypilot_config: config })));
    },
  );
  test("refuses with 400 and the sentences alone", async () => {
    const reply = await post(server, body("T4: 1").text);
    expect(reply.status).toBe(400);
    expect(await reply.text()).toStartWith("Neurarch: Qwen/Qwen3-0.6B needs 19.");
  });
  test("rewrites an over-request, and nothing else of the task", async () => {
    const { task, config, text } = body("A100-80GB: 8");
    const reply = await post(server, text);
    const answer = JSON.parse(JSON.parse(await reply.text()));
    expect(answer.skypilot_config).toBe(config);
    expect(answer.task.replace(/\n.*NEURARCH_REWRITTEN.*/, "")).not.toBe(task);
    expect(answer.task).toContain("    null: docker:x\n");
    expect(answer.task).not.toContain("A100-80GB: 8");
    // Judged again, as SkyPilot does, it stays.
    const again = JSON.parse(JSON.parse(body("L4: 1").text));
    const second = await post(server, JSON.stringify(JSON.stringify({ ...again, task: answer.task })));
    expect(JSON.parse(JSON.parse(await second.text())).task).toBe(answer.task);
  });
  const BROKEN: [string, string][] = [
    ["nothing", ""],
    ["no JSON", "hello"],
    ["a list", "[]"],
    ["a number in a string", '"5"'],
    ["no task", JSON.stringify(JSON.stringify({ skypilot_config: "" }))],
    ["deep nesting", "[".repeat(100_000)],
    ["bytes that are no text", "\u0000\uFFFD"],
  ];
  test.each(BROKEN)("a body of %s is said and harms nothing", async (_, text) => {
    const reply = await post(server, text);
    expect(reply.status).toBe(400);
    expect(await reply.text()).toMatch(/^Neurarch: .*This address serves SkyPilot's admin policy\.$/);
    expect((await fetch(`${server.address}/healthz`)).status).toBe(200);
  });
  test("a task that cannot be read is admitted as it came, and logged", async () => {
    const request = JSON.parse(JSON.parse(body("L4: 1").text));
    const broken = { ...request, task: "a: [1, 2\nb: {" };
    const reply = await post(server, JSON.stringify(JSON.stringify(broken)));
    expect(reply.status).toBe(200);
    expect(JSON.parse(JSON.parse(await reply.text())).task).toBe(broken.task);
    expect(await server.said("allowed unchecked (fail open)")).toContain("allowed unchecked (fail open)");
  });
  test("a body above the limit is not read", async () => {
    const reply = await post(server, "x".repeat(17_000_000)).catch(() => null);
    if (reply !== null) expect(reply.status).toBe(413);
    expect((await fetch(`${server.address}/healthz`)).status).toBe(200);
  });
  test("clients that say nothing, or half of it, keep no one waiting", async () => {
    const url = new URL(server.address);
    const idle = Array.from({ length: 50 }, (_, index) => {
      const socket = connect(Number(url.port), url.hostname);
      socket.on("error", () => {});
      if (index % 2 === 0) socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
      return socket;
    });
    const reply = await post(server, body("L4: 1").text);
    expect(reply.status).toBe(200);
    for (const socket of idle) socket.destroy();
    expect((await post(server, body("L4: 1").text)).status).toBe(200);
  });
  test("the log has the verdicts that REST cannot tell, and no secret", async () => {
    const lines = (await server.said('"decision":"rewrite"'))
      .split("\n")
      .filter((line) => line.startsWith("{"));
    const entries = lines.map((line) => JSON.parse(line));
    expect(entries.some((entry) => entry.decision === "rewrite" && entry.request === "launch")).toBe(true);
    expect(server.log()).not.toMatch(/planted|admin_policy:/);
    const metrics = await (await fetch(`${server.address}/metrics`)).text();
    expect(metrics).toMatch(/judgements_total\{adapter="skypilot",decision="rewrite"\} [1-9]/);
    expect(metrics).not.toContain("planted");
  });
  test("what is not served is 404", async () => {
    for (const [method, path] of [
      ["GET", "/"],
      ["PUT", "/"],
      ["POST", "/v1/nothing"],
    ])
      expect((await fetch(`${server.address}${path}`, { method: method! })).status).toBe(404);
  });
});

describe("POST /v1/judge", () => {
  let server: Server;
  beforeAll(async () => {
    server = await serve();
  });
  afterAll(() => server.stop());
  const judge = async (job: unknown) => {
    const reply = await post(server, typeof job === "string" ? job : JSON.stringify(job), "/v1/judge");
    return { status: reply.status, document: (await reply.json()) as Record<string, unknown> };
  };

  test("is judge --json for plain facts", async () => {
    const { status, document } = await judge({
      model: "Qwen/Qwen3-8B",
      batch: 8,
      request: "H100:8",
      nodes: 2,
    });
    const { out } = await run([
      "judge",
      "--model",
      "Qwen/Qwen3-8B",
      "--batch",
      "8",
      "--request",
      "H100:8",
      "--nodes",
      "2",
      "--json",
    ]);
    expect(status).toBe(200);
    expect(document).toEqual(JSON.parse(out));
  });
  test.each([
    ["skypilot", "--skypilot", "examples/finetune-qwen3-8b.sky.yaml"],
    ["slurm", "--slurm", "examples/finetune-qwen3-8b.sbatch"],
  ])("and for the text of a %s file", async (form, flag, path) => {
    const { document } = await judge({
      [form]: readFileSync(path, "utf8"),
      "grad-accum": 4,
      "padding-mask": true,
      "lora-dropout": 0.05,
    });
    const more = ["--grad-accum", "4", "--padding-mask", "on", "--lora-dropout", "0.05"];
    const { out } = await run(["judge", flag, path, ...more, "--json"]);
    expect(document).toEqual(JSON.parse(out));
  });
  const WRONG: [string, unknown, string][] = [
    ["no JSON", "{", "the body is not JSON"],
    ["a list", [], "the body is no JSON object"],
    ["no job", { model: "a/b" }, "no job is given"],
    ["two jobs", { skypilot: "", slurm: "" }, "`skypilot` and `slurm` exclude each other"],
    ["an unknown key", { modle: "a/b", request: "H100" }, "unknown key `modle`"],
    ["a list as a value", { model: ["a"], request: "H100" }, "`model` is not a text or a number"],
    ["nodes of a script", { slurm: "#!/bin/sh\n", nodes: 2 }, "`nodes` goes with `request` only"],
    [
      "a fact that is none",
      { model: "a/b", batch: "eight", request: "H100" },
      '--batch: "eight" is not a whole number',
    ],
    ["a request that is none", { model: "a/b", request: "H100:x" }, "The accelerator 'H100:x' is not a name"],
    ["a broken task", { skypilot: "resources: [" }, ""],
  ];
  test.each(WRONG)("%s is a 400 with what is wrong", async (_, job, message) => {
    const { status, document } = await judge(job);
    expect(status).toBe(400);
    expect(document).toMatchObject({ schema: "neurarch-gate/error", version: 1, code: expect.any(String) });
    expect(document.message).toStartWith(message);
  });
});

describe("a server", () => {
  const folder = freshFolder();
  const keys = join(folder, "keys");
  writeFileSync(keys, "sky:correct horse\n");
  const tls = (name: string) => join(import.meta.dir, `../fixtures/tls/localhost.${name}.pem`);

  test("asks for a key where one is set, but for its health", async () => {
    const server = await serve(["--auth-file", keys]);
    const { text } = body("L4: 1");
    const authorization = `Basic ${btoa("sky:correct horse")}`;
    expect((await post(server, text)).status).toBe(401);
    expect((await post(server, text, "/", { headers: { authorization } })).status).toBe(200);
    expect((await fetch(`${server.address}/metrics`)).status).toBe(401);
    expect((await fetch(`${server.address}/healthz`)).status).toBe(200);
    await server.stop();
    expect(server.log()).not.toContain("horse");
  });
  test("speaks TLS with a certificate", async () => {
    const server = await serve(["--tls-cert", tls("cert"), "--tls-key", tls("key")]);
    expect(server.address).toStartWith("https://");
    const port = new URL(server.address).port;
    const reply = await fetch(`https://localhost:${port}/healthz`, {
      tls: { ca: readFileSync(tls("cert"), "utf8") },
    });
    expect(reply.status).toBe(200);
    await server.stop();
  });
  test("listens on a unix socket, over one that a killed server left", async () => {
    const path = join(folder, "gate.sock");
    const first = await serve(["--listen", `unix:${path}`]);
    process.kill(first.pid, "SIGKILL");
    while (existsSync(`/proc/${first.pid}/fd`) && first.log() !== "" && !(await isGone(first.pid)))
      await Bun.sleep(20);
    expect(existsSync(path)).toBe(true);
    const second = await serve(["--listen", `unix:${path}`]);
    const reply = await fetch("http://localhost/", { unix: path, method: "POST", body: body("L4: 1").text });
    expect(reply.status).toBe(200);
    const third = await run(["serve", "--listen", `unix:${path}`]);
    expect(third.exit).toBe(5);
    expect(await second.stop()).toBe(0);
    expect(existsSync(path)).toBe(false);
  });
  test("that fails closed refuses what it cannot judge", async () => {
    const server = await serve([], { NEURARCH_POLICY_FAIL_CLOSED: "1" });
    const reply = await post(server, body("H100: 1").text.replace("Qwen/Qwen3-0.6B", "nobody/nothing"));
    expect(reply.status).toBe(400);
    expect(await reply.text()).toContain("nobody/nothing");
    await server.stop();
  });
  test("applies the policy file that it is named, as it is now", async () => {
    const policy = join(folder, "policy.yml");
    const waiver = (expires: string) =>
      `version: 1\nwaivers:\n  - {rule: admission/request-does-not-fit, owner: ana, reason: trial, created: 2020-01-01, expires: ${expires}}\n`;
    writeFileSync(policy, waiver("2999-01-01"));
    const server = await serve(["--policy-file", policy]);
    expect((await post(server, body("T4: 1").text)).status).toBe(200);
    const waived = "waived in policy.yml by ana until 2999-01-01";
    expect(await server.said(waived)).toContain(waived);
    writeFileSync(policy, waiver("2020-01-02"));
    let status = 200;
    for (let tries = 0; status === 200 && tries < 100; tries++) {
      await Bun.sleep(200);
      status = (await post(server, body("T4: 1").text)).status;
    }
    expect(status).toBe(400);
    await server.stop();
  });
  test("that is asked to end answers what is under way", async () => {
    const server = await serve();
    const url = new URL(server.address);
    const { text } = body("L4: 1");
    const socket = connect(Number(url.port), url.hostname);
    let got = "";
    socket.on("data", (chunk) => (got += chunk));
    const closed = new Promise((done) => socket.once("close", done));
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\n\r\n${text.slice(0, 50)}`);
    await Bun.sleep(200);
    const stopped = server.stop();
    await Bun.sleep(200);
    socket.write(text.slice(50));
    expect(await stopped).toBe(0);
    await closed;
    expect(got).toStartWith("HTTP/1.1 200 OK");
  });

  const REFUSED: [string, string[], number, string][] = [
    [
      "an address that others reach, without keys",
      ["--listen", "0.0.0.0:0"],
      2,
      "neurarch-gate serve: --listen 0.0.0.0:0 is reached from other machines, and no --auth-file says who may ask. Name a file of keys, or listen on 127.0.0.1 or a unix socket.\n",
    ],
    [
      "a certificate that is none",
      ["--tls-cert", tls("key"), "--tls-key", tls("key")],
      4,
      `neurarch-gate serve: --tls-cert ${tls("key")} and --tls-key ${tls("key")} are no certificate and its key (NO_START_LINE). Name a PEM certificate and the private key it was made with.\n`,
    ],
    [
      "half of a certificate",
      ["--tls-cert", tls("cert")],
      2,
      "neurarch-gate serve: --tls-cert is given without --tls-key. Give both, or none.\n",
    ],
    [
      "a key file that is missing",
      ["--auth-file", "/nowhere/keys"],
      4,
      "neurarch-gate serve: --auth-file: /nowhere/keys does not exist. Name a readable file.\n",
    ],
    [
      "a stray word",
      ["8765"],
      2,
      "neurarch-gate serve: `8765` is not expected here. This command takes flags only; `--help` lists them.\n",
    ],
  ];
  test.each(REFUSED)("does not start with %s", async (_, args, exit, err) => {
    expect(await run(["serve", ...args])).toEqual({ exit, out: "", err });
  });
  test("whose log nobody reads goes on answering, and ends when it is asked to", async () => {
    const folder = freshFolder();
    const socket = join(folder, "gate.sock");
    // A reader that holds the pipe and does not read: it is full after some hundred lines.
    const script = `mkfifo log; exec 3<>log; "$@" 2>log 3>&- & echo $! >pid; wait $!; echo "ended $?"`;
    const child = Bun.spawn(["sh", "-c", script, "sh", BINARY, "serve", "--listen", `unix:${socket}`], {
      cwd: folder,
      env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const said = new Response(child.stdout).text();
    for (let waits = 0; !existsSync(socket) && waits < 300; waits++) await Bun.sleep(20);
    const pid = Number(readFileSync(join(folder, "pid"), "utf8"));
    // Whatever comes of it, nothing is left behind.
    const overdue = setTimeout(() => process.kill(pid, "SIGKILL"), 15_000);
    const job = JSON.stringify({ model: "Qwen/Qwen3-8B", request: "H100:8", batch: 8 });
    for (let asked = 0; asked < 400; asked++) {
      const init = { method: "POST", body: job, unix: socket };
      const status = await fetch("http://localhost/v1/judge", init).then(
        async (reply) => (await reply.text()) && reply.status,
        () => 0,
      );
      if (status !== 200) throw new Error(`no answer to request ${asked}`);
    }
    process.kill(pid, "SIGTERM");
    expect(await said).toBe("ended 0\n");
    clearTimeout(overdue);
  });
  test("says that an address is in use", async () => {
    const server = await serve();
    const { exit, err } = await run(["serve", "--listen", server.address.replace("http://", "")]);
    expect(exit).toBe(5);
    expect(err).toMatch(
      /^neurarch-gate serve: cannot listen on 127\.0\.0\.1:\d+: the address is in use\. Free the address/,
    );
    await server.stop();
  });
  test("prints its unit", async () => {
    expect(
      shown(await run(["serve", "--print-unit", "--mutate", "--max-cost-usd", "50"])).replace(
        /ExecStart=\S+/,
        "ExecStart=BINARY",
      ),
    ).toMatchSnapshot();
  });
});

/** Whether a killed process has been taken away. */
async function isGone(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return true;
  }
}
