import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY } from "../acceptance/run.ts";
import { bench } from "../bridge/bridge-kit.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-crowd-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A server under a shell's limits, what it said, and a way to end it. */
async function started(words: readonly string[], before = "") {
  const line = `${before} exec "$0" serve "$@"`;
  const child = Bun.spawn(["bash", "-c", line, BINARY, ...words], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let said = "";
  void (async () => {
    for await (const piece of child.stderr) said += new TextDecoder().decode(piece);
  })();
  for (let tries = 0; !said.includes("listening on"); tries++) {
    if (child.exitCode !== null || tries > 400) throw new Error(`serve did not start: ${said}`);
    await Bun.sleep(50);
  }
  const address = /listening on (\S+)\n/.exec(said)![1]!;
  const end = async () => {
    child.kill("SIGTERM");
    return child.exited;
  };
  return { pid: child.pid, address, log: () => said, end };
}

/** Seconds of processor time that a process has used. */
function usedS(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const opened = (address: string) =>
  new Promise<Socket | null>((done) => {
    const { port, hostname } = new URL(address.startsWith("unix:") ? "http://x" : address);
    const socket = address.startsWith("unix:") ? connect(address.slice(5)) : connect(Number(port), hostname);
    socket.once("connect", () => done(socket));
    socket.once("error", () => done(null));
  });

describe("more clients than descriptors", () => {
  for (const [name, listen] of [
    ["on loopback", "127.0.0.1:0"],
    ["on a unix socket", `unix:${join(folder, "crowd.sock")}`],
  ] as const) {
    test(name, async () => {
      const server = await started(["--no-log", "--listen", listen], "ulimit -n 64;");
      const crowd = await Promise.all(Array.from({ length: 200 }, () => opened(server.address)));
      // Connections that say nothing are handed to the server after a second.
      await Bun.sleep(1500);
      expect(readdirSync(`/proc/${server.pid}/fd`).length).toBeGreaterThanOrEqual(60);
      const [beforeS, beforeMs] = [usedS(server.pid), performance.now()];
      await Bun.sleep(2000);
      const share = (usedS(server.pid) - beforeS) / ((performance.now() - beforeMs) / 1000);
      expect(share).toBeLessThan(0.3);
      expect(server.log()).toContain("more clients than the 64 open files this process may have");
      for (const socket of crowd) socket?.destroy();
      await Bun.sleep(300);
      const asked = server.address.startsWith("unix:")
        ? fetch("http://gate/healthz", { unix: server.address.slice(5) })
        : fetch(`${server.address}/healthz`);
      expect(await (await asked).text()).toBe("ok\n");
      expect(await server.end()).toBe(0);
    }, 30_000);
  }
});

test("an answer that takes its time is not cut off on a unix socket", async () => {
  const cli = join(folder, "slow-cli");
  writeFileSync(cli, "#!/bin/sh\nsleep 12\necho '{\"jobs\":[]}'\n");
  chmodSync(cli, 0o755);
  const path = join(folder, "slow.sock");
  const server = await started(["--listen", `unix:${path}`, "--sizing", "cli", "--cli", cli]);
  const body = JSON.stringify({ model: "org/unknown", request: "H100:1" });
  const reply = await fetch("http://gate/v1/judge", { method: "POST", body, unix: path });
  expect(reply.status).toBe(200);
  expect(await reply.json()).toMatchObject({ decision: "unjudged" });
  expect(await server.end()).toBe(0);
}, 40_000);

describe("what stands where its socket shall be", () => {
  const refused = async (path: string) => {
    const child = Bun.spawn([BINARY, "serve", "--listen", `unix:${path}`], {
      env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent" },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    const err = await new Response(child.stderr).text();
    return { err, exit: await child.exited };
  };

  test("a file, a link or a FIFO stays, and is said", async () => {
    writeFileSync(join(folder, "file"), "precious");
    Bun.spawnSync(["ln", "-s", "file", join(folder, "link")]);
    Bun.spawnSync(["mkfifo", join(folder, "fifo")]);
    for (const name of ["file", "link", "fifo"]) {
      const { err, exit } = await refused(join(folder, name));
      expect({ name, exit, err }).toEqual({ name, exit: 5, err: expect.stringContaining("in use") });
    }
    expect(readFileSync(join(folder, "file"), "utf8")).toBe("precious");
    expect(lstatSync(join(folder, "link")).isSymbolicLink()).toBeTrue();
  });

  test("a server that lives and answers nobody keeps its socket", async () => {
    // A full queue refuses no one: it only lets them wait, or tells them to come again.
    const path = join(folder, "busy.sock");
    const script = `import socket,time\ns=socket.socket(socket.AF_UNIX)\ns.bind(${JSON.stringify(path)})\ns.listen(0)\nprint("ready",flush=True)\ntime.sleep(60)`;
    const busy = Bun.spawn(["python3", "-c", script], { stdout: "pipe", env: { PATH: "/usr/bin:/bin" } });
    await busy.stdout.getReader().read();
    const waiting = await Promise.all(
      Array.from({ length: 3 }, () => Promise.race([opened(`unix:${path}`), Bun.sleep(300)])),
    );
    const inode = lstatSync(path).ino;
    const second = Bun.spawn([BINARY, "serve", "--listen", `unix:${path}`], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    await Promise.race([second.exited, Bun.sleep(1500)]);
    expect(lstatSync(path).ino).toBe(inode);
    second.kill("SIGKILL");
    await second.exited;
    for (const socket of waiting) socket?.destroy();
    busy.kill();
    await busy.exited;
  });

  test("a socket has its mode at once, whatever the umask", async () => {
    const rows = [
      ["umask 000;", "0600", 0o600],
      ["umask 077;", "0666", 0o666],
    ] as const;
    for (const [umask, mode, bits] of rows) {
      const path = join(folder, `mode-${mode}.sock`);
      const server = await started(["--listen", `unix:${path}`, "--socket-mode", mode], umask);
      expect(lstatSync(path).mode & 0o777).toBe(bits);
      expect(await server.end()).toBe(0);
      expect(() => lstatSync(path)).toThrow();
    }
  });
});

test("the port of another server is left to it", async () => {
  const other = createServer(() => {});
  await new Promise<void>((done) => other.listen(0, "127.0.0.1", () => done()));
  const { port } = other.address() as { port: number };
  const child = Bun.spawn([BINARY, "serve", "--listen", `127.0.0.1:${port}`], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const err = await new Response(child.stderr).text();
  expect({ err, exit: await child.exited }).toEqual({
    err: expect.stringContaining("the address is in use"),
    exit: 5,
  });
  other.close();
});

test("a bridge with more clients than descriptors neither spins nor loses its calls of sky", async () => {
  const b = bench({ accuracy: "echo checked" });
  try {
    const line = 'ulimit -n 160; exec "$0" bridge --campaign "$1"';
    const daemon = Bun.spawn(["bash", "-c", line, BINARY, join(b.root, "campaign.toml")], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    let log = "";
    void (async () => {
      for await (const piece of daemon.stderr) log += new TextDecoder().decode(piece);
    })();
    for (let tries = 0; !log.includes("serving run") && tries < 400; tries++) await Bun.sleep(50);
    const address = `unix:${b.socket}`;
    const first = await Promise.all(Array.from({ length: 40 }, () => opened(address)));
    const crowd = await Promise.all(Array.from({ length: 400 }, () => opened(address)));
    await Bun.sleep(3000);
    const [beforeS, beforeMs] = [usedS(daemon.pid), performance.now()];
    await Bun.sleep(2000);
    expect((usedS(daemon.pid) - beforeS) / ((performance.now() - beforeMs) / 1000)).toBeLessThan(0.3);
    // Those that were refused hold nothing of the daemon's, although they keep their own end.
    expect(readdirSync(`/proc/${daemon.pid}/fd`).length).toBeLessThan(140);
    for (const socket of first) socket?.destroy();
    for (const socket of crowd.slice(0, 100)) socket?.destroy();
    await Bun.sleep(500);
    const ran = await b.evaluate(["accuracy"]);
    expect({ exit: ran.exit, out: ran.out }).toEqual({ exit: 0, out: "checked\n" });
    for (const socket of crowd) socket?.destroy();
    daemon.kill("SIGTERM");
    expect(await daemon.exited).toBe(0);
  } finally {
    await b.remove();
  }
}, 60_000);
