import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { checkBinary } from "../../src/slurm/doctor-binary.ts";
import { checkSubmit } from "../../src/slurm/doctor-submit.ts";
import type { DoctorHost } from "../../src/slurm/doctor-types.ts";
import { luaWithSettings } from "../../src/slurm/lua.ts";
import { pluginNames, readSlurmConf } from "../../src/slurm/slurm-conf.ts";
import { Cluster, slurmIsHere, slurmVersion } from "./cluster.ts";

const ROOT = resolve(import.meta.dir, "../..");
const BINARY = join(ROOT, "dist/neurarch-gate");
const FILTER = readFileSync(join(ROOT, "lua/cli_filter.lua"), "utf8");
const CI = process.env.CI !== undefined;
const NOBODY = 65534;

describe("slurm.conf", () => {
  const FILES: Record<string, string> = {
    "/c/slurm.conf":
      "# a comment\nClusterName=x # more\nclifilterplugins = cli_filter/lua\nInclude more.conf\nInclude /d/x.conf\nProlog=\\\n  /p\nEpilog=a\\#b\n",
    "/c/more.conf": 'CliFilterPlugins="lua,user_defaults"\r\nInclude slurm.conf\n',
  };
  const values = readSlurmConf("/c/slurm.conf", (path) => FILES[path] ?? null);
  test("keys in any case, comments, quotes and files that are included", () => {
    expect(values.get("clifilterplugins")?.slice(0, 2)).toEqual([
      { value: "cli_filter/lua", file: "/c/slurm.conf", line: 3 },
      { value: "lua,user_defaults", file: "/c/more.conf", line: 1 },
    ]);
    expect(values.get("clustername")?.[0]?.value).toBe("x");
  });
  test("a line that goes on, and one that escapes its comment sign", () => {
    expect(values.get("prolog")?.[0]).toEqual({ value: "/p", file: "/c/slurm.conf", line: 6 });
    expect(values.get("epilog")?.[0]?.value).toBe("a\\#b");
  });
  test("names of plugins", () => {
    expect(pluginNames("cli_filter/lua, user_defaults,cli_filter/syslog")).toEqual([
      "lua",
      "user_defaults",
      "syslog",
    ]);
    expect(pluginNames("(null)")).toEqual([]);
  });
});

describe("a dry submit that does not come back", () => {
  const hostWhere = (isSlow: (argv: readonly string[]) => boolean): DoctorHost => ({
    env: { PATH: "/bin" },
    version: "1.0.0",
    read: () => null,
    info: () => null,
    real: (path) => path,
    list: () => [],
    find: (program) => `/bin/${program}`,
    run: async (argv) => {
      if (isSlow(argv)) return { exit: null, out: "", err: "", timedOut: true };
      return { exit: 0, out: argv[0] === "sinfo" ? "gpu:a10g:4\n" : "", err: "", timedOut: false };
    },
    settingsProblem: async () => null,
  });
  const statuses = async (isSlow: (argv: readonly string[]) => boolean) =>
    (await checkSubmit(true, hostWhere(isSlow))).map(({ check, status }) => `${check} ${status}`);
  test("at all", async () => {
    expect(await statuses((argv) => argv[0] === "sbatch")).toEqual(["submit fail", "submit-gpu skipped"]);
  });
  test("with a GPU", async () => {
    const slow = (argv: readonly string[]) => argv.some((word) => word.startsWith("--gres"));
    expect(await statuses(slow)).toEqual(["submit ok", "submit-gpu fail"]);
  });
});

