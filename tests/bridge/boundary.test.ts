/**
 * What a sandbox cannot do: nothing that it sends, and nothing that it writes into its workspace, chooses a host, an
 * account, a partition, a mount or a command that the campaign does not name. Each is tried through the real socket.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  ack,
  type Bench,
  bench,
  benchmarkRequest,
  newId,
  RESULT_PATH,
  rawClient,
  request,
} from "./bridge-kit.ts";

const declared = { globs: ["out/*"], max_files: 10, max_bytes: 1000 };
let kit: Bench;
/** Written by whatever is run that should not be. */
let mark = "";

/** Sends one line and gives what the daemon says to it. */
async function refusal(line: unknown): Promise<string> {
  const client = await rawClient(kit.socket);
  client.send(line);
  await client.until((one) => one.closed || one.frame("result") !== undefined);
  client.socket.destroy();
  const error = client.frame("error");
  return error === undefined ? `not refused: ${client.text}` : String(error.message);
}

/** One whole evaluation; the exec's task document that it made. */
async function evaluated(line: Record<string, unknown>): Promise<Record<string, unknown>> {
  const client = await rawClient(kit.socket);
  client.send(line);
  await client.until((one) => one.closed || one.frame("result") !== undefined);
  expect(client.frame("result")).toBeDefined();
  client.send(ack(String(line.invocation_id)));
  await client.until((one) => one.closed || one.frame("acked") !== undefined);
  client.socket.destroy();
  return kit.sky.calls().findLast(({ command }) => command === "exec")!.task!;
}

/** What of a task decides where and how it runs: all but the run text, its name and the snapshot's folder. */
function placement({ run: _run, name: _name, workdir, ...rest }: Record<string, unknown>) {
  return { ...rest, staged: String(workdir).startsWith(join(kit.state, "snapshots")) };
}

beforeAll(async () => {
  kit = bench({
    accuracy: "sh check.sh",
    more: 'setup = "echo prepared"\n',
    profile: 'command_prefix = ["env", "PREFIXED=1"]\n',
    tables: '[environment.set]\nGIVEN = "by the operator"\n',
  });
  mark = join(kit.root, "mark");
  kit.write("check.sh", 'echo "$PREFIXED $GIVEN"\n');
  await kit.start();
});
afterAll(() => kit.remove());

