import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { ENVIRONMENT_FILE, environmentText, environmentValues } from "../../src/bridge/environment-file.ts";
import { MAX_ARTIFACT_BYTES, type Marker, readMarker } from "../../src/bridge/markers.ts";
import { type RunOptions, runText } from "../../src/bridge/run-text.ts";
import { shellWords } from "../../src/bridge/shell-words.ts";
import { taskDocument } from "../../src/bridge/task-document.ts";

const ROOT = mkdtempSync(join(tmpdir(), "run-text-"));
afterAll(() => rmSync(ROOT, { recursive: true, force: true }));
const NONCE = "0f".repeat(16);
const SHELLS = ["dash", "bash"] as const;
const PLAIN: RunOptions = {
  argv: ["true"],
  artifactPath: null,
  setup: null,
  environment: false,
  commandPrefix: null,
  nonce: NONCE,
};

let folders = 0;
function newFolder(): string {
  const folder = join(ROOT, `${folders++} a'b`);
  mkdirSync(folder);
  return folder;
}
for (const shell of SHELLS) {
  mkdirSync(join(ROOT, shell));
  symlinkSync(`/bin/${shell}`, join(ROOT, shell, "sh"));
}

interface Ran {
  readonly code: number | null;
  /** The program's own lines: ours and the empty line before each are gone. */
  readonly output: string;
  readonly markers: readonly Marker[];
  readonly artifact: Uint8Array | null;
}

/** What a reader of the job's log makes of it. */
function readLog(log: string): Omit<Ran, "code"> {
  const lines = log.split("\n");
  const markers: Marker[] = [];
  const kept: string[] = [];
  let artifact: string[] | null = null;
  let whole: Uint8Array | null = null;
  for (const line of lines) {
    const marker = readMarker(line, NONCE);
    if (marker === null) {
      if (artifact === null) kept.push(line);
      else artifact.push(line);
      continue;
    }
    markers.push(marker);
    if (marker.kind === "artifact-end") {
      whole = new Uint8Array(Buffer.from(artifact!.join(""), "base64"));
      artifact = null;
      continue;
    }
    if (kept.at(-1) === "") kept.pop();
    if (marker.kind === "artifact-begin") artifact = [];
  }
  return { output: kept.join("\n"), markers, artifact: whole };
}

/** Runs a job's text as sky does, by bash, with one shell or the other as `sh`. */
async function run(
  shell: (typeof SHELLS)[number],
  options: Partial<RunOptions>,
  more: { readonly cwd?: string; readonly during?: (child: Bun.Subprocess) => void } = {},
): Promise<Ran> {
  const child = Bun.spawn(["bash", "-c", `${runText({ ...PLAIN, ...options })}\nexit $?`], {
    cwd: more.cwd ?? newFolder(),
    env: { ...process.env, PATH: `${join(ROOT, shell)}:${process.env.PATH}` },
    stdout: "pipe",
    stderr: "inherit",
    stdin: "ignore",
    detached: true,
  });
  more.during?.(child);
  const log = await new Response(child.stdout).text();
  await child.exited;
  return { code: child.exitCode, ...readLog(log) };
}

const end = (exitCode: number): Marker => ({ kind: "end", exitCode });

