import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { lineOf } from "../../src/ledger/entry.ts";
import { readLine } from "../../src/ledger/read.ts";
import type { Entry } from "../../src/ledger/types.ts";
import { BINARY, run, shown } from "../acceptance/run.ts";
import { serve } from "../serve/server.ts";
import { verdictEntry } from "./entries.ts";

const ROOT_USER = process.getuid?.() === 0;
const NOBODY = 65534;
const USER = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
const PLANTED = "planted-secret-8c1";

/** Under CI nothing is skipped: what cannot be done there fails. */
const CI = process.env.CI === "true";
/** A container may be root without being able to mount. */
const CAN_MOUNT = (() => {
  if (!ROOT_USER) return false;
  const folder = mkdtempSync(join(tmpdir(), "gate-mount-"));
  const can = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder]).exitCode === 0;
  if (can) Bun.spawnSync(["umount", folder]);
  rmSync(folder, { recursive: true });
  return can;
})();

let root = "";
let gate = "";
let script = "";
const at = (...names: string[]) => join(root, ...names);
let made = 0;
/** A folder for a ledger; `mode` null = not there yet. */
const place = (mode: number | null = 0o1777) => {
  const folder = at(`ledger-${++made}`);
  if (mode !== null) {
    mkdirSync(folder);
    chmodSync(folder, mode);
  }
  return folder;
};

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "gate-ledger-"));
  chmodSync(root, 0o755);
  gate = at("neurarch-gate");
  copyFileSync(BINARY, gate);
  chmodSync(gate, 0o755);
  script = at("job.sbatch");
  writeFileSync(
    script,
    `#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n#SBATCH --array=0-9\n#NEURARCH model=Qwen/Qwen3-8B batch=8 hours=2\nexport TOKEN=${PLANTED}\n`,
  );
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const textsOf = (folder: string) =>
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")] as const);

/** Every entry of a ledger; a line that is none fails. */
function entriesOf(folder: string): Entry[] {
  return textsOf(folder)
    .filter(([name]) => name !== "salt")
    .flatMap(([, text]) => text.split("\n").slice(0, -1))
    .map((line) => {
      const entry = readLine(line);
      if (typeof entry === "string") throw new Error(`${entry}: ${line}`);
      return entry;
    });
}