describe("a request", () => {
  const KEYS = [
    ...["host", "hostname", "login", "ssh", "proxy_jump", "user", "identity_file", "socket", "endpoint"],
    ...["account", "partition", "qos", "constraint", "nodelist", "reservation", "sbatch_options", "time"],
    ...["infra", "cloud", "region", "zone", "cluster", "cluster_name", "profile", "runner", "sky", "config"],
    ...[
      "resources",
      "accelerators",
      "nodes",
      "num_nodes",
      "cpus",
      "memory",
      "image",
      "image_id",
      "container",
    ],
    ...[
      "mount",
      "mounts",
      "volumes",
      "file_mounts",
      "storage",
      "workdir",
      "workspace",
      "workspace_id",
      "run_id",
    ],
    ...["command", "argv", "run", "setup", "command_prefix", "prefix", "shell", "entrypoint"],
    ...[
      "env",
      "envs",
      "environment",
      "secrets",
      "timeout",
      "retries",
      "keep",
      "state",
      "remote_artifact_root",
    ],
    ...["Kind", "ARGUMENTS", "__proto__", "constructor"],
  ];
  test.each(KEYS)("with the further key %s is refused by name", async (key) => {
    const before = kit.sky.calls().length;
    // Written by hand: in an object literal `__proto__` is no key.
    const line = JSON.stringify(request(newId())).replace(/\}$/, `,${JSON.stringify(key)}:"evil"}\n`);
    expect(await refusal(line)).toBe(`the request has the unknown key "${key}"`);
    expect(kit.sky.calls()).toHaveLength(before);
  });

  const words = "; touch MARK; $(touch MARK) `touch MARK` && touch MARK";
  const ROWS: readonly (readonly [string, unknown, string])[] = [
    ["another kind", { ...request(newId()), kind: "profile" }, "kind"],
    ["a command as its kind", { ...request(newId()), kind: "sh -c id" }, "kind"],
    ["a list as its kind", { ...request(newId()), kind: ["accuracy"] }, "kind"],
    ["a sky call as its kind", { ...request(newId()), kind: "down" }, "kind"],
    [
      "an id that is a path",
      { ...request(newId()), invocation_id: "../../../../etc/cron.d/evil00000" },
      "hex",
    ],
    ["an id of shell words", { ...request(newId()), invocation_id: words }, "hex"],
    ["an id with a line end", { ...request(newId()), invocation_id: `${newId()}\n` }, "hex"],
    ["arguments for accuracy", { ...request(newId()), arguments: ["--host", "evil"] }, "accuracy"],
    [
      "another flag",
      { ...request(newId(), "benchmark"), arguments: ["--account", "evil"], artifacts: [] },
      "--output-json",
    ],
    [
      "an argument more",
      { ...benchmarkRequest(newId()), arguments: ["--output-json", RESULT_PATH, "--partition=evil"] },
      "--output-json",
    ],
    [
      "shell words as the flag",
      { ...benchmarkRequest(newId()), arguments: [`--output-json ${words}`, RESULT_PATH] },
      "--output-json",
    ],
    ...[
      "/etc/passwd",
      "/tmp/vibesys-framework-benchmark-x.json/../../etc/passwd",
      "/tmp/vibesys-framework-benchmark-/../x.json",
      "/tmp/vibesys-framework-benchmark-$(touch MARK).json",
      "/tmp/vibesys-framework-benchmark-x.json; touch MARK",
      "/tmp/vibesys-framework-benchmark-a b.json",
      "/tmp/vibesys-framework-benchmark-x.json\n",
      "tmp/vibesys-framework-benchmark-x.json",
      "/tmp/vibesys-framework-benchmark-x.json\0",
    ].map(
      (path) =>
        [
          `the output path ${JSON.stringify(path)}`,
          { ...request(newId(), "benchmark"), arguments: ["--output-json", path], artifacts: [path] },
          "output path",
        ] as const,
    ),
    ["another artifact", { ...benchmarkRequest(newId()), artifacts: ["/etc/shadow"] }, "artifacts"],
    ["an artifact alone", { ...request(newId(), "benchmark"), artifacts: [RESULT_PATH] }, "--output-json"],
    ["a mount among the files", { ...request(newId()), declared: { ...declared, mount: "/" } }, '"mount"'],
    ["a root of the files", { ...request(newId()), declared: { ...declared, root: "/etc" } }, '"root"'],
    ["files elsewhere", { ...request(newId()), declared: { ...declared, globs: ["/etc/*"] } }, "absolute"],
    ["files above", { ...request(newId()), declared: { ...declared, globs: ["../../.ssh/*"] } }, ".. part"],
    ["the operator's release", { version: 1, op: "release" }, "op"],
    ["the operator's status", { version: 1, op: "status" }, "op"],
    ["a cancellation of all", { version: 2, kind: "cancel", invocation_id: "all" }, "kind"],
    ["a cancellation on another cluster", { ...cancelOf(newId()), cluster: "prod" }, '"cluster"'],
    ["two requests in a list", [request(newId()), request(newId())], "not a JSON object"],
  ];
  test.each(ROWS)("with %s is refused", async (_, line, said) => {
    const before = kit.sky.calls().length;
    const text = `${JSON.stringify(line)}\n`.replaceAll("MARK", mark);
    expect(await refusal(text)).toContain(said);
    expect(kit.sky.calls()).toHaveLength(before);
    expect(existsSync(mark)).toBe(false);
  });

  test("with the same key twice is read by its last one, and that one as strictly", async () => {
    const line = JSON.stringify(request(newId())).replace('"accuracy"', '"accuracy","kind":"sh -c id"');
    expect(await refusal(`${line}\n`)).toContain("kind");
  });
});

function cancelOf(id: string) {
  return { version: 2, kind: "cancel", invocation_id: id };
}