describe.each(SHELLS)("under %s", (shell) => {
  const rows: readonly (readonly [string, Partial<RunOptions>, Partial<Ran>])[] = [
    ["a program that ends well", { argv: ["echo", "hi"] }, { code: 0, output: "hi\n", markers: [end(0)] }],
    [
      "one that fails",
      { argv: ["sh", "-c", "echo no; exit 7"] },
      { code: 7, output: "no\n", markers: [end(7)] },
    ],
    ["one without a last line end", { argv: ["printf", "abc"] }, { output: "abc\n", markers: [end(0)] }],
    [
      "one that ends in empty lines",
      { argv: ["printf", "abc\\n\\n"] },
      { output: "abc\n\n", markers: [end(0)] },
    ],
    ["one that says nothing", {}, { output: "", markers: [end(0)] }],
    ["one that is not there", { argv: ["/no/such/program"] }, { code: 127, markers: [end(127)] }],
    ["one that is killed", { argv: ["sh", "-c", "kill -9 $$"] }, { code: 137, markers: [end(137)] }],
    ["one that ends itself", { argv: ["sh", "-c", "kill -TERM $$"] }, { code: 143, markers: [end(143)] }],
    [
      "arguments with everything in them",
      { argv: ["printf", "%s|", "a b", "'", '"', "$(id)", "`id`", "\\", "$HOME", "*", "line\nend", ""] },
      { output: "a b|'|\"|$(id)|`id`|\\|$HOME|*|line\nend||\n" },
    ],
    [
      "a setup that is felt",
      { setup: "export READY='x y'", argv: ["sh", "-c", 'echo "$READY"'] },
      { output: "x y\n" },
    ],
    [
      "a setup in the job's folder, before the program's words, which it does not touch",
      { setup: 'pwd | grep -c "a.b$"', argv: ["printf", "%s|", "a b", "'", "$(id)", "`id`", "$1", "%s"] },
      { code: 0, output: "1\na b|'|$(id)|`id`|$1|%s|\n", markers: [end(0)] },
    ],
    [
      "a setup that fails",
      { setup: "echo setup\nfalse\necho not", argv: ["echo", "evaluator"] },
      { code: 1, output: "setup\n", markers: [end(1)] },
    ],
    [
      "a setup with a code",
      { setup: "exit 9", argv: ["echo", "evaluator"] },
      { code: 9, output: "", markers: [end(9)] },
    ],
    [
      "a setup before an artifact",
      { setup: "false", artifactPath: join(ROOT, "never"), argv: ["true"] },
      { code: 1, markers: [end(1)] },
    ],
    [
      "a prefix that goes elsewhere",
      { commandPrefix: ["env", "-C", "/", "X=a b"], argv: ["sh", "-c", 'echo "$X"; pwd | grep -c "a.b$"'] },
      { output: "a b\n1\n", markers: [end(0)] },
    ],
    [
      "a prefix that clears the environment",
      {
        commandPrefix: ["env", "-i", "PATH=/usr/bin:/bin"],
        argv: ["sh", "-c", 'pwd | grep -c "a.b$"; exit 3'],
      },
      { code: 3, output: "1\n", markers: [end(3)] },
    ],
    ["a prefix that cannot start", { commandPrefix: ["/no/such/srun"] }, { code: 127, markers: [end(127)] }],
    [
      "a prefix that kills all within it",
      { commandPrefix: ["sh", "-c", '"$@" & kill -9 $$', "x"], argv: ["sleep", "0"] },
      { code: 137, markers: [end(137)] },
    ],
    ["no environment file", { environment: true }, { code: 126, markers: [end(126)] }],
  ];
  for (const [name, options, expected] of rows)
    test(name, async () => {
      expect(await run(shell, options)).toMatchObject(expected);
    });

  test("the artifact comes whole, whatever the evaluator's code, and an older one is gone before", async () => {
    const path = join(newFolder(), "out put.json");
    writeFileSync(path, "old");
    const content = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 7) % 256);
    const source = join(ROOT, "source");
    writeFileSync(source, content);
    const ran = await run(shell, {
      artifactPath: path,
      argv: ["sh", "-c", `ls "$1" 2>/dev/null; cp ${source} "$1"; printf bench; exit 4`, "x", path],
    });
    expect(ran.output).toBe("bench\n");
    expect(ran.markers).toEqual([
      { kind: "artifact-begin", size: content.length },
      { kind: "artifact-end" },
      end(4),
    ]);
    expect(ran.artifact).toEqual(content);
  });
  test("no artifact, an empty one, one above the limit, one that cannot be read", async () => {
    const path = join(newFolder(), "out.json");
    expect((await run(shell, { artifactPath: path })).markers).toEqual([end(0)]);
    const empty = await run(shell, { artifactPath: path, argv: ["touch", path] });
    expect(empty.markers[0]).toEqual({ kind: "artifact-begin", size: 0 });
    expect(empty.artifact).toEqual(new Uint8Array(0));
    expect(empty.output).toBe("");
    for (const [size, kind] of [
      [MAX_ARTIFACT_BYTES, "artifact-begin"],
      [MAX_ARTIFACT_BYTES + 1, "artifact-unsent"],
    ] as const) {
      const large = await run(shell, { artifactPath: path, argv: ["truncate", "-s", String(size), path] });
      expect(large.markers[0]!.kind).toBe(kind);
      expect(large.artifact?.length ?? 0).toBe(kind === "artifact-begin" ? size : 0);
    }
    const without = join(ROOT, `${shell}-only`);
    mkdirSync(without);
    for (const [name, target] of [
      ["sh", `/bin/${shell}`],
      ...["rm", "wc", "tr", "touch"].map((tool) => [tool, `/usr/bin/${tool}`] as const),
    ] as const)
      symlinkSync(target, join(without, name));
    const unread = await run(shell, {
      artifactPath: path,
      commandPrefix: ["env", `PATH=${without}`],
      argv: ["touch", path],
    });
    expect(unread.markers).toEqual([{ kind: "artifact-unsent", reason: "unreadable" }, end(0)]);
  });

  test("the environment is felt, and its file is gone", async () => {
    const folder = newFolder();
    const value = `a'b"c $HOME \`id\` \\ \n line é 😀 '' \t`;
    writeFileSync(join(folder, ENVIRONMENT_FILE), environmentText({ SECRET_1: value, _x: "" }));
    const ran = await run(
      shell,
      {
        environment: true,
        commandPrefix: ["env", "-i", `PATH=${process.env.PATH}`],
        setup: 'test -n "$SECRET_1"',
        argv: ["sh", "-c", 'printf "%s|%s" "$SECRET_1" "$_x"'],
      },
      { cwd: folder },
    );
    expect(ran.output).toBe(`${value}|\n`);
    expect(existsSync(join(folder, ENVIRONMENT_FILE))).toBe(false);
  });

  /** Waits for a file that the job makes, then does something to its process group. */
  const once = (path: string, act: () => void) => {
    const timer = setInterval(() => {
      if (!existsSync(path)) return;
      clearInterval(timer);
      act();
    }, 20);
  };
  const waiting = (flag: string) => ["sh", "-c", 'touch "$1"; sleep 30', "x", flag];

  test.each([
    ["plain", null],
    ["in a prefix", ["env", "X=1"]],
  ] as const)("a step that is told to end says so, and no exit code: %s", async (_, commandPrefix) => {
    const flag = join(newFolder(), "runs");
    const ran = await run(
      shell,
      { argv: waiting(flag), commandPrefix },
      {
        // As Slurm does: every process of the step, but for the interactive shell around it, which ignores it.
        during: (child) => once(flag, () => signalAll(child.pid, "SIGTERM")),
      },
    );
    expect(ran.markers).toEqual([{ kind: "stopped" }]);
  });
  test("a nested step that dies a moment before the signal is no failure of the program", async () => {
    const flag = join(newFolder(), "runs");
    const ran = await run(
      shell,
      { argv: waiting(flag), commandPrefix: ["env", "NESTED=1"] },
      {
        during: (child) =>
          once(flag, () => {
            const mine = below(child.pid);
            process.kill(mine.at(-1)!, "SIGKILL");
            for (const pid of mine.filter((one) => cmdline(one).startsWith("sh\0-c\0touch")))
              kill(pid, "SIGKILL");
            setTimeout(() => signalAll(child.pid, "SIGTERM"), 300);
          }),
      },
    );
    expect(ran.markers).toEqual([{ kind: "stopped" }]);
  });
  test("a step that is killed outright says nothing", async () => {
    const flag = join(newFolder(), "runs");
    const ran = await run(
      shell,
      { argv: waiting(flag) },
      { during: (child) => once(flag, () => process.kill(-child.pid, "SIGKILL")) },
    );
    expect(ran.markers).toEqual([]);
  });
});