describe("the file system of the binary", () => {
  const ROWS: readonly (readonly [name: string, mounts: string, status: string])[] = [
    ["a disk", "/dev/sda1 / ext4 rw 0 0", "ok"],
    ["a container", "overlay / overlay rw 0 0", "ok"],
    ["memory", "/dev/sda1 / ext4 rw 0 0\ntmpfs /opt tmpfs rw 0 0", "ok"],
    ["NFS", "/dev/sda1 / ext4 rw 0 0\nnas:/x /opt nfs4 rw 0 0", "warn"],
    ["Lustre", "/dev/sda1 / ext4 rw 0 0\nmds:/x /opt/gate lustre rw 0 0", "warn"],
    ["GPFS", "/dev/sda1 / ext4 rw 0 0\ngpfs /opt/gate gpfs rw 0 0", "warn"],
    [
      "CVMFS",
      "/dev/sda1 / ext4 rw 0 0\ncvmfs2 /opt/gate fuse rw 0 0\ncvmfs2 /opt/gate fuse.cvmfs ro 0 0",
      "warn",
    ],
    ["sshfs", "/dev/sda1 / ext4 rw 0 0\nx: /opt/gate fuse.sshfs rw 0 0", "warn"],
    ["NFS beside it", "/dev/sda1 / ext4 rw 0 0\nnas:/x /opt/ga nfs4 rw 0 0", "ok"],
    ["a disk over NFS", "nas:/ / nfs rw 0 0\n/dev/sda1 /opt ext4 rw 0 0", "ok"],
    ["NFS over a disk at one point", "/dev/sda1 /opt ext4 rw 0 0\nnas:/x /opt nfs rw 0 0", "warn"],
    ["nothing may run from it", "/dev/sda1 / ext4 rw,noexec 0 0", "fail"],
    ["no mounts to read", "", "skipped"],
  ];
  const gate = { kind: "file", uid: 0, gid: 0, mode: 0o755, size: 1 } as const;
  const hostWith = (mounts: string): DoctorHost => ({
    env: { PATH: "/bin" },
    version: "1.0.0",
    read: (path) => (path === "/proc/self/mounts" ? mounts : null),
    info: (path) => (path === "/opt/gate/neurarch-gate" ? gate : { ...gate, kind: "directory" }),
    real: (path) => path,
    list: () => [],
    find: (program) => `/bin/${program}`,
    run: async () => ({ exit: 0, out: "neurarch-gate 1.0.0 (x)\n", err: "", timedOut: false }),
    settingsProblem: async () => null,
  });
  for (const [name, mounts, status] of ROWS) {
    test(name, async () => {
      const checks = await checkBinary({ binary: "/opt/gate/neurarch-gate" }, hostWith(mounts));
      expect(checks.find(({ check }) => check === "binary-filesystem")?.status).toBe(status as "ok");
    });
  }
});

describe("the folder of a ledger", () => {
  const gate = { kind: "file", uid: 0, gid: 0, mode: 0o755, size: 1 } as const;
  const LEDGER = "/srv/ledger";
  const ROWS: readonly [string, "file" | "directory" | null, number, string][] = [
    ["for everyone, sticky", "directory", 0o1777, "ok"],
    ["written by everyone, listed by its owner", "directory", 0o1733, "ok"],
    ["without the sticky bit", "directory", 0o777, "warn"],
    ["root's alone", "directory", 0o700, "warn"],
    ["read by everyone", "directory", 0o755, "warn"],
    ["a file", "file", 0o666, "warn"],
    ["not there", null, 0, "warn"],
  ];
  for (const [name, kind, mode, status] of ROWS) {
    test(name, async () => {
      const checks = await checkBinary(
        { binary: "/opt/gate/neurarch-gate", ledger: LEDGER },
        {
          env: { PATH: "/bin" },
          version: "1.0.0",
          read: () => null,
          info: (path) =>
            path === LEDGER
              ? kind && { ...gate, kind, mode }
              : path.endsWith("neurarch-gate")
                ? gate
                : { ...gate, kind: "directory" },
          real: (path) => path,
          list: () => [],
          find: (program) => `/bin/${program}`,
          run: async () => ({ exit: 0, out: "neurarch-gate 1.0.0 (x)\n", err: "", timedOut: false }),
          settingsProblem: async () => null,
        },
      );
      expect(checks.find(({ check }) => check === "ledger")?.status).toBe(status as "ok");
    });
  }
});

interface Report {
  readonly exit: number;
  readonly status: Readonly<Record<string, string>>;
  readonly message: Readonly<Record<string, string>>;
  readonly fix: Readonly<Record<string, string | null>>;
}

