import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { globMatcher } from "../../src/bridge/staging/glob.ts";
import { secretByContent, secretByName } from "../../src/bridge/staging/secrets.ts";
import { openStaging } from "../../src/daemon/staging.ts";
import { id } from "./journal-fixtures.ts";

let root = "";
let workspace = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "staging-"));
  workspace = join(root, "ws");
  mkdirSync(workspace);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, text = "x", mtimeS = 1_700_000_000) {
  const full = join(workspace, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
  utimesSync(full, mtimeS, mtimeS);
}
const open = (
  over: { hide?: string[]; include?: string[]; env?: typeof process.env } = {},
  folder = join(root, "snapshots"),
) => openStaging(folder, { workspace, hide: [], include: [], env: process.env, ...over });
async function staged(over: Parameters<typeof open>[0] = {}) {
  const outcome = await (await open(over)).snapshot(id(1));
  if (!outcome.ok) throw new Error(`${outcome.error.error}: ${outcome.error.message}`);
  return outcome.value;
}
const names = (folder: string) => (readdirSync(folder, { recursive: true }) as string[]).sort();
async function refusal(over: Parameters<typeof open>[0] = {}) {
  const outcome = await (await open(over)).snapshot(id(1));
  return outcome.ok ? "staged" : `${outcome.error.error}: ${outcome.error.message}`;
}

describe("what is staged", () => {
  test("names at any depth, hidden paths, credentials and large weights stay behind", async () => {
    for (const path of [
      "a.py",
      ".env",
      ".env.local",
      ".venv/x",
      "sub/node_modules/m",
      "sub/build/o",
      "dist/d",
      ".git/HEAD",
      ".bin/b",
      ".pip/p",
      ".uv-cache/u",
      ".vibesys-evaluator-package/check.sh",
      "sub/.vibesys-evaluator-tools/t",
      ".vibesys-evaluator-toolchains/t",
      "out/kept",
      "agent.toml",
      ".vibesys/logs/l",
      ".vibesys/state/s",
      ".vibesys/keep",
      "sub/.vibesys/logs/kept",
      "secret/plan",
      "sub/.ssh/config",
      ".netrc",
      "deep/id_rsa",
      "deep/id_rsa.pub",
      ".skyignore",
      ".ready",
    ])
      put(path);
    put("key.pem", "Bag\n-----BEGIN RSA PRIVATE KEY-----\n");
    put("cert.pem", "-----BEGIN CERTIFICATE-----\n");
    put("quotes.py", 'K = "-----BEGIN RSA PRIVATE KEY-----"\n');
    for (const name of ["big.safetensors", "ours.safetensors", "small.bin"]) put(name);
    for (const name of ["big.safetensors", "ours.safetensors"])
      truncateSync(join(workspace, name), 40_000_000);
    const { path, leftOut, files } = await staged({ hide: ["./secret/"], include: ["ours.*"] });
    expect(names(path)).toEqual([
      ".ready",
      ".skyignore",
      ".vibesys",
      ".vibesys/keep",
      "a.py",
      "cert.pem",
      "deep",
      "deep/id_rsa.pub",
      "ours.safetensors",
      "out",
      "out/kept",
      "quotes.py",
      "small.bin",
      "sub",
      "sub/.vibesys",
      "sub/.vibesys/logs",
      "sub/.vibesys/logs/kept",
    ]);
    expect(leftOut.map((one) => one.path).sort()).toEqual([
      ".netrc",
      "big.safetensors",
      "deep/id_rsa",
      "key.pem",
      "sub/.ssh",
    ]);
    expect(files).toBe(9);
    expect(readFileSync(join(path, ".skyignore"), "utf8")).toMatch(/^#.*\n$/);
  });

  test("git's ignored paths stay behind, tracked ones do not, and no setting of the workspace is run", async () => {
    const git = (...argv: string[]) => execFileSync("git", ["-C", workspace, ...argv]);
    git("init", "-q");
    put(".gitignore", "*.log\ncache/\n");
    for (const path of ["tracked.log", "new.log", "cache/c", "a.py"]) put(path);
    git("add", "-f", "tracked.log");
    put("hook.sh", `#!/bin/sh\ntouch ${root}/ran\n`);
    chmodSync(join(workspace, "hook.sh"), 0o755);
    git("config", "core.fsmonitor", join(workspace, "hook.sh"));
    const { path } = await staged();
    expect(names(path)).toEqual([".gitignore", ".ready", ".skyignore", "a.py", "hook.sh", "tracked.log"]);
    expect(statSync(join(path, "hook.sh")).mode & 0o777).toBe(0o755);
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  test("git-ignored bytes do not count, tracked ones do, and git is asked once", async () => {
    const git = (...argv: string[]) => execFileSync("git", ["-C", workspace, ...argv]);
    git("init", "-q");
    put(".gitignore", "*.log\n");
    for (const path of ["ignored.log", "tracked.log"]) put(path);
    truncateSync(join(workspace, "ignored.log"), 536_870_913);
    git("add", "-f", "tracked.log");
    mkdirSync(join(root, "bin"));
    const counting = `#!/bin/sh\necho x >>${root}/asked\nexec ${Bun.which("git")} "$@"\n`;
    writeFileSync(join(root, "bin/git"), counting, { mode: 0o755 });
    const env = { ...process.env, PATH: `${root}/bin:${process.env.PATH}` };
    expect(names((await staged({ env })).path)).not.toContain("ignored.log");
    expect(readFileSync(join(root, "asked"), "utf8")).toBe("x\n");
    truncateSync(join(workspace, "tracked.log"), 536_870_913);
    const again = await (await open({}, join(root, "others"))).snapshot(id(2));
    expect(again.ok ? "" : again.error.message).toMatch(/most in tracked\.log .*git-ignored paths/);
  });

  test("our own folder in the workspace is not part of it", async () => {
    put("a.py");
    const outcome = await (await open({}, join(workspace, "state"))).snapshot(id(1));
    expect(outcome.ok && names(outcome.value.path)).toEqual([".ready", ".skyignore", "a.py"]);
  });

  test("the digest is that of the framing, in the order of code points", async () => {
    put("b/x", "hello");
    put("b-c", "");
    put("\u{1f600}", "1");
    put("\uff5e", "2");
    symlinkSync("b/x", join(workspace, "link"));
    const hash = createHash("sha256");
    const length = (text: string) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64BE(BigInt(Buffer.byteLength(text)));
      return hash.update(bytes).update(text);
    };
    const { path, sha256 } = await staged();
    const own = readFileSync(join(path, ".skyignore"), "utf8");
    for (const [name, rest] of [
      [".ready", "F1\n"],
      [".skyignore", `F${own}`],
      ["b", "D"],
      ["b-c", "F"],
      ["b/x", "Fhello"],
      ["link", "L"],
      ["\uff5e", "F2"],
      ["\u{1f600}", "F1"],
    ] as const) {
      length(name).update(rest);
      if (rest === "L") length("b/x");
    }
    expect(sha256).toBe(hash.digest("hex"));
  });

  test("links that stay inside are kept, dangling ones too", async () => {
    put("d/a");
    symlinkSync("../d/a", join(workspace, "d/up"));
    symlinkSync("nowhere", join(workspace, "dangling"));
    mkdirSync(join(workspace, ".venv"));
    symlinkSync("/usr/bin/env", join(workspace, ".venv/python"));
    expect(names((await staged()).path)).toContain("dangling");
  });

  const refused: [string, () => void, string][] = [
    [
      "a pipe",
      () => execFileSync("mkfifo", [join(workspace, "pipe")]),
      "ValueError: workspace contains a special file: pipe",
    ],
    [
      "a link out",
      () => symlinkSync("../../etc", join(workspace, "out")),
      "workspace symlink escapes the project: out -> ../../etc",
    ],
    [
      "an absolute link out",
      () => symlinkSync("/etc/passwd", join(workspace, "p")),
      "workspace symlink escapes the project: p",
    ],
    [
      "a link out through a link",
      () => {
        symlinkSync(".", join(workspace, "here"));
        symlinkSync("here/../x", join(workspace, "p"));
      },
      "workspace symlink escapes the project: p",
    ],
    [
      "links in a circle",
      () => {
        symlinkSync("b", join(workspace, "a"));
        symlinkSync("a", join(workspace, "b"));
      },
      "leads round in a circle",
    ],
    [
      "too many bytes",
      () => {
        put("data/x");
        truncateSync(join(workspace, "data/x"), 536_870_913);
      },
      "more than 512 MiB to stage (536.9 MB), most in data/ (536.9 MB); git-ignored paths",
    ],
  ];
  for (const [name, make, said] of refused)
    test(`refused: ${name}`, async () => {
      make();
      expect(await refusal()).toContain(said);
      expect(readdirSync(join(root, "snapshots"))).toEqual(["ids"]);
    });
});

describe("one snapshot after another", () => {
  test("shares what has not changed, never a file of the workspace, and is immutable", async () => {
    put("same", "1");
    put("edited", "one");
    await Bun.sleep(150);
    const staging = await open();
    const take = async (n: number) => {
      const outcome = await staging.snapshot(id(n));
      if (!outcome.ok) throw new Error(outcome.error.message);
      return outcome.value;
    };
    const first = await take(1);
    expect((await take(2)).path).toBe(first.path);
    put("edited", "two");
    await Bun.sleep(150);
    const third = await take(3);
    const inode = (path: string) => statSync(path).ino;
    expect(third.sha256).not.toBe(first.sha256);
    expect(inode(join(third.path, "same"))).toBe(inode(join(first.path, "same")));
    expect(inode(join(third.path, "same"))).not.toBe(inode(join(workspace, "same")));
    expect(readFileSync(join(first.path, "edited"), "utf8")).toBe("one");
    // Same size and same time in the workspace: a transfer has to see another second.
    expect(statSync(join(third.path, "edited")).mtimeMs).toBe(
      statSync(join(first.path, "edited")).mtimeMs + 1_000,
    );
    expect(await take(1)).toEqual(first);
    await staging.prune(new Set([id(3)]));
    expect(existsSync(first.path)).toBe(false);
    expect(readFileSync(join(third.path, "same"), "utf8")).toBe("1");
    await staging.prune(new Set());
    expect(existsSync(third.path)).toBe(true);
    // A new daemon goes on from it.
    expect((await (await open()).snapshot(id(4))).ok).toBe(true);
    expect(readdirSync(join(root, "snapshots")).filter((name) => !name.endsWith(".json"))).toHaveLength(2);
  });

  test("a file changed in the moment of the copy is copied again, whatever its times say", async () => {
    put("a", "one", Date.now() / 1000);
    const staging = await open();
    const first = await staging.snapshot(id(1));
    writeFileSync(join(workspace, "a"), "two");
    const second = await staging.snapshot(id(2));
    expect(
      first.ok &&
        second.ok &&
        [first, second].map(({ value }) => readFileSync(join(value.path, "a"), "utf8")),
    ).toEqual(["one", "two"]);
  });

  test("files of ours are no part of the digest and follow the invocation", async () => {
    put("a");
    put("environment", "the candidate's own");
    await Bun.sleep(150);
    const staging = await open();
    const extra = (text: string) => [{ name: "environment", text, mode: 0o600 }];
    const first = await staging.snapshot(id(1), extra("A=1"));
    const second = await staging.snapshot(id(2), extra("A=2"));
    if (!first.ok || !second.ok) throw new Error("not staged");
    expect(second.value.sha256).toBe(first.value.sha256);
    expect(readFileSync(join(second.value.path, "environment"), "utf8")).toBe("A=2");
    expect(statSync(join(second.value.path, "environment")).mode & 0o777).toBe(0o600);
    const third = await staging.snapshot(id(3));
    expect(third.ok && readFileSync(join(third.value.path, "environment"), "utf8")).toBe(
      "the candidate's own",
    );
  });

  test("what a killed daemon left half-made is thrown away; a torn snapshot of before a power cut is made anew", async () => {
    put("a", "whole");
    const first = await staged();
    mkdirSync(join(root, "snapshots/.staging-x/d"), { recursive: true });
    mkdirSync(join(root, "snapshots/0123456789abcdef-00000000"));
    const manifest = `${first.path}.json`;
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace(/"boot":"[^"]*"/, '"boot":"before"'));
    expect((await staged()).path).toBe(first.path);
    expect(existsSync(join(root, "snapshots/.staging-x"))).toBe(false);
    expect(existsSync(join(root, "snapshots/0123456789abcdef-00000000"))).toBe(false);
    writeFileSync(join(first.path, "a"), "torn!");
    const again = await staged();
    expect(again.path).not.toBe(first.path);
    expect(again.sha256).toBe(first.sha256);
  });
});

const SECRETS: [string, boolean, boolean][] = [
  ["x/.aws", true, true],
  [".config/gcloud", true, true],
  ["config/gcloud", true, false],
  ["id_ed25519", false, true],
  ["id_ed25519.pub", false, false],
  ["a.p12", false, true],
  ["ssh.py", false, false],
];
for (const [path, isFolder, isSecret] of SECRETS)
  test(`${path} is ${isSecret ? "a" : "no"} credential`, () => {
    expect(secretByName(path, path.split("/").at(-1) as string, isFolder) !== null).toBe(isSecret);
  });
test("a private key is known by its first line", () => {
  const key = new TextEncoder().encode("\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n");
  expect(secretByContent("deploy", key)).toBe("a private key");
  expect(secretByContent("deploy", new TextEncoder().encode("-----BEGIN PUBLIC KEY-----"))).toBeNull();
});

const GLOBS: [string, string, boolean][] = [
  ["*.bin", "a/b.bin", true],
  ["a/*.bin", "a/b/c.bin", false],
  ["a/**/*.bin", "a/c.bin", true],
  ["a/**", "a/b/c.bin", true],
  ["a?b", "aXb", true],
  ["a.b", "aXb", false],
];
for (const [glob, path, matches] of GLOBS)
  test(`${glob} ${matches ? "names" : "does not name"} ${path}`, () =>
    expect(globMatcher(glob)(path)).toBe(matches));

test.skipIf(process.getuid?.() !== 0)(
  "what cannot be read is named, and the state folder is not blamed",
  async () => {
    put("sub/a.py");
    put("b.py");
    const staging = await open();
    execFileSync("chown", ["-R", "65534:65534", root]);
    const asNobody = async (change: () => void) => {
      change();
      process.seteuid!(65534);
      try {
        const outcome = await staging.snapshot(id(1));
        return outcome.ok ? "staged" : `${outcome.error.error}: ${outcome.error.message}`;
      } finally {
        process.seteuid!(0);
      }
    };
    const may = (mode: number, path: string) => () => chmodSync(join(workspace, path), mode);
    expect(await asNobody(may(0, "b.py"))).toBe(
      "ValueError: workspace has something that cannot be read (the daemon's user may not): b.py; make it readable, or leave it out with --hide",
    );
    may(0o644, "b.py")();
    expect(await asNobody(may(0, "sub"))).toContain("may not): sub; make it readable");
    may(0o755, "sub")();
    expect(await asNobody(may(0, ""))).toBe(
      `ValueError: the workspace ${workspace} cannot be read: the daemon's user may not`,
    );
    may(0o755, "")();
    expect(await asNobody(() => {})).toBe("staged");
  },
);
