import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, exec, filtered, LUAS, REFUSED, SCRIPT, Scratch, SUBMIT } from "./kit.ts";

const scratch = new Scratch();
const hostile = join(scratch.path, "hostile");
const loaded = join(scratch.path, "loaded");
afterAll(() => scratch.remove());

beforeAll(() => {
  mkdirSync(join(hostile, "node_modules/citty"), { recursive: true });
  const evil = `require("node:fs").writeFileSync(${JSON.stringify(loaded)}, "x"); console.log("decision=reject"); process.exit(9);\n`;
  const put = (name: string, text: string) => writeFileSync(join(hostile, name), text);
  put("evil.js", evil);
  put("index.js", evil);
  put("node_modules/citty/index.js", evil);
  put("node_modules/citty/package.json", '{"main": "index.js"}');
  put("bunfig.toml", 'preload = ["./evil.js"]\n[run]\nbun = true\n[test]\npreload = ["./evil.js"]\n');
  put(".bunfig.toml", 'preload = ["./evil.js"]\n');
  put(".env", "NEURARCH_MODEL=gpt2\nNEURARCH_BATCH=1\nBUN_OPTIONS=--preload ./evil.js\n");
  put(".env.local", "NEURARCH_MODEL=gpt2\nHF_ENDPOINT=http://127.0.0.1:9\n");
  put(".env.production", "NEURARCH_MODEL=gpt2\n");
  put(
    "tsconfig.json",
    '{"compilerOptions": {"paths": {"*": ["./evil.js"]}, "plugins": [{"name": "./evil.js"}]}}',
  );
  put(
    "package.json",
    '{"type": "commonjs", "main": "./evil.js", "imports": {"#x": "./evil.js"}, "workspaces": ["*"]}',
  );
});

/** Variables that change what a program of this kind is or does. `@` is the hostile folder. */
const FOREIGN: Readonly<Record<string, string>> = {
  BUN_OPTIONS: "--preload @/evil.js",
  BUN_BE_BUN: "1",
  BUN_INSPECT: "127.0.0.1:1/x?break=1",
  BUN_INSPECT_PRELOAD: "@/evil.js",
  BUN_INSPECT_CONNECT_TO: "/nowhere",
  BUN_CONFIG_PRELOAD: "@/evil.js",
  BUN_CONFIG_VERBOSE_FETCH: "curl",
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: "@",
  BUN_JSC_forceRAMSize: "1",
  BUN_JSC_useInterpreter: "0",
  BUN_JSC_dumpOptions: "3",
  BUN_JSC_logGC: "2",
  BUN_DEBUG: "@/trace",
  JSC_useJIT: "0",
  MIMALLOC_VERBOSE: "3",
  MIMALLOC_SHOW_STATS: "1",
  LD_PRELOAD: "@/none.so",
  LD_LIBRARY_PATH: "@",
  LD_DEBUG: "all",
  NODE_OPTIONS: "--require @/evil.js --bogus",
};