// Under CI these run and fail where something is missing; elsewhere they are left out.
describe.skipIf(!CI && !(slurmIsHere && existsSync(BINARY)))("doctor slurm on a real cluster", () => {
  let slurm: Cluster;
  let etc: string;
  let filter: string;
  let conf: string;
  let gates: string;
  let gate: string;
  let confText: string;

  beforeAll(() => {
    slurm = Cluster.start();
    etc = join(slurm.folder, "etc");
    filter = join(etc, "cli_filter.lua");
    conf = join(etc, "slurm.conf");
    confText = readFileSync(conf, "utf8");
    gates = join(slurm.folder, "gates");
    mkdirSync(gates);
    gate = join(gates, "neurarch-gate");
    copyFileSync(BINARY, gate);
    for (const path of [gates, gate]) chmodSync(path, 0o755);
  }, 60_000);
  afterAll(() => slurm?.stop(), 60_000);

  /** Everything as it should be. */
  beforeEach(() => {
    for (const folder of [etc, gates, slurm.folder]) chmodSync(folder, 0o755);
    rmSync(filter, { force: true, recursive: true });
    writeFileSync(conf, confText);
    install({});
  });

  function install(settings: Record<string, string | number>, more = ""): void {
    writeFileSync(filter, `${luaWithSettings(FILTER, { binary: gate, ...settings })}${more}`);
    chmodSync(filter, 0o644);
    chownSync(filter, 0, 0);
  }

  function standIn(text: string, mode = 0o755): string {
    const path = join(gates, "stand-in");
    writeFileSync(path, text);
    chmodSync(path, mode);
    chownSync(path, 0, 0);
    return path;
  }

  function file(name: string, text: string, mode = 0o644): string {
    const path = join(etc, name);
    writeFileSync(path, text);
    chmodSync(path, mode);
    return path;
  }

  function doctor(words: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Report {
    const { exit, out } = slurm.run([gate, "doctor", "slurm", "--json", ...words], { env });
    const { schema, version, subject, ok, checks } = JSON.parse(out);
    expect({ schema, version, subject }).toEqual({
      schema: "neurarch-gate/doctor",
      version: 1,
      subject: "slurm",
    });
    const pick = (key: string) =>
      Object.fromEntries(checks.map((check: Record<string, string>) => [check.check, check[key]]));
    const report = { exit, status: pick("status"), message: pick("message"), fix: pick("fix") } as Report;
    expect(ok).toBe(!Object.values(report.status).includes("fail"));
    // What is wrong comes with what to do.
    for (const [check, status] of Object.entries(report.status)) {
      if (status === "fail" || status === "warn")
        expect([check, typeof report.fix[check]]).toEqual([check, "string"]);
    }
    return report;
  }

  const ALL = [
    "slurm-conf",
    "plugin",
    "filter-file",
    "filter-lua",
    "binary",
    "binary-filesystem",
    "timeout-program",
    "settings",
    "answer",
    "submit",
    "submit-gpu",
  ];

  test("a sound installation", () => {
    const { exit, status, message } = doctor();
    expect(Object.keys(status)).toEqual(ALL);
    expect({ exit, status, message }).toMatchObject({
      exit: 0,
      status: Object.fromEntries(ALL.map((check) => [check, "ok"])),
    });
    expect(message["slurm-conf"]).toBe(`${conf} (SLURM_CONF)`);
    expect(message["filter-lua"]).toStartWith("loads under Lua 5.1, which this Slurm links");
    expect(message["submit-gpu"]).toContain("is judged: Neurarch: deepseek-ai/DeepSeek-V2 needs ");
    expect(slurm.jobs()).toBe(0);
  });

  test("the same for people", () => {
    const { exit, out, err } = slurm.run([gate, "doctor", "slurm"]);
    expect({ exit, err }).toEqual({ exit: 0, err: "" });
    expect(out).toMatch(/^ok {5}slurm-conf {9}\S+slurm\.conf \(SLURM_CONF\)\n/);
    expect(out).toEndWith("\n\nAll is well.\n");
  });

  test("reject mode with the cluster's own types", () => {
    install({
      mode: "reject",
      gpu_map: file("map.json", '{"a10g": "A10G", "a100": "A100-80", "h100": "H100"}'),
    });
    const { exit, status, message } = doctor();
    expect({ exit, settings: status.settings, gpu: status["submit-gpu"] }).toEqual({
      exit: 0,
      settings: "ok",
      gpu: "ok",
    });
    expect(message["submit-gpu"]).toContain("is judged: Neurarch: deepseek-ai/DeepSeek-V2 needs ");
  });

  test("beside a filter of the site's own", () => {
    install(
      {},
      "\nfunction slurm_cli_pre_submit(options, offset) return neurarch.pre_submit(options, offset) end\n",
    );
    expect(doctor().exit).toBe(0);
  });

  type Row = readonly [
    name: string,
    breakIt: () => unknown,
    check: string,
    status: "fail" | "warn",
    message: RegExp,
    exit?: number,
    env?: Record<string, string>,
  ];
  const REFUSES_ALL =
    "function slurm_cli_setup_defaults() return 0 end function slurm_cli_post_submit() return 0 end function slurm_cli_pre_submit()";
  const ROWS: readonly Row[] = [
    [
      "SLURM_CONF names nothing",
      () => {},
      "slurm-conf",
      "fail",
      /does not exist$/,
      4,
      { SLURM_CONF: "/nowhere/slurm.conf" },
    ],
    [
      "--slurm-conf names nothing",
      () => ["--slurm-conf", "/nowhere/slurm.conf"],
      "slurm-conf",
      "fail",
      /does not exist$/,
    ],
    [
      "no slurm.conf anywhere",
      () => {},
      "slurm-conf",
      "fail",
      /^No slurm\.conf was found/,
      5,
      { SLURM_CONF: "" },
    ],
    [
      "no CliFilterPlugins",
      () => writeFileSync(conf, confText.replace(/^CliFilterPlugins.*$/m, "")),
      "plugin",
      "fail",
      /has no CliFilterPlugins line$/,
    ],
    [
      "another plugin",
      () => writeFileSync(conf, confText.replace("cli_filter/lua", "cli_filter/user_defaults")),
      "plugin",
      "fail",
      /does not name lua$/,
    ],
    [
      "a later line without lua",
      () => writeFileSync(conf, `${confText}CliFilterPlugins=user_defaults\n`),
      "plugin",
      "fail",
      /replaces the line \S+slurm\.conf:\d+, which does$/,
    ],
    [
      "the line twice",
      () => writeFileSync(conf, `${confText}CliFilterPlugins=lua\n`),
      "plugin",
      "warn",
      /stands 2 times/,
      0,
    ],
    [
      "no filter",
      () => rmSync(filter),
      "filter-file",
      "fail",
      /does not exist, so Slurm refuses every submit/,
    ],
    [
      "a folder for a filter",
      () => {
        rmSync(filter);
        mkdirSync(filter);
      },
      "filter-file",
      "fail",
      /is no regular file/,
    ],
    ["an empty filter", () => writeFileSync(filter, ""), "filter-file", "fail", /is empty/],
    [
      "a filter for root alone",
      () => chmodSync(filter, 0o600),
      "filter-file",
      "fail",
      /mode 0600: users cannot read it/,
    ],
    [
      "a folder for root alone",
      () => chmodSync(etc, 0o700),
      "filter-file",
      "fail",
      /^Users cannot enter \S+etc,/,
    ],
    [
      "a filter of someone else",
      () => chownSync(filter, NOBODY, NOBODY),
      "filter-file",
      "warn",
      /belongs to user 65534/,
      0,
    ],
    [
      "a filter that everyone can write",
      () => chmodSync(filter, 0o666),
      "filter-file",
      "fail",
      /^Everyone can write \S+cli_filter\.lua/,
    ],
    [
      "a folder that everyone can write",
      () => chmodSync(etc, 0o777),
      "filter-file",
      "fail",
      /^Everyone can write into \S+etc/,
    ],
    [
      "a link to someone else's file",
      () => {
        const real = join(etc, "mine.lua");
        writeFileSync(real, readFileSync(filter));
        chownSync(real, NOBODY, NOBODY);
        rmSync(filter);
        symlinkSync(real, filter);
      },
      "filter-file",
      "warn",
      /mine\.lua belongs to user 65534/,
      0,
    ],
    [
      "a syntax error",
      () => install({}, "\nif\n"),
      "filter-lua",
      "fail",
      /does not load under Lua 5\.1, which this Slurm links/,
    ],
    [
      "a line for a newer Lua",
      () => install({}, "\nlocal half = 7 // 2\n"),
      "filter-lua",
      "fail",
      /does not load under Lua 5\.1/,
    ],
    ["an error at its top level", () => install({}, '\nerror("boom")\n'), "filter-lua", "fail", /boom/],
    [
      "a function missing",
      () => install({}, "\nslurm_cli_post_submit = nil\n"),
      "filter-lua",
      "fail",
      /does not define slurm_cli_post_submit/,
    ],
    [
      "a filter that is not ours",
      () => writeFileSync(filter, `${REFUSES_ALL} return 0 end\n`),
      "filter-lua",
      "fail",
      /of the site's own that does not load ours$/,
    ],
    [
      "no binary",
      () => install({ binary: "/nowhere/neurarch-gate" }),
      "binary",
      "fail",
      /does not exist on this host$/,
    ],
    ["a folder for a binary", () => install({ binary: etc }), "binary", "fail", /is no regular file$/],
    [
      "a binary nobody may run",
      () => install({ binary: standIn("#!/bin/sh\n", 0o644) }),
      "binary",
      "fail",
      /mode 0644: users cannot run it$/,
    ],
    [
      "a binary for root alone",
      () => install({ binary: standIn("#!/bin/sh\n", 0o700) }),
      "binary",
      "fail",
      /mode 0700: users cannot run it$/,
    ],
    [
      "a binary behind a closed folder",
      () => {
        mkdirSync(join(gates, "shut"), { recursive: true });
        const path = join(gates, "shut/gate");
        writeFileSync(path, "#!/bin/sh\n");
        chmodSync(path, 0o755);
        chmodSync(join(gates, "shut"), 0o700);
        install({ binary: path });
      },
      "binary",
      "fail",
      /^Users cannot enter \S+shut, so/,
    ],
    [
      "a binary of someone else",
      () => {
        const path = standIn("#!/bin/sh\n");
        chownSync(path, NOBODY, NOBODY);
        install({ binary: path });
      },
      "binary",
      "warn",
      /belongs to user 65534/,
    ],
    [
      "a binary that everyone can write",
      () => install({ binary: standIn("#!/bin/sh\n", 0o777) }),
      "binary",
      "fail",
      /^Everyone can write/,
    ],
    [
      "a binary that crashes",
      () => install({ binary: standIn("#!/bin/sh\nkill -SEGV $$\n") }),
      "binary",
      "fail",
      /--version ended/,
    ],
    [
      "another program",
      () => install({ binary: standIn("#!/bin/sh\necho hello\n") }),
      "binary",
      "fail",
      /--version ended 0: hello$/,
    ],
    [
      "another version",
      () =>
        install({
          binary: standIn(
            `#!/bin/sh\n[ "$1" = --version ] && echo "neurarch-gate 9.9.9 (x)" && exit\nexec '${gate}' "$@"\n`,
          ),
        }),
      "binary",
      "warn",
      /is 9\.9\.9, and this is /,
      0,
    ],
    [
      "a binary that says nothing",
      () => install({ binary: standIn(`#!/bin/sh\n[ "$1" = --version ] && exec '${gate}' "$@"\n`) }),
      "answer",
      "fail",
      /did not answer a request like the filter's/,
    ],
    [
      "the same, as a user meets it",
      () => install({ binary: standIn(`#!/bin/sh\n[ "$1" = --version ] && exec '${gate}' "$@"\n`) }),
      "submit-gpu",
      "fail",
      /this job was not judged: \S+ gave no verdict/,
    ],
    [
      "no GPU map",
      () => install({ gpu_map: join(etc, "nowhere.json") }),
      "settings",
      "fail",
      /^gpu_map = \S+ does not exist on this host, so no job is judged$/,
    ],
    [
      "a GPU map for root alone",
      () => install({ gpu_map: file("shut.json", "{}", 0o600) }),
      "settings",
      "fail",
      /cannot be read by users/,
    ],
    [
      "a GPU map that is no JSON",
      () => install({ gpu_map: file("bad.json", "a10g = A10G") }),
      "settings",
      "fail",
      /is not JSON.*, so no job is judged$/,
    ],
    [
      "a GPU map without the cluster's types",
      () => install({ gpu_map: file("other.json", '{"v100": "V100-32"}') }),
      "submit-gpu",
      "warn",
      /does not list/,
      0,
    ],
    [
      "a site file with a slip",
      () => install({ config: file("slip.toml", 'mod = "reject"\n') }),
      "settings",
      "fail",
      /unknown key `mod`, so no job is judged$/,
    ],
    [
      "reject mode by card names alone",
      () => install({ mode: "reject" }),
      "settings",
      "warn",
      /without a gpu_map/,
      0,
    ],
    [
      "a filter that refuses everything",
      () => writeFileSync(filter, `${REFUSES_ALL} return -1 end\n`),
      "submit",
      "fail",
      /is refused by the filter/,
    ],
    ["a filter that is not loaded", () => rmSync(filter), "submit", "fail", /is refused by the filter/],
    ["no sbatch", () => {}, "submit", "fail", /^sbatch is not on PATH/, 5, { PATH: "/nowhere" }],
    [
      "slurmctld away",
      () =>
        writeFileSync(
          conf,
          `${confText.replace(/^SlurmctldPort=.*$/m, "SlurmctldPort=1")}MessageTimeout=2\n`,
        ),
      "submit",
      "warn",
      /^slurmctld does not answer/,
      5,
    ],
  ];
  for (const [name, breakIt, check, status, message, exit = 4, env] of ROWS) {
    test(name, () => {
      const words = breakIt();
      const report = doctor(Array.isArray(words) ? words : [], env);
      expect({ status: report.status[check], message: report.message[check], exit: report.exit }).toEqual({
        status,
        message: expect.stringMatching(message),
        exit,
      });
      expect(slurm.run(["true"]).exit).toBe(0);
    });
  }

  test("a doctor for something else", () => {
    expect(slurm.run([gate, "doctor", "cat"])).toMatchObject({
      exit: 2,
      out: "",
      err: expect.stringContaining("there is no doctor for cat"),
    });
    expect(slurm.run([gate, "doctor", "slurm", "--slurm-cnf", "x"]).exit).toBe(2);
    expect(slurmVersion()).not.toBe("");
  });
});
