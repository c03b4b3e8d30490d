import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
  test("an executable whose data was damaged says so, and ends with 70", async () => {
    const bytes = readFileSync(BINARY);
    // One letter of the filter's text inside the executable; its length stays.
    const at =
      bytes.indexOf("-- The Slurm filter of neurarch-gate") >= 0
        ? bytes.indexOf("-- The Slurm filter of neurarch-gate")
        : bytes.indexOf(readFileSync(join(import.meta.dir, "../../lua/cli_filter.lua")).subarray(0, 60));
    expect(at).toBeGreaterThan(0);
    bytes[at + 5] = bytes[at + 5]! ^ 1;
    const damaged = join(folder.path, "damaged");
    writeFileSync(damaged, bytes);
    chmodSync(damaged, 0o755);
    const { exitCode, stdout } = Bun.spawnSync([damaged, "self-test", "--json"], {
      env: { PATH: "/usr/bin:/bin", HOME: folder.path },
      stdout: "pipe",
    });
    expect(exitCode).toBe(70);
    const check = JSON.parse(stdout.toString()).checks.find(
      (one: { check: string }) => one.check === "lua filter",
    );
    expect([check.status, check.message]).toEqual(["fail", "not what the build put in"]);
  });
});