/** Variables that mean something to us or to our runtime, with values that mean nothing. They stay set. */
const GARBAGE: Readonly<Record<string, string>> = {
  NODE_EXTRA_CA_CERTS: "/nowhere/ca.pem",
  NODE_PATH: "@/node_modules",
  NODE_DEBUG: "fs,net",
  NODE_TLS_REJECT_UNAUTHORIZED: "0",
  SSL_CERT_FILE: "/dev/zero",
  SSL_CERT_DIR: "/nowhere",
  HTTP_PROXY: "http://user:secret@127.0.0.1:9",
  HTTPS_PROXY: ":::",
  http_proxy: "http://127.0.0.1:9",
  ALL_PROXY: "socks5://127.0.0.1:9",
  NO_PROXY: "[",
  TZ: "../../etc/passwd",
  LANG: "xx_YY.KOI8-Z",
  LC_ALL: "\u001b[31m",
  COLUMNS: "-1",
  LINES: "99999999999999999999",
  TERM: "\u001b]0;t\u0007",
  NO_COLOR: "",
  FORCE_COLOR: "3",
  CI: "",
  USER: "../../x\ny",
  LOGNAME: "$(id)",
  HOSTNAME: "`id`",
  SHELL: "/nowhere",
  IFS: "/",
  ENV: "@/evil.sh",
  BASH_ENV: "@/evil.sh",
  PS4: "$(touch @/ps4)",
  TMPDIR: "/nowhere",
  XDG_CACHE_HOME: "relative",
  XDG_STATE_HOME: "/proc/nowhere",
  XDG_CONFIG_HOME: "/dev/null",
  HF_HOME: "\n",
  HF_HUB_CACHE: "/dev/null",
  HF_ENDPOINT: "not an address",
  HF_TOKEN: "\u001b[31m",
  NEURARCH_MODE: "reject",
  NEURARCH_MUTATE: "1",
  NEURARCH_POLICY_FAIL_CLOSED: "1",
  NEURARCH_CONFIG: "/nowhere",
  NEURARCH_API_KEY: "\u0001",
  SLURM_JOB_ID: "7",
  SOURCE_DATE_EPOCH: "x",
};

// One that was loaded tells for itself.
beforeEach(() => rmSync(loaded, { force: true }));

const within = (variables: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [name, value.replaceAll("@", hostile)]),
  );

describe("a garbled environment changes no verdict", () => {
  for (const [name, value] of Object.entries(GARBAGE)) {
    test(`${name}=${JSON.stringify(value)}`, async () => {
      const { out, err, exit } = await exec(SUBMIT, { cwd: hostile, env: within({ [name]: value }) });
      expect({ exit, out, err }).toEqual({ exit: 0, out: expect.stringMatching(REFUSED), err: "" });
    });
  }

  test("all of it at once, with two thousand variables more", async () => {
    const more = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`X_${at}`, "x".repeat(200)]));
    const { out, err, exit } = await exec(SUBMIT, {
      cwd: hostile,
      env: { ...within(GARBAGE), ...more },
    });
    expect({ exit, out, err }).toEqual({ exit: 0, out: expect.stringMatching(REFUSED), err: "" });
  });
});

for (const version of LUAS) {
  describe(`behind the filter, Lua ${version}`, () => {
    const told = /^log info Neurarch: Qwen\/Qwen3-8B needs 339\.4 GB .* Submitted anyway\.\nreturn 0\n$/;
    const submit = { argv: [SCRIPT], set: { gres: "gpu:a10g:1", nodes: "1" } };
    const through = (env: Record<string, string>) =>
      filtered(version, scratch, submit, { cwd: hostile, env });

    test("nothing wrong", async () => {
      expect((await through({})).out).toMatch(told);
    });

    // What the loader is told reaches the interpreter of the test as well: those are tried without it below.
    for (const [name, value] of Object.entries(FOREIGN).filter(([name]) => !name.startsWith("LD_"))) {
      test(`${name}=${value}`, async () => {
        const { out } = await through(within({ [name]: value }));
        expect(out).toMatch(told);
        expect(existsSync(loaded)).toBeFalse();
      });
    }

    test("all of them, and garbage", async () => {
      const { LD_DEBUG: _, ...foreign } = FOREIGN;
      const { out } = await through(within({ ...GARBAGE, ...foreign }));
      expect(out).toMatch(told);
      expect(existsSync(loaded)).toBeFalse();
      expect(existsSync(join(hostile, "ps4"))).toBeFalse();
    });
  });
}

test("no other command reads a file of the working directory either", async () => {
  for (const words of [
    ["cards"],
    ["size", "gpt2"],
    ["judge", "--model", "gpt2", "--request", "T4:1", "--batch", "1"],
    ["--version"],
    ["self-test"],
  ]) {
    const { exit } = await exec([BINARY, ...words], {
      cwd: hostile,
    });
    expect({ words, exit }).toEqual({ words, exit: 0 });
    expect(existsSync(loaded)).toBeFalse();
  }
});