/** A submit in reject mode, by root or as nobody. */
async function submit(words: readonly string[], nobody = false) {
  const as = nobody ? ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"] : [];
  const child = Bun.spawn([...as, gate, "slurm", "--script", script, "--mode", "reject", ...words], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", HF_HUB_OFFLINE: "1", HF_TOKEN: PLANTED },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, exit] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, exit };
}

describe("what is recorded", () => {
  test("a submit: who, what, the verdict and its price x array tasks", async () => {
    const folder = place(null);
    expect((await submit(["--ledger", folder, "--cluster", "grid"])).out).toStartWith("decision=reject\n");
    expect(readdirSync(folder)).toEqual([`${USER}@${hostname()}.jsonl`]);
    expect(entriesOf(folder)).toEqual([
      expect.objectContaining({
        adapter: "slurm",
        user: USER,
        host: hostname(),
        cluster: "grid",
        model: "Qwen/Qwen3-8B",
        request: "a10g:1",
        card: "A10G",
        count: 1,
        nodes: 1,
        tasks: 10,
        decision: "refuse",
        stopped: true,
        rule: "admission/request-does-not-fit",
        reason: "too-small",
        gpuHours: 20,
        source: "builtin",
        structure: expect.stringMatching(/^[0-9a-f]{16}$/),
      }),
    ]);
  });

  test("a refusal that is only told is not stopped, and what names no model leaves no line", async () => {
    const folder = place();
    await run(["slurm", "--script", script, "--ledger", folder]);
    await run(["judge", "--slurm", script, "--ledger", folder]);
    await run(["judge", "--request", "H100:8", "--ledger", folder]);
    await run(["slurm", "--gres", "gpu:1", "--ledger", folder]);
    expect(entriesOf(folder).map(({ adapter, decision, stopped }) => [adapter, decision, stopped])).toEqual([
      ["slurm", "refuse", false],
      ["judge", "refuse", false],
    ]);
  });

  test("equal structures under two names share a digest, also where the size was kept", async () => {
    const folder = place();
    const config = {
      architectures: ["LlamaForCausalLM"],
      model_type: "llama",
      hidden_size: 64,
      intermediate_size: 128,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      vocab_size: 100,
    };
    const model = (name: string, more: object) => {
      mkdirSync(at(name));
      writeFileSync(at(name, "config.json"), JSON.stringify({ ...config, ...more }));
      return at(name);
    };
    const models = [model("a", {}), model("b", {}), model("c", { num_attention_heads: 8 })];
    mkdirSync(at("home"));
    for (const name of [...models, ...models])
      await run(["judge", "--model", name, "--request", "H100:1", "--ledger", folder], {
        env: { HOME: at("home") },
      });
    const [a, b, c, ...again] = entriesOf(folder).map(({ structure }) => structure);
    expect(a).toBe(b!);
    expect(c).not.toBe(a!);
    expect(again).toEqual([a!, b!, c!]);
  });

  test("a waiver's owner", async () => {
    const folder = place();
    writeFileSync(
      at("policy.yml"),
      `version: 1\nwaivers:\n  - rule: admission/request-does-not-fit\n    owner: bo\n    reason: ${PLANTED}\n    created: ${new Date().toISOString().slice(0, 10)}\n`,
    );
    await submit(["--ledger", folder, "--policy-file", at("policy.yml")]);
    expect(entriesOf(folder)).toEqual([
      expect.objectContaining({ decision: "warn", waiver: "bo", stopped: false }),
    ]);
  });

  test("no secret of the environment, a script or a task, through any door", async () => {
    const folder = place();
    const env = { NEURARCH_API_KEY: PLANTED, HF_TOKEN: PLANTED, TOKEN: PLANTED, SBATCH_EXPORT: PLANTED };
    const task = `name: ${PLANTED}\nresources:\n  accelerators: A10G:1\nenvs:\n  NEURARCH_MODEL: Qwen/Qwen3-8B\n  KEY: ${PLANTED}\nsecrets:\n  TOKEN: ${PLANTED}\nrun: echo ${PLANTED}\n`;
    writeFileSync(at("task.yaml"), task);
    const stdin = JSON.stringify({
      task,
      skypilot_config: `x: ${PLANTED}`,
      request_name: "launch",
      user: "",
    });
    await run(["slurm", "--script", script, "--comment", PLANTED, "--ledger", folder], { env });
    await run(["judge", "--skypilot", at("task.yaml"), "--env", `A=${PLANTED}`, "--ledger", folder], { env });
    await run(["judge", "--admin-policy", "--ledger", folder], { env, stdin });
    await run(
      [
        "judge",
        "--model",
        `https://me:${PLANTED}@hub/x?k=${PLANTED}`,
        "--request",
        "H100:1",
        "--ledger",
        folder,
      ],
      { env },
    );
    const unreadable = { ...env, NEURARCH_MODEL: "Qwen/Qwen3-8B", NEURARCH_BATCH: PLANTED };
    await run(["slurm", "--gres", "gpu:H100:1", "--ledger", folder], { env: unreadable });
    expect(entriesOf(folder).map(({ adapter }) => adapter)).toEqual([
      "slurm",
      "judge",
      "skypilot",
      "judge",
      "slurm",
    ]);
    for (const [name, text] of textsOf(folder)) expect(name + text).not.toContain(PLANTED);
  });

  test("anonymous: digests that stay the same in one folder and differ in another", async () => {
    writeFileSync(at("gate.toml"), "ledger_anonymous = true\n");
    const users: (string | null)[] = [];
    for (const folder of [place(), place()]) {
      for (let times = 0; times < 2; times += 1)
        await submit(["--ledger", folder, "--config", at("gate.toml")]);
      expect(readdirSync(folder).length).toBe(2);
      for (const [name, text] of textsOf(folder).filter(([file]) => file !== "salt")) {
        expect(name).toMatch(/^anon-[0-9a-f]{12}@/);
        expect(text).not.toContain(`"${USER}"`);
      }
      users.push(...entriesOf(folder).map(({ user }) => user));
    }
    expect(users[0]).toMatch(/^anon-[0-9a-f]{12}$/);
    expect(users[1]).toBe(users[0]!);
    expect(users[2]).not.toBe(users[0]!);
    expect(users[3]).toBe(users[2]!);
  });

  test("what SkyPilot asks beforehand only where it ends there", async () => {
    const folder = place();
    const ask = (card: string, name: string, user = "id: ab\n\nname: ada\n\nuser_type: null\n") => ({
      task: `resources:\n  accelerators: ${card}\nenvs:\n  NEURARCH_MODEL: Qwen/Qwen3-8B\n  NEURARCH_BATCH: '1'\n`,
      skypilot_config: "",
      request_name: name,
      user,
    });
    const server = await serve(["--ledger", folder]);
    const post = (path: string, body: object) =>
      fetch(`${server.address}${path}`, { method: "POST", body: JSON.stringify(body) }).then(
        ({ status }) => status,
      );
    expect(await post("/", ask("A10G:1", "validate"))).toBe(400);
    expect(await post("/", ask("H200:4", "validate"))).toBe(200);
    expect(await post("/", ask("H200:4", "optimize"))).toBe(200);
    expect(await post("/", ask("H200:4", "launch", ""))).toBe(200);
    expect(await post("/v1/judge", { model: "Qwen/Qwen3-8B", request: "A10G:1" })).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(
      entriesOf(folder).map(({ adapter, user, card, decision, stopped }) => [
        adapter,
        user,
        card,
        decision,
        stopped,
      ]),
    ).toEqual([
      ["serve", "ada", "A10G", "refuse", true],
      ["serve", null, "H200", expect.stringMatching(/allow|warn/), false],
      ["serve", null, "A10G", "refuse", false],
    ]);
  });

  test("a service of the machine may write it", async () => {
    const unit = async (words: string[]) => (await run(["serve", "--print-unit", ...words])).out;
    expect(await unit(["--ledger", "/var/log/neu rarch"])).toContain(
      'ReadWritePaths="-/var/log/neu rarch"\n',
    );
    expect(await unit([])).not.toContain("ReadWritePaths");
  });

  test("every one of many submits at once", async () => {
    const folder = place();
    await Promise.all(Array.from({ length: 24 }, () => submit(["--ledger", folder])));
    expect(entriesOf(folder).length).toBe(24);
  });
});

describe.skipIf(!CI && !ROOT_USER)("a ledger that cannot be written", () => {
  const mounted: string[] = [];
  afterAll(() => {
    for (const folder of mounted) Bun.spawnSync(["umount", folder]);
  });
  const mount = (folder: string, options: string) => {
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]).exitCode).toBe(0);
    mounted.push(folder);
  };
  const own = (number = false) => `${number ? `uid${NOBODY}` : "nobody"}@${hostname()}.jsonl`;

  const MOUNTED = ["a read-only file system", "a full disk"];
  const ROWS: readonly (readonly [string, () => string])[] = [
    ["a folder that is not there, in one that is not ours", () => place(null)],
    ["a folder of others", () => place(0o755)],
    ["a folder without the sticky bit", () => place(0o777)],
    ["a file", () => script],
    ["a device", () => "/dev/full"],
    ["a path below a file", () => join(script, "x")],
    ["a path longer than any", () => `/\u0001/${"x".repeat(5000)}`],
    [
      "a read-only file system",
      () => {
        const folder = place();
        mount(folder, "size=64k,mode=1777");
        expect(Bun.spawnSync(["mount", "-o", "remount,ro", folder]).exitCode).toBe(0);
        return folder;
      },
    ],
    [
      "links, pipes and files of others in its place",
      () => {
        const folder = place();
        symlinkSync("/dev/zero", join(folder, own()));
        Bun.spawnSync(["mkfifo", "-m", "666", join(folder, own(true))]);
        return folder;
      },
    ],
    [
      "files of others in its place",
      () => {
        const folder = place();
        for (const number of [false, true]) writeFileSync(join(folder, own(number)), "root's\n");
        return folder;
      },
    ],
    [
      "a full disk",
      () => {
        const folder = place();
        mount(folder, "size=16k,mode=1777");
        Bun.spawnSync(["sh", "-c", `cat /dev/zero >${join(folder, "fill")}`]);
        return folder;
      },
    ],
  ];
  for (const [name, make] of ROWS) {
    for (const anonymous of [[], ["--ledger-anonymous"]] as const) {
      test.skipIf(!CI && MOUNTED.includes(name) && !CAN_MOUNT)(
        `${name}${anonymous.length > 0 ? ", anonymous" : ""}: the same verdict, and nothing said`,
        async () => {
          const folder = make();
          const before =
            existsSync(folder) && folder !== script && !folder.startsWith("/dev") ? readdirSync(folder) : [];
          const plain = await submit([], true);
          expect(plain.out).toStartWith("decision=reject\n");
          expect(await submit(["--ledger", folder, ...anonymous], true)).toEqual(plain);
          if (anonymous.length === 0 && before.length > 0)
            expect(readdirSync(folder).filter((file) => file !== own())).toEqual(
              before.filter((file) => file !== own()),
            );
        },
        20_000,
      );
    }
  }

  test("a name that someone else has taken: the number is ours, and theirs is left alone", async () => {
    const folder = place();
    writeFileSync(join(folder, own()), "root's\n");
    await submit(["--ledger", folder], true);
    expect(readdirSync(folder).sort()).toEqual([own(), own(true)]);
    expect(readFileSync(join(folder, own()), "utf8")).toBe("root's\n");
    expect(readLine(readFileSync(join(folder, own(true)), "utf8").trimEnd())).toMatchObject({
      user: "nobody",
    });
  });

  test("a folder that may not be listed is told, not taken for an empty one", async () => {
    const folder = place(0o1733);
    await submit(["--ledger", folder], true);
    const child = Bun.spawnSync(
      ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", gate, "ledger", folder],
      { cwd: "/" },
    );
    expect([child.exitCode, child.stdout.toString()]).toEqual([4, ""]);
    expect(child.stderr.toString()).toContain("permission denied");
    expect((await run(["ledger", folder])).out).toStartWith("1 verdict in ");
  });

  test.skipIf(!CI && !CAN_MOUNT)(
    "after a full disk the next line stands alone, and the report goes on",
    async () => {
      const folder = place();
      mount(folder, "size=4k,mode=1777");
      for (let times = 0; times < 12; times += 1) await submit(["--ledger", folder], true);
      writeFileSync(join(folder, "x"), "");
      expect(Bun.spawnSync(["mount", "-o", "remount,size=64k", folder]).exitCode).toBe(0);
      for (let times = 0; times < 2; times += 1) await submit(["--ledger", folder], true);
      const lines = readFileSync(join(folder, own()), "utf8")
        .split("\n")
        .filter((line) => line !== "");
      const whole = lines.filter((line) => typeof readLine(line) !== "string").length;
      expect(whole).toBeGreaterThan(2);
      expect(whole).toBeLessThan(14);
      const report = JSON.parse((await run(["ledger", folder, "--json"])).out);
      expect([report.totals.verdicts, report.corruptLines]).toEqual([whole, lines.length - whole]);
    },
  );
});

