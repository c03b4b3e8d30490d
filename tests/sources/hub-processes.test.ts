import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { CERTIFICATE, given, hub, moved, status } from "./hub-servers.ts";
import { config, freshFolder } from "./support.ts";

const CONFIG = config(100);
const TOKEN = "hf_aVerySecretTokenOfTheTest";
const SCRIPT = join(import.meta.dir, "hub-process.ts");

interface Outcome {
  readonly length?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly tookMs: number;
}

/** Starts a process that asks for a model, with nothing in its environment but what is given. */
function start(env: Record<string, string>, id = "org/model", timeoutMs = 5000) {
  return Bun.spawn([process.execPath, SCRIPT, id, String(timeoutMs)], {
    env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function outcomeOf(child: ReturnType<typeof start>): Promise<Outcome> {
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect(err).toBe("");
  return JSON.parse(out);
}

function twenty(env: Record<string, string>, timeoutMs: number) {
  return Promise.all(Array.from({ length: 20 }, () => outcomeOf(start(env, "org/model", timeoutMs))));
}

const forever = () => new Promise<Response>(() => undefined);

describe("twenty processes at once", () => {
  test("ask a slow hub once", async () => {
    const server = hub(async () => {
      await Bun.sleep(1500);
      return given(CONFIG);
    });
    const env = { HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() };
    const outcomes = await twenty(env, 20_000);
    expect(outcomes.map((outcome) => outcome.length)).toEqual(Array(20).fill(CONFIG.length));
    expect(server.seen).toHaveLength(1);
    expect(readdirSync(join(env.XDG_CACHE_HOME, "neurarch-gate"))).toHaveLength(1);
  }, 60_000);
  test("ask a hub that has no such model once", async () => {
    const server = hub(async () => {
      await Bun.sleep(1500);
      return status(404, "RepoNotFound");
    });
    const outcomes = await twenty({ HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() }, 20_000);
    expect(new Set(outcomes.map((outcome) => outcome.reason))).toEqual(new Set(["model-not-found"]));
    expect(server.seen).toHaveLength(1);
  }, 60_000);
  test("wait for a silent hub together, and the next ones not at all", async () => {
    const server = hub(forever);
    const env = { HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() };
    const outcomes = await twenty(env, 2000);
    for (const { reason, tookMs } of outcomes) {
      expect(reason).toBe("model-unreachable");
      expect(tookMs).toBeLessThan(3000);
    }
    expect(server.seen.length).toBeLessThanOrEqual(2);
    const asked = server.seen.length;
    for (const id of ["org/model", "org/other", "org/third"]) {
      const { reason, tookMs } = await outcomeOf(start(env, id, 2000));
      expect(reason).toBe("model-unreachable");
      expect(tookMs).toBeLessThan(500);
    }
    expect(server.seen).toHaveLength(asked);
  }, 60_000);
});

describe("a process that was to ask and", () => {
  test("was killed is not waited for", async () => {
    let silent = true;
    const server = hub(() => (silent ? forever() : given(CONFIG)));
    const env = { HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() };
    const first = start(env, "org/model", 20_000);
    while (server.seen.length === 0) await Bun.sleep(10);
    const second = start(env, "org/model", 20_000);
    silent = false;
    first.kill("SIGKILL");
    const outcome = await outcomeOf(second);
    expect(outcome.length).toBe(CONFIG.length);
    expect(outcome.tookMs).toBeLessThan(3000);
  }, 30_000);

  /** A note in place of the one that a process leaves while it asks. */
  async function withNote(leave: (path: string) => void) {
    const server = hub(() => given(CONFIG));
    const env = { HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() };
    // The note's name is learnt from a real one.
    const silent = hub(forever);
    const child = start({ ...env, HF_ENDPOINT: silent.url });
    const folder = join(env.XDG_CACHE_HOME, "neurarch-gate");
    while (silent.seen.length === 0) await Bun.sleep(10);
    const name = readdirSync(folder).find((file) => file.startsWith("asking-"));
    child.kill("SIGKILL");
    await child.exited;
    expect(name).toBeDefined();
    const { digest } = await import("../../src/host/private-files.ts");
    const own = `asking-${digest(JSON.stringify(["hub", server.url, "org/model", ""])).slice(0, 40)}`;
    expect(name).toBe(`asking-${digest(JSON.stringify(["hub", silent.url, "org/model", ""])).slice(0, 40)}`);
    mkdirSync(folder, { recursive: true });
    leave(join(folder, own));
    return outcomeOf(start(env, "org/model", 1500));
  }
  const note = (more: object) =>
    JSON.stringify({ pid: process.pid, host: hostname(), untilMs: Date.now() + 60_000, ...more });
  const over: [string, (path: string) => void][] = [
    ["is overdue is not waited for", (path) => writeFileSync(path, note({ untilMs: Date.now() - 1 }))],
    [
      "will be busy for days is not waited for",
      (path) => writeFileSync(path, note({ untilMs: Date.now() + 1e9 })),
    ],
    ["left a link is not waited for", (path) => symlinkSync("/etc/hostname", path)],
    ["left a folder is not waited for", (path) => mkdirSync(path)],
  ];
  test.each(over)("%s", async (_, leave) => {
    const outcome = await withNote(leave);
    expect(outcome.length).toBe(CONFIG.length);
    expect(outcome.tookMs).toBeLessThan(500);
  });
  const held: [string, (path: string) => void][] = [
    ["is alive is waited for until our own time is over", (path) => writeFileSync(path, note({}))],
    ["runs on another machine is waited for", (path) => writeFileSync(path, note({ host: "other", pid: 1 }))],
    ["is just writing its note is waited for", (path) => writeFileSync(path, "{")],
  ];
  test.each(held)("%s", async (_, leave) => {
    const outcome = await withNote(leave);
    expect(outcome.reason).toBe("model-unreachable");
    expect(outcome.message).toContain("did not answer within 1.5 s");
    expect(outcome.tookMs).toBeLessThan(2500);
  });
});

describe("HTTPS", () => {
  const trusted = { NODE_EXTRA_CA_CERTS: CERTIFICATE, HF_TOKEN: TOKEN };
  test("with an authority that the site added", async () => {
    const server = hub(() => given(CONFIG), { tls: true });
    const env = { ...trusted, HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() };
    expect((await outcomeOf(start(env))).length).toBe(CONFIG.length);
    expect(server.seen[0]!.authorization).toBe(`Bearer ${TOKEN}`);
  });
  test("is never left for HTTP", async () => {
    const open = hub(() => given(CONFIG));
    const server = hub(() => moved(`${open.url}/x`), { tls: true });
    const outcome = await outcomeOf(
      start({ ...trusted, HF_ENDPOINT: server.url, XDG_CACHE_HOME: freshFolder() }),
    );
    expect(outcome.message).toContain("redirects to an address that is not safe to follow");
    expect(open.seen).toHaveLength(0);
  });
});
