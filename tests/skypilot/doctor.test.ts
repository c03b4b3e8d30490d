import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BINARY, ROOT } from "../acceptance/run.ts";
import { type Server, serve } from "../serve/server.ts";

const python = process.env.NEURARCH_TEST_SKY_PYTHON;
const CI = process.env.CI === "true";
const SHIM = join(ROOT, "python-shim");

interface Setup {
  readonly env?: Readonly<Record<string, string>>;
  readonly words?: readonly string[];
}
interface Report {
  readonly exit: number;
  readonly checks: readonly {
    readonly check: string;
    readonly status: string;
    readonly message: string;
    readonly fix: string | null;
  }[];
}

describe.skipIf(python === undefined && !CI)("doctor sky, with real files and real servers", () => {
  const folder = mkdtempSync(join(tmpdir(), "neurarch-doctor-"));
  const home = join(folder, "home");
  const gate = join(folder, "neurarch-gate");
  const modules = join(folder, "modules");
  let server: Server;
  let keyed: Server;
  let secure: Server;
  let stranger: ReturnType<typeof Bun.serve>;

  beforeAll(async () => {
    mkdirSync(join(home, ".sky"), { recursive: true });
    mkdirSync(modules);
    copyFileSync(BINARY, gate);
    const keys = file("keys", "team:long-password\n");
    const tls = join(ROOT, "tests/fixtures/tls");
    server = await serve();
    keyed = await serve(["--auth-file", keys]);
    secure = await serve([
      "--tls-cert",
      join(tls, "localhost.cert.pem"),
      "--tls-key",
      join(tls, "localhost.key.pem"),
    ]);
    stranger = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
  }, 60_000);
  afterAll(async () => {
    await Promise.all([server, keyed, secure].map((one) => one?.stop()));
    stranger?.stop(true);
    rmSync(folder, { recursive: true, force: true });
  });

  function file(name: string, text: string, mode = 0o644): string {
    const path = join(folder, name);
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  }
  const config = (text: string) => writeFileSync(join(home, ".sky/config.yaml"), text);
  const policy = (value: string) => config(`admin_policy: ${value}\n`);
  const after = (_: unknown, setup?: Setup): Setup | undefined => setup;
  let made = 0;
  /** A subclass with attributes of its own. */
  function subclass(attributes: string): void {
    const name = `site${made++}`;
    writeFileSync(
      join(modules, `${name}.py`),
      `from neurarch_gate import NeurarchPolicy\nclass P(NeurarchPolicy):\n    binary = '${gate}'\n    ${attributes}\n`,
    );
    policy(`${name}.P`);
  }

  async function doctor(
    { env = {}, words = [] }: Setup = {},
    json = true,
  ): Promise<Report & { out: string }> {
    const child = Bun.spawn(
      [BINARY, "doctor", "sky", "--python", python!, ...(json ? ["--json"] : []), ...words],
      {
        cwd: folder,
        env: {
          PATH: "/usr/bin:/bin",
          HOME: home,
          PYTHONPATH: `${SHIM}:${modules}`,
          PYTHONDONTWRITEBYTECODE: "1",
          HF_HUB_OFFLINE: "1",
          ...env,
        },
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const out = await new Response(child.stdout).text();
    const exit = await child.exited;
    return { exit, out, checks: json ? JSON.parse(out).checks : [] };
  }

  test("a sound class policy", async () => {
    subclass("pass");
    const { exit, checks } = await doctor();
    expect({ exit, wrong: checks.filter(({ status }) => status !== "ok") }).toEqual({ exit: 0, wrong: [] });
    expect(checks.map(({ check }) => check)).toEqual([
      "config",
      "policy",
      "python",
      "sky",
      "class",
      "shim",
      "binary",
      "settings",
      "answer",
      "side",
    ]);
  });
  test("a sound REST policy, for people", async () => {
    policy(server.address);
    const { exit, out } = await doctor({}, false);
    expect({ exit, out }).toMatchObject({ exit: 0 });
    expect(out).toEndWith("All is well.\n");
  });

  const address = (one: Server, key: string) => one.address.replace("//", `//${key}@`);
  const ROWS: readonly (readonly [
    name: string,
    breakIt: () => unknown,
    check: string,
    status: "fail" | "warn",
    message: RegExp,
    exit?: number,
  ])[] = [
    [
      "no config",
      () => void rmSync(join(home, ".sky/config.yaml"), { force: true }),
      "policy",
      "fail",
      /nothing is judged$/,
    ],
    [
      "no policy in it",
      () => config("jobs: {}\n"),
      "policy",
      "fail",
      /no config of SkyPilot names an admin_policy/,
    ],
    ["an empty config", () => config(""), "policy", "fail", /no config/],
    ["no YAML", () => config("a: [1\nb: {"), "config", "fail", /cannot be read at line/],
    ["a list", () => config("- a\n"), "config", "fail", /is no YAML mapping/],
    [
      "an endpoint of another kind",
      () => config("api_server: {endpoint: ftp://x}\n"),
      "config",
      "fail",
      /no http or https address/,
    ],
    [
      "an API server that is no mapping",
      () => config("api_server: http://x\n"),
      "config",
      "fail",
      /api_server in .* is no mapping/,
    ],
    [
      "a list of policies",
      () => config("admin_policy: [a]\n"),
      "config",
      "fail",
      /is no text, and SkyPilot refuses the file$/,
    ],
    [
      "the policy twice",
      () => config("admin_policy: a\nadmin_policy: b\n"),
      "config",
      "fail",
      /stands twice/,
    ],
    [
      "a variable that names nothing",
      () => ({ env: { SKYPILOT_GLOBAL_CONFIG: "/nowhere.yaml" } }),
      "config",
      "fail",
      /SKYPILOT_GLOBAL_CONFIG names \/nowhere\.yaml/,
    ],
    [
      "a project's config that names nothing",
      () => after(config("{}\n"), { env: { SKYPILOT_PROJECT_CONFIG: "x.yaml" } }),
      "config",
      "fail",
      /SKYPILOT_PROJECT_CONFIG names/,
    ],
    [
      "a project that turns it off, as SkyPilot does not let it",
      () => {
        subclass("pass");
        return { env: { SKYPILOT_PROJECT_CONFIG: file("off.yaml", "admin_policy: null\n") } };
      },
      "config",
      "fail",
      /admin_policy in .*off\.yaml is no text, and SkyPilot refuses the file/,
    ],
    [
      "a config of its controllers in place of all",
      () => {
        subclass("pass");
        return { env: { SKYPILOT_CONFIG: file("only.yaml", "jobs: {}\n") } };
      },
      "policy",
      "fail",
      /nothing is judged/,
    ],
    [
      "an API server elsewhere, by the user's config",
      () => {
        subclass("pass");
        writeFileSync(
          join(home, ".sky/config.yaml"),
          "api_server: {endpoint: 'https://u:secret@sky.example/'}\n",
          { flag: "a" },
        );
      },
      "side",
      "warn",
      /^the API server at https:\/\/\.\.\.@sky\.example \(api_server\.endpoint of .*\/\.sky\/config\.yaml\) applies/,
      0,
    ],
    [
      "no policy here, and an API server elsewhere",
      () => config("api_server: {endpoint: 'http://sky.example:46580'}\n"),
      "policy",
      "warn",
      /^no config here names an admin_policy; the API server at http:\/\/sky\.example:46580 .* applies that of its own$/,
      0,
    ],
    [
      "an endpoint that is empty",
      () => after(subclass("pass"), { env: { SKYPILOT_API_SERVER_ENDPOINT: "" } }),
      "config",
      "fail",
      /^SKYPILOT_API_SERVER_ENDPOINT is empty/,
    ],
    [
      "a Python that is not there",
      () => after(subclass("pass"), { words: ["--python", "/nowhere/python"] }),
      "python",
      "fail",
      /did not run/,
    ],
    [
      "a Python without SkyPilot",
      () =>
        after(subclass("pass"), {
          words: ["--python", file("python", '#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n', 0o755)],
        }),
      "sky",
      "fail",
      /cannot import sky/,
    ],
    [
      "a package that is not installed",
      () => after(policy("neurarch_gate.NeurarchPolicy"), { env: { PYTHONPATH: modules } }),
      "class",
      "fail",
      /No module named 'neurarch_gate'/,
    ],
    [
      "a class that is not there",
      () => policy("neurarch_gate.NeurarchPolcy"),
      "class",
      "fail",
      /has no attribute 'NeurarchPolcy'/,
    ],
    [
      "a class of another kind",
      () => policy("collections.OrderedDict"),
      "class",
      "fail",
      /is no sky\.AdminPolicy/,
    ],
    ["somebody else's policy", () => policy("sky.AdminPolicy"), "class", "fail", /is not NeurarchPolicy/],
    [
      "an older package",
      () => after(subclass("import neurarch_gate; neurarch_gate.__version__ = '0.0.1'"), undefined),
      "shim",
      "warn",
      /is 0\.0\.1, and this executable is/,
      0,
    ],
    [
      "a package that was changed",
      () => {
        const changed = join(folder, "changed");
        mkdirSync(join(changed, "neurarch_gate"), { recursive: true });
        copyFileSync(join(SHIM, "neurarch_gate/__init__.py"), join(changed, "neurarch_gate/__init__.py"));
        writeFileSync(join(changed, "neurarch_gate/__init__.py"), "# ours\n", { flag: "a" });
        subclass("pass");
        return { env: { PYTHONPATH: `${changed}:${modules}` } };
      },
      "shim",
      "warn",
      /is not the file that this executable prints/,
      0,
    ],
    [
      "no executable",
      () => subclass("binary = '/nowhere/gate'"),
      "binary",
      "fail",
      /\/nowhere\/gate does not exist/,
    ],
    ["half a path", () => subclass("binary = 'neurarch-gate'"), "binary", "fail", /no whole path/],
    ["a folder", () => subclass(`binary = '${folder}'`), "binary", "fail", /is no file/],
    [
      "one that may not be run",
      () => subclass(`binary = '${file("plain", "x")}'`),
      "binary",
      "fail",
      /may not be run \(mode 644\)/,
    ],
    [
      "one that crashes",
      () => subclass(`binary = '${file("crash", "#!/bin/sh\nexit 3\n", 0o755)}'`),
      "binary",
      "fail",
      /--version did not answer/,
    ],
    [
      "another version",
      () => subclass(`binary = '${file("old", "#!/bin/sh\necho neurarch-gate 0.0.1\n", 0o755)}'`),
      "binary",
      "warn",
      /is 0\.0\.1, and this is/,
      4,
    ],
    [
      "one that answers nonsense",
      () => subclass(`binary = '${file("odd", "#!/bin/sh\necho hello\n", 0o755)}'`),
      "answer",
      "fail",
      /JSONDecodeError/,
    ],
    [
      "settings that are not there",
      () => subclass("config = '/nowhere.toml'"),
      "settings",
      "fail",
      /so no task is judged$/,
    ],
    [
      "a cap that is no number",
      () => subclass("max_cost_usd = 'much'"),
      "settings",
      "fail",
      /so no task is judged$/,
    ],
    [
      "a cap by variable",
      () => after(subclass("pass"), { env: { NEURARCH_POLICY_MAX_COST_USD: "-3" } }),
      "settings",
      "fail",
      /so no task is judged$/,
    ],
    ["a time that is none", () => subclass("timeout_s = 'soon'"), "settings", "fail", /timeout_s is soon/],
    [
      "a policy file that is not there",
      () => subclass("policy_file = '/nowhere.yml'"),
      "settings",
      "fail",
      /policy_file = \/nowhere\.yml cannot be read/,
    ],
    [
      "a ledger that is not there",
      () => subclass("ledger = '/nowhere'"),
      "ledger",
      "warn",
      /is no folder/,
      0,
    ],
    [
      "an API server elsewhere",
      () => after(subclass("pass"), { env: { SKYPILOT_API_SERVER_ENDPOINT: "http://u:secret@h/" } }),
      "side",
      "warn",
      /^the API server at http:\/\/\.\.\.@h \(SKYPILOT_API_SERVER_ENDPOINT\) applies/,
      0,
    ],
    [
      "a server that is down",
      () => policy("http://127.0.0.1:9/"),
      "reached",
      "fail",
      /cannot be reached \(refused\); SkyPilot refuses every request/,
      5,
    ],
    ["an address that is none", () => policy("'http://a b/'"), "address", "fail", /no whole address/],
    [
      "something else that answers",
      () => policy(`http://127.0.0.1:${stranger.port}/`),
      "answer",
      "fail",
      /is no admin policy of ours/,
    ],
    ["a path of the API", () => policy(`${server.address}/v1/judge`), "answer", "fail", /status 400/],
    ["no key", () => policy(keyed.address), "answer", "fail", /does not let this key in \(401\)/],
    ["a wrong key", () => policy(address(keyed, "team:wrong-password")), "answer", "fail", /\(401\)/],
    [
      "a certificate that is not trusted",
      () => policy(secure.address),
      "reached",
      "fail",
      /is not trusted here/,
    ],
  ];
  test.each(ROWS)("%s", async (_, breakIt, check, status, message, exit = 4) => {
    const setup = breakIt();
    const report = await doctor((setup as Setup | undefined) ?? {});
    const found = report.checks.filter((one) => one.check === check && one.status === status);
    expect({ found: found[0]?.message ?? JSON.stringify(report.checks), exit: report.exit }).toMatchObject({
      found: expect.stringMatching(message),
      exit,
    });
    for (const one of report.checks) {
      if (one.status === "fail" || one.status === "warn") expect(one.fix).toBeString();
      expect(one.message).not.toMatch(/password|secret@/);
    }
  });

  test("config, policy and endpoint are those of SkyPilot itself", async () => {
    const user = (text: string) => ({ "home/.sky/config.yaml": text });
    const A = "api_server: {endpoint: http://a:1/}\n";
    const sets: readonly { files: Record<string, string>; env?: Record<string, string> }[] = [
      { files: {} },
      { files: user(A) },
      { files: { ...user(A), ".sky.yaml": "api_server: {endpoint: https://b/x//}\n" } },
      { files: { ...user(A), ".sky.yaml": "admin_policy: x.Y\n" } },
      { files: { ...user(`${A}admin_policy: x.Y\n`), ".sky.yaml": "admin_policy: z.Z\n" } },
      { files: user(A), env: { SKYPILOT_API_SERVER_ENDPOINT: "http://e/" } },
      {
        files: { ...user(A), "g.yaml": "api_server: {endpoint: http://g/}\nadmin_policy: g.G\n" },
        env: { SKYPILOT_GLOBAL_CONFIG: "g.yaml" },
      },
      { files: { ...user(A), "p.yaml": "admin_policy: p.P\n" }, env: { SKYPILOT_PROJECT_CONFIG: "p.yaml" } },
      { files: user(A), env: { SKYPILOT_GLOBAL_CONFIG: "", SKYPILOT_PROJECT_CONFIG: "" } },
      { files: { ...user(A), "i.yaml": "admin_policy: i.I\n" }, env: { SKYPILOT_CONFIG: "i.yaml" } },
      { files: user("api_server: {endpoint: 'http://localhost:46580'}\n") },
      {
        files: user("api_server: {endpoint: 'http://localhost:46580'}\n"),
        env: { SKYPILOT_API_SERVER_ENDPOINT: "http://127.0.0.1:46580/" },
      },
      ...[
        "api_server: null\n",
        "api_server: {endpoint: null}\n",
        "api_server: {endpoint: ftp://a}\n",
        "api_server: http://a\n",
        "admin_policy: null\n",
        "admin_policy: [a]\n",
        "admin_policy: 1\n",
      ].map((text) => ({ files: user(text) })),
      { files: {}, env: { SKYPILOT_CONFIG: "" } },
      { files: {}, env: { SKYPILOT_GLOBAL_CONFIG: "/nowhere.yaml" } },
      { files: {}, env: { SKYPILOT_PROJECT_CONFIG: "/nowhere.yaml" } },
    ];
    const folders = sets.map(({ files }, index) => {
      const set = join(folder, `set${index}`);
      for (const [name, text] of Object.entries({ "home/x": "", ...files })) {
        mkdirSync(dirname(join(set, name)), { recursive: true });
        writeFileSync(join(set, name), text);
      }
      return set;
    });
    const child = Bun.spawn([python!, join(import.meta.dir, "lab/endpoint.py")], {
      stdin: new Blob([JSON.stringify(sets.map(({ env = {} }, index) => [folders[index], env]))]),
      stdout: "pipe",
      env: { PATH: "/usr/bin:/bin", HOME: folder, SKYPILOT_DISABLE_USAGE_COLLECTION: "1" },
    });
    const real: readonly { error?: string; endpoint?: string; policy?: string | null }[] = JSON.parse(
      (await new Response(child.stdout).text()).trim().split("\n").at(-1)!,
    );
    expect(real.length).toBe(sets.length);
    for (const [index, { env = {} }] of sets.entries()) {
      const { error, endpoint, policy } = real[index]!;
      const ran = Bun.spawnSync([BINARY, "doctor", "sky", "--python", "/nowhere", "--json"], {
        cwd: folders[index]!,
        env: { PATH: "/usr/bin:/bin", HOME: join(folders[index]!, "home"), ...env },
      });
      const { checks } = JSON.parse(ran.stdout.toString()) as Report;
      const broken = checks.some(({ check, status }) => check === "config" && status === "fail");
      const said = checks.map(({ message }) => message).join("\n");
      expect({ index, broken }).toEqual({ index, broken: error !== undefined });
      if (error !== undefined) continue;
      const named = /^admin_policy: (\S+)/m.exec(said)?.[1] ?? null;
      expect({ index, named }).toEqual({ index, named: policy ?? null });
      const elsewhere = /the API server at (\S+) \(/.exec(said)?.[1] ?? null;
      const here = /^http:\/\/(?:0\.0\.0\.0|localhost|127\.0\.0\.1):46580$/.test(endpoint!);
      expect({ index, elsewhere }).toEqual({ index, elsewhere: here ? null : endpoint! });
    }
  }, 60_000);

  test("a key that is let in", async () => {
    policy(address(keyed, "team:long-password"));
    const { exit, checks } = await doctor();
    expect({ exit, wrong: checks.filter(({ status }) => status !== "ok") }).toEqual({ exit: 0, wrong: [] });
  });
});
