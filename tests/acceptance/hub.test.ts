import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMMIT, given, hub, status } from "../sources/hub-servers.ts";
import { BINARY, run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-hub-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const TOKEN = "hf_aVerySecretTokenOfTheTest";
const CONFIG = JSON.stringify({
  model_type: "gpt2",
  n_embd: 768,
  n_head: 12,
  n_layer: 12,
  n_positions: 1024,
  vocab_size: 50_257,
});
const SCRIPT = join(folder, "job.sbatch");
writeFileSync(
  SCRIPT,
  "#!/bin/bash\n#SBATCH --gres=gpu:t4:1\n#NEURARCH model=org/model batch=64 seq-len=1024\n",
);

let caches = 0;
function envOf(server: { readonly url: string }, more: Record<string, string> = {}) {
  return {
    HF_HUB_OFFLINE: "0",
    HF_ENDPOINT: server.url,
    XDG_CACHE_HOME: join(folder, `cache${caches++}`),
    ...more,
  };
}
const forever = () => new Promise<Response>(() => undefined);

describe("the executable and the hub", () => {
  test("sizes and judges what is found there, at its revision", async () => {
    const server = hub(() => given(CONFIG));
    const env = envOf(server);
    const sized = JSON.parse((await run(["size", "org/model", "--json"], { env })).out);
    expect(sized).toMatchObject({ family: "gpt2", params: 124_439_808, revision: COMMIT, source: "builtin" });
    const judged = await run(["judge", "--slurm", SCRIPT, "--json"], { env });
    expect(judged.exit).toBe(1);
    expect(JSON.parse(judged.out).sizing).toMatchObject({ revision: COMMIT });
    expect((await run(["size", "org/model", "--explain"], { env })).out).toContain(COMMIT);
    expect(server.seen).toHaveLength(1);
  });
  test("a model of the catalogue asks nothing", async () => {
    const server = hub(() => given(CONFIG));
    expect((await run(["size", "Qwen/Qwen3-8B"], { env: envOf(server) })).exit).toBe(0);
    expect(server.seen).toHaveLength(0);
  });
  test("what cannot be reached or found ends size with 5 and judge with 3", async () => {
    for (const server of [hub(() => status(404)), hub(() => status(500)), { url: "http://127.0.0.1:1" }]) {
      expect((await run(["size", "org/model"], { env: envOf(server) })).exit).toBe(5);
      expect((await run(["judge", "--slurm", SCRIPT], { env: envOf(server) })).exit).toBe(3);
    }
  });
  test("a name that is nearly one of the catalogue's is asked back, with one mark at the end", async () => {
    const server = hub(() => status(404));
    const { err } = await run(["size", "Qwen/Qwen3-8BB"], { env: envOf(server) });
    expect(err).toEndWith(" Did you mean Qwen/Qwen3-8B?\n");
  });
  test("a table of jobs asks for each model once", async () => {
    const server = hub((path) => (path.includes("/gone/") ? status(404, "RepoNotFound") : given(CONFIG)));
    const jobs = join(folder, "jobs.csv");
    const rows = Array.from({ length: 200 }, (_, at) => `${["a/x", "b/y", "gone/z"][at % 3]},T4,${at + 1}`);
    writeFileSync(jobs, `model,gpu,batch\n${rows.join("\n")}\n`);
    const { out } = await run(["rightsize", jobs, "--json"], { env: envOf(server) });
    const report = JSON.parse(out).jobs as { peakGb: number | null; reason: string | null }[];
    expect(report.filter((job) => job.peakGb === null)).toHaveLength(66);
    expect(server.seen).toHaveLength(3);
  });
});

describe("a submit and a hub that is silent", () => {
  const submit = (env: Record<string, string>, ...args: string[]) =>
    run(["slurm", "--script", SCRIPT, "--mode", "reject", ...args], { env });
  const OPEN =
    /^decision=allow\nmessage=Neurarch: org\/model not judged: The config of org\/model could not be fetched: .* did not answer within 5\.0 s; .* Allowed unchecked \(fail open\)\.\n$/;

  test("waits five seconds once, and is let through", async () => {
    const server = hub(forever);
    const env = envOf(server);
    const startMs = performance.now();
    expect((await submit(env)).out).toMatch(OPEN);
    const first = performance.now() - startMs;
    for (let again = 0; again < 49; again++) expect((await submit(env)).out).toMatch(OPEN);
    const others = performance.now() - startMs - first;
    console.log(`silent hub: ${first.toFixed(0)} ms, then 49 submits in ${others.toFixed(0)} ms`);
    expect(first).toBeGreaterThan(4500);
    expect(first).toBeLessThan(6500);
    expect(others).toBeLessThan(49 * 200);
    expect(server.seen).toHaveLength(1);
  }, 60_000);
  test("waits no longer than --timeout says", async () => {
    const startMs = performance.now();
    expect((await submit(envOf(hub(forever)), "--timeout", "0.3")).out).toContain("within 0.3 s");
    expect(performance.now() - startMs).toBeLessThan(2000);
  });
  test("goes on at once where the port is closed", async () => {
    const startMs = performance.now();
    expect((await submit(envOf({ url: "http://127.0.0.1:1" }))).out).toStartWith("decision=allow\n");
    expect(performance.now() - startMs).toBeLessThan(1000);
  });
});

describe("the token", () => {
  test("is in no output, no file of ours and no argument", async () => {
    const answers = [
      () => given(CONFIG),
      () => status(401),
      () => status(403, "GatedRepo"),
      () => status(404),
      () => status(500),
      () => given("<html>"),
      () =>
        new Response("", {
          status: 302,
          headers: { location: `https://no-such-host.invalid/${TOKEN.slice(0, 2)}` },
        }),
    ];
    for (const answer of answers) {
      const args: string[] = [];
      const server = hub(async () => {
        // While it waits for us: what any user of the machine can see of it.
        for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
          try {
            const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
            if (line.includes(BINARY)) args.push(line);
          } catch {
            // it ended meanwhile
          }
        }
        return answer();
      });
      const env = envOf(server, { HF_TOKEN: TOKEN, BUN_CONFIG_VERBOSE_FETCH: "curl" });
      const said: string[] = [];
      for (const words of [
        ["size", "org/model", "--explain"],
        ["size", "org/model", "--json"],
        ["judge", "--slurm", SCRIPT, "--explain"],
        ["slurm", "--script", SCRIPT, "--annotate"],
      ]) {
        const { out, err } = await run(words, { env });
        said.push(out, err);
      }
      expect(server.seen[0]!.authorization).toBe(`Bearer ${TOKEN}`);
      expect(args.length).toBeGreaterThan(0);
      const cache = join(env.XDG_CACHE_HOME, "neurarch-gate");
      const kept = readdirSync(cache).map((name) => name + readFileSync(join(cache, name), "utf8"));
      expect(kept.length).toBeGreaterThan(0);
      for (const text of [...said, ...kept, ...args]) expect(text).not.toContain(TOKEN);
    }
  }, 60_000);
});