function kill(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it has ended
  }
}
function cmdline(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
/** The processes below one, parents first. */
function below(pid: number): number[] {
  let children: number[] = [];
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number);
  } catch {
    // it has ended
  }
  return children.flatMap((child) => [child, ...below(child)]);
}
function signalAll(pid: number, signal: "SIGTERM"): void {
  for (const one of below(pid)) kill(one, signal);
}

describe("the environment's file", () => {
  test("any value comes back from a shell as it was", () => {
    const value = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", ""));
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 5 }), (values) => {
        const named = Object.fromEntries(values.map((one, index) => [`V${index}`, one]));
        const script = `${environmentText(named)}printf '%s\\0' ${values.map((_, index) => `"$V${index}"`).join(" ")}`;
        for (const shell of SHELLS) {
          const { stdout } = Bun.spawnSync([shell, "-c", script]);
          expect(stdout.toString()).toBe(`${values.map((one) => one.toWellFormed()).join("\0")}\0`);
        }
      }),
      { numRuns: 40 },
    );
  });
  test("what is allowed is taken from our own environment, what is set goes over it, what is missing is named", () => {
    expect(
      environmentValues(
        { allow: ["A", "B", "toString"], set: { C: "3" } },
        { A: "1", OTHER: "x", PATH: "/bin" },
      ),
    ).toEqual({ values: { A: "1", C: "3" }, unset: ["B", "toString"] });
  });
  test("a name that no shell takes is left out", () => {
    expect(environmentText({ "A B": "1", "1A": "2", "A;id": "3", OK: "4" })).toBe("OK='4'\nexport OK\n");
  });
});