describe("the report", () => {
  let folder = "";
  beforeAll(() => {
    folder = place();
    const put = (name: string, ...lines: string[]) => writeFileSync(join(folder, name), lines.join(""));
    put(
      "ada@login1.jsonl",
      lineOf(verdictEntry({ time: "2026-11-30T12:00:00.000Z", usd: null, gpuHours: null })),
      lineOf(verdictEntry({ decision: "warn", stopped: false, waiver: "bo" })),
      lineOf(verdictEntry()).slice(0, 80),
    );
    put("ada@login1.jsonl.1", lineOf(verdictEntry({ time: "2026-10-01T00:00:00.000Z" })));
    put(
      "bo@login2.jsonl",
      lineOf(
        verdictEntry({
          user: "bo",
          host: "login2",
          model: '=HYPERLINK("x")',
          request: "H200:8",
          card: "H200",
          count: 8,
          decision: "warn",
          stopped: false,
          rule: "admission/over-requested",
          reason: "over-requested",
          fit: "over",
          usd: 108.96,
          overUsd: 95.34,
          gpuHours: 24,
        }),
      ),
      "\n",
      '{"v":2,"new":1}\n',
      "garbage\n",
    );
    put("salt", "x");
    put("notes.txt", "x");
    symlinkSync("/dev/zero", join(folder, "eve@login3.jsonl"));
  });
  const told = async (...words: string[]) => {
    const text = shown(await run(["ledger", ...words.map((word) => (word === "LEDGER" ? folder : word))]));
    return text.replaceAll(folder, "LEDGER").replaceAll("\r", "");
  };
  const COMMANDS: readonly (readonly string[])[] = [
    ["LEDGER"],
    ["LEDGER", "--since", "2026-11-01"],
    ["LEDGER", "--since", "2027-01-01"],
    ["LEDGER", "--csv"],
    ["LEDGER", "--json", "--since", "2026-11-30"],
    ["LEDGER", "--json", "--csv"],
    ["LEDGER", "--since", "2026-02-30"],
    ["LEDGER", "--since", "yesterday"],
    ["/nowhere/at/all"],
    ["/etc/passwd"],
    [],
  ];
  for (const words of COMMANDS)
    test(`ledger ${words.join(" ")}`, async () => expect(await told(...words)).toMatchSnapshot());

  test("the site's own where none is named", async () => {
    writeFileSync(at("site.toml"), `ledger = "${folder}"\n`);
    expect(await told("--config", at("site.toml"))).toBe(await told("LEDGER"));
    writeFileSync(at("site.toml"), 'ledger = "here"\n');
    expect((await run(["ledger", "--config", at("site.toml")])).exit).toBe(4);
  });
});
