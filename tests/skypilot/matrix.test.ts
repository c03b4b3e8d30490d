import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY, ROOT } from "../acceptance/run.ts";
import { type Server, serve } from "../serve/server.ts";
import { taskFile } from "./tasks.ts";

/**
 * What becomes of a request that could not be judged, word for word, as SkyPilot's own `admin_policy_utils.apply` has
 * it: the class and the RESTful policy, failing open and failing closed.
 */
const python = process.env.NEURARCH_TEST_SKY_PYTHON;
const folder = mkdtempSync(join(tmpdir(), "neurarch-matrix-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string, mode = 0o644): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}
const script = (name: string, body: string) => file(name, `#!/bin/sh\n${body}\n`, 0o755);

const FITS = taskFile("L4:1");
const SMALL = taskFile("T4:1");
const NOWHERE = taskFile("L4:1", { envs: { NEURARCH_MODEL: "nobody/nothing" } });
const NOT_FOUND = (cache: string) =>
  `nobody/nothing not judged: No config was found for nobody/nothing: not in the Hugging Face cache (${cache}); not in the catalogue; the hub is not asked while HF_HUB_OFFLINE is set. Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue.`;

interface Row {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Why it was not judged, in the words between the brackets of the Python policy or of the executable. */
  readonly why: string;
  /** It is the executable that could not judge, and not the Python policy that could not ask it. */
  readonly executable?: true;
}

const missing = join(folder, "nowhere");
const sleeper = script("sleeper", "cat >/dev/null; sleep 30");
const plain = file("plain", "#!/bin/sh\n");
const garbage = script("garbage", "cat >/dev/null; echo hello");
const half = script("half", `cat >/dev/null; printf '{"decision": "refuse", "mess'`);
const crash = script("crash", "kill -SEGV $$");
const silent = script("silent", "cat >/dev/null");
const older = script("older", `cat >/dev/null; echo '{"decision": "maybe", "messages": [], "reply": null}'`);
const sparse = script("sparse", `cat >/dev/null; echo '{"version": 2}'`);
const unloadable = script(
  "unloadable",
  `cat >/dev/null; echo '{"decision": "rewrite", "messages": [], "reply": {"task": "nonsense: 1", "skypilot_config": "{}"}}'`,
);
const unknownKey = file("unknown.toml", "max_cots_usd = 5\n");
const broken = file("broken.toml", "mode = \n");

const ROWS: readonly Row[] = [
  {
    name: "the executable is missing",
    attributes: { binary: missing },
    why: `FileNotFoundError: [Errno 2] No such file or directory: '${missing}'`,
  },
  {
    name: "it may not be run",
    attributes: { binary: plain },
    why: `PermissionError: [Errno 13] Permission denied: '${plain}'`,
  },
  {
    name: "it is a folder",
    attributes: { binary: folder },
    why: `PermissionError: [Errno 13] Permission denied: '${folder}'`,
  },
  {
    name: "it crashes",
    attributes: { binary: crash },
    why: "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
  },
  {
    name: "it says nothing",
    attributes: { binary: silent },
    why: "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
  },
  {
    name: "it says nonsense",
    attributes: { binary: garbage },
    why: "JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
  },
  {
    name: "it says half an answer",
    attributes: { binary: half },
    why: "JSONDecodeError: Unterminated string starting at: line 1 column 24 (char 23)",
  },
  {
    name: "another version with other decisions",
    attributes: { binary: older },
    why: "ValueError: the answer holds no decision",
  },
  {
    name: "another version with another answer",
    attributes: { binary: sparse },
    why: "KeyError: 'decision'",
  },
  {
    name: "a rewrite that SkyPilot cannot load",
    attributes: { binary: unloadable },
    why: "InvalidSkyPilotConfigError: Invalid task YAML: Found unsupported field 'nonsense'.",
  },
  {
    name: "it is too slow",
    attributes: { binary: sleeper, timeout_s: 0.3 },
    why: `TimeoutExpired: Command '['${sleeper}', 'judge', '--admin-policy', `,
  },
  {
    name: "a time limit that is no number",
    attributes: { timeout_s: "soon" },
    why: "ValueError: could not convert string to float: 'soon'",
  },
  {
    name: "a time limit of nothing",
    attributes: { timeout_s: 0 },
    why: `TimeoutExpired: Command '['${BINARY}', 'judge', '--admin-policy', `,
  },
  {
    name: "a setting that is none",
    attributes: { sizing: "guess" },
    why: "ValueError: neurarch-gate judge: --sizing is `guess`, not one of auto, builtin, cli, hosted.",
  },
  {
    name: "a settings file that is missing",
    attributes: { config: "/nowhere.toml" },
    why: "/nowhere.toml does not exist",
    executable: true,
  },
  {
    name: "a settings file that cannot be parsed",
    attributes: { config: broken },
    why: `${broken}:1:8 is not TOML: invalid value`,
    executable: true,
  },
  {
    name: "a settings file with an unknown key",
    attributes: { config: unknownKey },
    why: `${unknownKey} has the unknown key \`max_cots_usd\``,
    executable: true,
  },
  {
    name: "a price list that is missing",
    attributes: { prices: "/nowhere.json" },
    why: "--prices: /nowhere.json does not exist",
    executable: true,
  },
];

interface Outcome {
  readonly lines: readonly string[];
  readonly refused?: string;
  readonly accelerators?: readonly Record<string, number>[];
}

interface Case {
  readonly policy: string | Readonly<Record<string, unknown>>;
  readonly task: string;
}

const open = (why: string) => `Neurarch: not judged (${why}); allowed unchecked (fail open).`;
const closed = (why: string) => `Neurarch: not judged (${why}); refused, as this site fails closed.`;
/** The executable could be asked: no brackets. */
const said = (text: string) => text.replace("(", ": ").replace(" : ", ": ").replace(");", ";");

if (python === undefined) {
  test.skipIf(process.env.CI !== "true")(
    "NEURARCH_TEST_SKY_PYTHON names a Python with skypilot 0.13.0",
    () => {
      expect(python).toBeDefined();
    },
  );
} else {
  const cases = new Map<string, Case>();
  let outcomes: ReadonlyMap<string, Outcome>;
  const servers: Server[] = [];
  let down: string;

  beforeAll(async () => {
    const ofClass = (name: string, task: string, attributes: Readonly<Record<string, unknown>> = {}) => {
      for (const fail_closed of [false, true])
        cases.set(`class, ${fail_closed ? "closed" : "open"}: ${name}`, {
          policy: { binary: BINARY, ...attributes, fail_closed },
          task,
        });
    };
    for (const { name, attributes } of ROWS) ofClass(name, FITS, attributes);
    ofClass("no model source", NOWHERE);
    ofClass("a ledger that cannot be written", SMALL, { ledger: "/proc/nowhere" });
    ofClass("a policy file that is missing", FITS, { policy_file: "/nowhere.yml" });
    for (const closedly of [false, true]) {
      const server = await serve(["--ledger", "/proc/nowhere", ...(closedly ? ["--fail-closed"] : [])]);
      servers.push(server);
      const policy = `${server.address}/`;
      const mode = `rest, ${closedly ? "closed" : "open"}`;
      cases.set(`${mode}: no model source`, { policy, task: NOWHERE });
      cases.set(`${mode}: a ledger that cannot be written`, { policy, task: SMALL });
      cases.set(`${mode}: a request that fits`, { policy, task: FITS });
    }
    const gone = await serve();
    await gone.stop();
    down = gone.address;
    cases.set("rest: nobody there", { policy: `${down}/`, task: FITS });
    const child = Bun.spawn([python, join(import.meta.dir, "matrix_driver.py")], {
      stdin: new Blob([JSON.stringify({ shim: join(ROOT, "python-shim"), cases: [...cases.values()] })]),
      stdout: "pipe",
      env: { PATH: "/usr/bin:/bin", HOME: folder, HF_HUB_OFFLINE: "1", PYTHONDONTWRITEBYTECODE: "1" },
    });
    const text = await new Response(child.stdout).text();
    const list = JSON.parse(text.trim().split("\n").at(-1)!) as Outcome[];
    outcomes = new Map([...cases.keys()].map((name, index) => [name, list[index]!]));
  }, 120_000);
  afterAll(async () => {
    for (const server of servers) await server.stop();
  });

  const admitted = (name: string, lines: readonly string[]) =>
    expect(outcomes.get(name)).toEqual({ lines, accelerators: [{ L4: 1 }] });
  const refused = (name: string, why: string) =>
    expect(outcomes.get(name)).toEqual({ lines: [], refused: why });

  describe("the class policy", () => {
    for (const { name, why, executable } of ROWS) {
      const whole = !why.startsWith("TimeoutExpired");
      test(`${name}, failing open`, () => {
        const line = executable ? said(open(why)) : open(why);
        if (whole) admitted(`class, open: ${name}`, [line]);
        else {
          const { lines, accelerators } = outcomes.get(`class, open: ${name}`)!;
          expect(lines[0]).toStartWith(`Neurarch: not judged (${why}`);
          expect(lines[0]).toEndWith("); allowed unchecked (fail open).");
          expect(accelerators).toEqual([{ L4: 1 }]);
        }
      });
      test(`${name}, failing closed`, () => {
        const line = executable ? said(closed(why)) : closed(why);
        if (whole) refused(`class, closed: ${name}`, line);
        else
          expect(outcomes.get(`class, closed: ${name}`)?.refused).toStartWith(`Neurarch: not judged (${why}`);
      });
    }
    // The home that the policy's process was started with, before SkyPilot was given another.
    const cache = join(folder, ".cache/huggingface/hub");
    test("no model source", () => {
      admitted("class, open: no model source", [
        `Neurarch: ${NOT_FOUND(cache)} Allowed unchecked (fail open).`,
      ]);
      refused(
        "class, closed: no model source",
        `Neurarch: ${NOT_FOUND(cache)} Refused, as this site fails closed.`,
      );
    });
    test("a policy file that is missing is told and refuses nothing", () => {
      for (const mode of ["open", "closed"])
        admitted(`class, ${mode}: a policy file that is missing`, [
          "Neurarch: nowhere.yml is not applied: /nowhere.yml does not exist; the verdict stands without it.",
        ]);
    });
  });

  describe("the RESTful policy", () => {
    test("no model source", () => {
      const cache = "/nonexistent/.cache/huggingface/hub";
      admitted("rest, open: no model source", []);
      expect(servers[0]!.log()).toContain(`Neurarch: ${NOT_FOUND(cache)} Allowed unchecked (fail open).`);
      refused(
        "rest, closed: no model source",
        `User request is rejected by admin policy ${servers[1]!.address}/: Neurarch: ${NOT_FOUND(cache)} Refused, as this site fails closed.`,
      );
    });
    test("a request that fits", () => {
      for (const mode of ["open", "closed"]) admitted(`rest, ${mode}: a request that fits`, []);
    });
    test("that is not there is refused by SkyPilot, whatever it would have said", () => {
      const { refused: why, lines } = outcomes.get("rest: nobody there")!;
      expect(lines).toEqual([]);
      expect(why?.replace(/0x[0-9a-f]+/, "0x0")).toBe(
        `User request rejected by policy RestfulAdminPolicy(policy_url=${down}/): [sky.exceptions.RestfulPolicyError] Failed to call admin policy URL ${down}/: ` +
          `HTTPConnectionPool(host='127.0.0.1', port=${new URL(down).port}): Max retries exceeded with url: / (Caused by NewConnectionError(` +
          `${why?.match(/NewConnectionError\((.*)\)\)/)?.[1]?.replace(/0x[0-9a-f]+/, "0x0")}))`,
      );
      expect(why).toContain("Connection refused");
    });
  });

  test("a ledger that cannot be written changes no verdict", () => {
    for (const name of ["class, open", "class, closed", "rest, open", "rest, closed"])
      expect(outcomes.get(`${name}: a ledger that cannot be written`)?.refused).toMatch(
        /^(?:User request is rejected by admin policy http:\S+: )?Neurarch: Qwen\/Qwen3-0\.6B needs 19\.3 GB .*T4:1 holds 16 GB\..*resubmit\./,
      );
  });

  test("a server with unreadable settings does not start", async () => {
    for (const config of [missing, broken, unknownKey])
      await expect(serve(["--config", config])).rejects.toThrow("serve did not start: neurarch-gate serve: ");
  });
}