describe("what is let through", () => {
  test("changes the run text where it stands as data, and nothing of where and how it runs", async () => {
    const usual = await evaluated(request(newId()));
    const launch = kit.sky.calls().find(({ command }) => command === "launch")!.task!;
    expect(placement(usual)).toEqual({ ...placement(launch), staged: true });
    expect(usual.resources).toEqual({ infra: "slurm/lab/gpu", accelerators: "MI300A:4", cpus: 192 });
    const path = "/tmp/vibesys-framework-benchmark--rf.-_..json";
    const odd = {
      ...request(newId(), "benchmark"),
      arguments: ["--output-json", path],
      artifacts: [path],
    };
    kit.write("bench.sh", `echo '{}' >"$2"\n`);
    expect(placement(await evaluated(odd))).toEqual(placement(usual));
    const globs = [
      `$(touch ${mark})`,
      `\`touch ${mark}\``,
      `';touch ${mark};'`,
      `";touch ${mark};"`,
      "x' -o -exec touch",
      "-delete",
      "[[:alnum:]]",
      "a\\",
      "--partition=evil",
      "*",
    ];
    const plain = globs.filter((glob) => !glob.includes("//") && !glob.startsWith("/"));
    const files = await evaluated({ ...request(newId()), declared: { ...declared, globs: plain } });
    expect(placement(files)).toEqual(placement(usual));
    expect(existsSync(mark)).toBe(false);
    expect(existsSync(join(kit.workspace, "check.sh"))).toBe(true);
    for (const { argv } of kit.sky.calls()) expect(argv.join(" ")).not.toContain("evil");
  });

  test("gets the campaign's own command, prefix, setup and environment", async () => {
    const client = await rawClient(kit.socket);
    const id = newId();
    client.send(request(id));
    await client.until((one) => one.closed || one.frame("result") !== undefined);
    expect(client.output()).toBe("prepared\n1 by the operator\n");
    client.send(ack(id));
    await client.until((one) => one.closed || one.frame("acked") !== undefined);
  });
});

describe("a workspace", () => {
  test("that holds settings of SkyPilot, ssh, git or of ours changes no call", async () => {
    const usual = await evaluated(request(newId()));
    const sky =
      "slurm:\n  cluster_configs:\n    lab:\n      sbatch_options:\n        account: evil\napi_server:\n  endpoint: http://evil\n";
    for (const name of [
      ".sky.yaml",
      "sky.yaml",
      "config.yaml",
      "task.yaml",
      ".sky/config.yaml",
      ".slurm/config",
    ]) {
      mkdirSync(join(kit.workspace, name, ".."), { recursive: true });
      writeFileSync(join(kit.workspace, name), sky);
    }
    kit.write(".skyignore", "*\n");
    kit.write(".neurarch-environment", `touch ${mark}\nGIVEN=evil\nexport GIVEN\n`);
    kit.write("campaign.toml", 'accuracy = "id"\n');
    kit.write("clusters.toml", '[profiles.test]\ninfra = "slurm/evil"\n');
    kit.write(".env", `SKYPILOT_API_SERVER_ENDPOINT=http://evil\nPATH=${kit.workspace}\n`);
    kit.write("bunfig.toml", `preload = ["${kit.workspace}/evil.ts"]\n`);
    kit.write("evil.ts", `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "")\n`);
    kit.write("check.sh", 'cat .sky.yaml >/dev/null && echo "$GIVEN"\n');
    const client = await rawClient(kit.socket);
    const id = newId();
    client.send(request(id));
    await client.until((one) => one.closed || one.frame("result") !== undefined);
    expect(client.output()).toBe("prepared\nby the operator\n");
    client.socket.destroy();
    const calls = kit.sky.calls();
    expect(placement(calls.findLast(({ command }) => command === "exec")!.task!)).toEqual(placement(usual));
    expect(existsSync(mark)).toBe(false);
    // SkyPilot reads `.sky.yaml` of the folder it is started in: that is the run's own, whatever ours is.
    expect(new Set(calls.map(({ cwd }) => cwd))).toEqual(new Set([kit.state]));
  });

  test("that a daemon is started in is not where sky is", async () => {
    const other = bench();
    try {
      other.write(".sky.yaml", "api_server:\n  endpoint: http://evil\n");
      const { MAIN, BUN } = { MAIN: join(import.meta.dir, "../../src/main.ts"), BUN: process.execPath };
      const child = Bun.spawn(
        [BUN, MAIN, "bridge", "run", "--campaign", join(other.root, "campaign.toml"), "--", "true"],
        { cwd: other.workspace, stdin: "ignore", stdout: "ignore", stderr: "pipe" },
      );
      const err = await new Response(child.stderr).text();
      expect([await child.exited, err.includes("serving run")]).toEqual([0, true]);
      expect(new Set(other.sky.calls().map(({ cwd }) => cwd))).toEqual(new Set([other.state]));
    } finally {
      await other.remove();
    }
  });
});
