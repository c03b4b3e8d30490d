import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSettings } from "../../src/gate/load.ts";
import { selfTest } from "../../src/gate/self-test.ts";
import { BINARY, run } from "../acceptance/run.ts";
import { scratch } from "../outputs/support.ts";

const folder = scratch();
afterAll(() => folder.remove());

type Checks = Record<string, { status: string; message: string; fix: string | null }>;

async function tested(args: readonly string[], env: Record<string, string> = {}) {
  const { exit, out, err } = await run(["self-test", "--json", ...args], { cwd: folder.path, env });
  const document = JSON.parse(out);
  expect([document.schema, document.version, err]).toEqual(["neurarch-gate/self-test", 1, ""]);
  const checks: Checks = Object.fromEntries(
    document.checks.map((one: { check: string }) => [one.check, one]),
  );
  return { exit, ok: document.ok, checks, all: document.checks as { check: string; status: string }[] };
}

describe("self-test", () => {
  test("a host where all is well, without network, in a second", async () => {
    const home = join(folder.path, "home");
    mkdirSync(home);
    const startMs = performance.now();
    const { exit, ok, all } = await tested([], { HOME: home });
    expect([exit, ok]).toEqual([0, true]);
    expect(all.filter(({ status }) => status !== "ok").map(({ check }) => check)).toEqual(["ledger"]);
    expect(all.filter(({ check }) => check === "known job").length).toBe(3);
    expect(performance.now() - startMs).toBeLessThan(20_000);
    // Nothing is left behind.
    expect(readdirSync(home)).toEqual([]);
  });
  test("for people", async () => {
    const { exit, out } = await run(["self-test"], { env: { HOME: folder.path } });
    expect(exit).toBe(0);
    expect(out).toMatch(/^neurarch-gate \d.*\nok +catalogue +\d+ characters, as built\n/);
    expect(out).toEndWith("\n\nAll is well.\n");
  });
  test("a cache that cannot be written is no fault", async () => {
    const { exit, checks } = await tested([], { HOME: "/proc/nobody" });
    expect([exit, checks.cache!.status]).toEqual([0, "warn"]);
    const { checks: without } = await tested([], { HOME: "" });
    expect(without.cache!.message).toStartWith("no HOME and no XDG_CACHE_HOME");
  });
  test("settings, ledger and policy file that cannot be used: 4, with what to do", async () => {
    const broken = join(folder.path, "gate.toml");
    writeFileSync(broken, 'mod = "warn"\n');
    const settings = await tested(["--config", broken]);
    expect([settings.exit, settings.ok, settings.checks.settings]).toEqual([
      4,
      false,
      expect.objectContaining({ status: "fail", fix: "Did you mean `mode`?" }),
    ]);
    const ledger = await tested(["--ledger", "/proc/ledger"]);
    expect([ledger.exit, ledger.checks.ledger!.status]).toEqual([4, "fail"]);
    const file = join(folder.path, "a-file");
    writeFileSync(file, "");
    expect((await tested(["--ledger", file])).checks.ledger!.message).toContain("is no folder");
    const good = join(folder.path, "ledger");
    expect((await tested(["--ledger", good])).checks.ledger!.status).toBe("ok");
    const policy = join(folder.path, "policy.yml");
    writeFileSync(policy, "version: 9\n");
    const refused = await tested(["--policy-file", policy]);
    expect([refused.exit, refused.checks["policy file"]!.status]).toEqual([4, "fail"]);
  });
  /** What is carried, a text in it that is found once, and what it becomes; the length stays. */
  const DAMAGES: readonly (readonly [check: string, file: string, from: string, to: string])[] = [
    ["lua filter", "lua/cli_filter.lua", "slurm_cli_pre_submit", "slurm_cli_pre_submot"],
    [
      "python policy",
      "python-shim/neurarch_gate/__init__.py",
      "class NeurarchPolicy",
      "class NeurarchPolicx",
    ],
    ["catalogue", "src/model/catalogue.jsonl", '"Qwen/Qwen3-8B","unsloth/', '"Qwen/Qwen3-8C","unsloth/'],
  ];
  for (const [check, file, from, to] of DAMAGES) {
    test(`an executable whose ${check} was damaged says so, and ends with 70`, () => {
      const bytes = readFileSync(BINARY);
      const text = readFileSync(join(import.meta.dir, "../..", file));
      let found = 0;
      for (let at = bytes.indexOf(from); at >= 0; at = bytes.indexOf(from, at + 1)) {
        bytes.write(to, at);
        found++;
      }
      expect([text.includes(from), found > 0]).toEqual([true, true]);
      const damaged = join(folder.path, "damaged");
      writeFileSync(damaged, bytes);
      chmodSync(damaged, 0o755);
      const { exitCode, stdout } = Bun.spawnSync([damaged, "self-test", "--json"], {
        env: { PATH: "/usr/bin:/bin", HOME: folder.path },
        stdout: "pipe",
      });
      const failed = JSON.parse(stdout.toString()).checks.filter(
        ({ status }: { status: string }) => status === "fail",
      );
      expect([exitCode, failed[0].check, failed[0].message]).toEqual([
        70,
        check,
        "not what the build put in",
      ]);
      // A job whose model is gone has no verdict.
      expect(failed.length > 1).toBe(check === "catalogue");
    });
  }
  test("a clock before the build, or decades behind it, is no clock", async () => {
    const on = async (builtOn: string) => {
      const found = await selfTest({
        cwd: folder.path,
        env: { HOME: folder.path },
        builtOn,
        embedded: [],
        settings: () => loadSettings({ values: { config: "/dev/null" }, switches: {} }, {}),
      });
      return found.find(({ check }) => check === "clock")!;
    };
    const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString().slice(0, 10);
    for (const [builtOn, status] of [
      [days(0), "ok"],
      [days(1), "ok"],
      [days(-3650), "ok"],
      [days(3), "fail"],
      [days(-8000), "fail"],
    ] as const)
      expect([builtOn, (await on(builtOn)).status]).toEqual([builtOn, status]);
    expect((await on(days(30))).message).toContain("this executable was built on");
  });
  test("nobody is asked", async () => {
    let asked = 0;
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => {
        asked++;
        return new Response("no", { status: 404 });
      },
    });
    try {
      const address = `http://127.0.0.1:${server.port}`;
      const env = { HF_ENDPOINT: address, HF_HUB_OFFLINE: "0", HTTP_PROXY: address, HTTPS_PROXY: address };
      const { exit } = await tested(["--ledger", `http://127.0.0.1:${server.port}`], {
        HOME: folder.path,
        ...env,
      });
      expect([exit, asked]).toEqual([0, 0]);
    } finally {
      await server.stop(true);
    }
  });
});