describe("the task document", () => {
  const resources = {
    profileName: "test",
    infra: "slurm/cluster/part",
    acceleratorType: "MI300A",
    nodes: 1,
    acceleratorsPerNode: 4,
    cpusPerNode: 192,
    memoryGbPerNode: 480,
    exclusive: true,
    runtimeImage: "docker:img",
    commandPrefix: ["env"],
    allocationTime: "12:00:00",
    remoteArtifactRoot: null,
  };
  test("of an allocation, and of a job in it", () => {
    const head =
      '{"num_nodes":1,"resources":{"infra":"slurm/cluster/part","accelerators":"MI300A:4","cpus":192,"memory":480,"image_id":"docker:img"}';
    const config = '"config":{"slurm":{"sbatch_options":{"exclusive":true,"time":"12:00:00"}}}';
    expect(taskDocument(resources, null)).toBe(`${head},"run":"true",${config}}\n`);
    expect(taskDocument(resources, { run: "sh x", name: "job-a1", workdir: "/snap" })).toBe(
      `${head},"run":"sh x","name":"job-a1",${config},"workdir":"/snap"}\n`,
    );
  });
  test("what is not set is left out, and Slurm's options are for Slurm", () => {
    const bare = {
      ...resources,
      infra: "aws",
      cpusPerNode: null,
      memoryGbPerNode: null,
      runtimeImage: null,
      allocationTime: null,
    };
    expect(taskDocument(bare, null)).toBe(
      '{"num_nodes":1,"resources":{"infra":"aws","accelerators":"MI300A:4"},"run":"true"}\n',
    );
    expect(taskDocument({ ...bare, infra: "slurm", exclusive: false }, null)).not.toContain("config");
  });
});

test("a job's text is words that a shell reads back", () => {
  const text = runText({ ...PLAIN, argv: ["echo", "it's"] });
  expect(text).toStartWith("sh -c '");
  expect(shellWords(text).ok).toBe(true);
  expect(() => runText({ ...PLAIN, nonce: "a'b" })).toThrow("nonce");
});
