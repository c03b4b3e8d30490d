import { afterAll, describe, expect, test } from "bun:test";
import { COMMANDS } from "../../src/cli/app.ts";
import { run, shown } from "../acceptance/run.ts";
import { scratch } from "../outputs/support.ts";

const folder = scratch();
afterAll(() => folder.remove());

const NAMES = Object.keys(COMMANDS);

describe("help", () => {
  for (const name of ["", ...NAMES]) {
    test(name === "" ? "of the program" : name, async () => {
      const { exit, out, err } = await run([...name.split(" ").filter(Boolean), "--help"]);
      expect([exit, err]).toEqual([0, ""]);
      expect(out.replace(/\bv\d+\.\d+\.\d+\b/g, "vVERSION")).toMatchSnapshot();
      for (const line of out.split("\n")) expect([line, line.length <= 140]).toEqual([line, true]);
    });
  }
});

describe("a wrong command line: exit 2, one line, and what was meant", () => {
  const rows: readonly (readonly [line: string, err: string])[] = [
    ["judg", "neurarch-gate: unknown command judg. Did you mean `neurarch-gate judge`?"],
    ["--jsn", "neurarch-gate: unknown flag --jsn."],
    [
      "policy chek",
      "neurarch-gate: policy has no sub-command chek. Did you mean `neurarch-gate policy check`?",
    ],
    ["judge --skypliot x", "neurarch-gate judge: unknown flag --skypliot. Did you mean --skypilot?"],
    [
      "judge --output xml --slurm x",
      "neurarch-gate judge: --output is `xml`, not one of human, json, sarif, github, junit.",
    ],
    ["judge --output sraif --slurm x", "Did you mean `sarif`?"],
    [
      "judge x.yaml",
      "neurarch-gate judge: `x.yaml` is not expected here. Name a task file with --skypilot FILE",
    ],
    ["judge --model= --request A", "neurarch-gate judge: --model is empty."],
    ["judge --model", "neurarch-gate judge: --model needs a value."],
    ["size", "neurarch-gate size: MODEL is missing"],
    ["size gpt2 gpt3", "neurarch-gate size: `gpt3` is not expected here."],
    ["size gpt2 --bach 2", "neurarch-gate size: unknown flag --bach. Did you mean --batch?"],
    ["cards --prises x", "neurarch-gate cards: unknown flag --prises. Did you mean --prices?"],
    ["cards all", "neurarch-gate cards: `all` is not expected here."],
    ["rightsize", "neurarch-gate rightsize: FILE is missing"],
    ["doctor slrm", "neurarch-gate doctor: there is no doctor for slrm."],
    [
      "doctor bridge --campain x",
      "neurarch-gate doctor bridge: unknown flag --campain. Did you mean --campaign?",
    ],
    ["serve --lisen x", "neurarch-gate serve: unknown flag --lisen. Did you mean --listen?"],
    ["policy apply --polcy x", "neurarch-gate policy apply: unknown flag --polcy. Did you mean --policy?"],
    ["policy check --today tomorrow", "neurarch-gate policy check: "],
    [
      "policy explain admission/cost-cp",
      "neurarch-gate policy explain: there is no rule `admission/cost-cp`. Did you mean `admission/cost-cap`?",
    ],
    ["ledger --sinse 2026-01-01", "neurarch-gate ledger: unknown flag --sinse. Did you mean --since?"],
    ["evaluate acuracy", "neurarch-gate"],
    [
      "bridge sttus",
      "neurarch-gate bridge: bridge has no sub-command sttus. Did you mean `neurarch-gate bridge status`?",
    ],
    ["bridge run --sockt x", "neurarch-gate bridge run: unknown flag --sockt."],
    ["bridge status --jsno", "neurarch-gate bridge status: unknown flag --jsno. Did you mean --json?"],
    ["bridge cancel --sockt x", "neurarch-gate bridge cancel: unknown flag --sockt. Did you mean --socket?"],
    [
      "bridge release --sockt x",
      "neurarch-gate bridge release: unknown flag --sockt. Did you mean --socket?",
    ],
    [
      "bridge check --campain x",
      "neurarch-gate bridge check: unknown flag --campain. Did you mean --campaign?",
    ],
    [
      "bridge notes --campain x",
      "neurarch-gate bridge notes: unknown flag --campain. Did you mean --campaign?",
    ],
    [
      "bridge mounts --campain x",
      "neurarch-gate bridge mounts: unknown flag --campain. Did you mean --campaign?",
    ],
    ["bridge capabilities --zzz", "neurarch-gate bridge capabilities: unknown flag --zzz."],
    ["bridge rewrite --zzz", "neurarch-gate bridge rewrite: unknown flag --zzz."],
    [
      "ledger reconcile --sinse x",
      "neurarch-gate ledger reconcile: unknown flag --sinse. Did you mean --since?",
    ],
    ["ledger send --zzz", "neurarch-gate ledger send: unknown flag --zzz."],
    ["ledger prune --zzz", "neurarch-gate ledger prune: unknown flag --zzz."],
    ["schema polcy", "neurarch-gate schema: there is no schema `polcy`. Did you mean `policy`?"],
    ["schema", "neurarch-gate schema: NAME is missing"],
    ["print-lua --mod warn", "neurarch-gate print-lua: unknown flag --mod. Did you mean --mode?"],
    ["print-lua --mode wran", "neurarch-gate print-lua: "],
    ["print-python now", "neurarch-gate print-python: `now` is not expected here."],
    ["completion", "neurarch-gate completion: SHELL is missing"],
    ["completion bsah", "neurarch-gate completion: there is no completion for `bsah`. Did you mean `bash`?"],
    ["man --html", "neurarch-gate man: unknown flag --html."],
    ["self-test --jason", "neurarch-gate self-test: unknown flag --jason. Did you mean --json?"],
  ];
  for (const [line, expected] of rows) {
    test(line, async () => {
      const { exit, out, err } = await run(line.split(" "), { cwd: folder.path });
      expect([exit, out]).toEqual([2, ""]);
      expect(err).toContain(expected);
      expect(err.trimEnd().split("\n").length).toBe(1);
    });
  }
  test("every command is among the rows, but for the one that never ends with 2", () => {
    const missing = NAMES.filter(
      (name) => name !== "slurm" && !rows.some(([line]) => line === name || line.startsWith(`${name} `)),
    );
    expect(missing).toEqual([]);
  });
  test("of every command an unknown flag is refused with the nearest, and as one document under --json", async () => {
    for (const name of NAMES.filter((one) => one !== "slurm")) {
      const { command } = await COMMANDS[name]!();
      const flag = Object.entries(command.args).find(
        ([key, def]) => def.type !== "positional" && key.length > 4,
      )?.[0];
      const wrong = `--${(flag ?? "verbose").slice(0, -1)}q`;
      const { exit, out } = await run([...name.split(" "), wrong, "--json"]);
      const document = JSON.parse(out);
      expect([name, exit, document.schema, document.code]).toEqual([name, 2, "neurarch-gate/error", "usage"]);
      expect(document.message).toBe(`unknown flag ${wrong}`);
      if (flag !== undefined) expect(document.hint).toStartWith("Did you mean --");
    }
  });
  test("slurm lets the submit go on, and says what is wrong", async () => {
    const { exit, out } = await run(["slurm", "--scirpt", "x"]);
    expect([exit, out]).toEqual([
      0,
      "decision=allow\nmessage=Neurarch: not judged: unknown flag --scirpt; allowed unchecked (fail open). Did you mean --script?\n",
    ]);
  });
});

test("help COMMAND is the command's help, and of what is no command a suggestion", async () => {
  for (const words of [["judge"], ["policy", "check"], ["policy"], ["bridge", "run"]])
    expect(await run(["help", ...words])).toEqual(await run([...words, "--help"]));
  expect(await run(["help", "judg"])).toEqual({
    exit: 2,
    out: "",
    err: "neurarch-gate: unknown command judg. Did you mean `neurarch-gate judge`?\n",
  });
});

test("--version: the version, the commit it was built from and the target", async () => {
  const { exit, out } = await run(["--version"]);
  expect(exit).toBe(0);
  expect(out).toMatch(/^neurarch-gate \d+\.\d+\.\d+ \(([0-9a-f]{12}|release), linux-\w+\)\n$/);
});

describe("a terminal", () => {
  /** The output of a command line on a terminal of 70 columns, as `script` of util-linux gives it one. */
  function onTerminal(line: string, env: Record<string, string> = {}): string {
    const { stdout } = Bun.spawnSync(
      ["script", "-qec", `stty cols 70; dist/neurarch-gate ${line}`, "/dev/null"],
      {
        cwd: `${import.meta.dir}/../..`,
        env: {
          PATH: "/usr/bin:/bin",
          HOME: "/nonexistent",
          HF_HUB_OFFLINE: "1",
          TERM: "xterm-256color",
          ...env,
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    return stdout.toString().replaceAll("\r\n", "\n");
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape is what is looked for
  const COLOUR = /\u001b\[[0-9;]*m/g;
  const JUDGE = "judge --slurm examples/finetune-qwen3-8b.sbatch";
  test("lines are as wide as the terminal, and coloured unless NO_COLOR says otherwise", () => {
    const told = onTerminal(JUDGE);
    for (const line of told.replace(COLOUR, "").split("\n")) expect(line.length).toBeLessThanOrEqual(70);
    expect(told).toMatch(COLOUR);
    const plain = onTerminal(JUDGE, { NO_COLOR: "1" });
    expect(plain).not.toMatch(COLOUR);
    expect(plain).toBe(told.replace(COLOUR, ""));
    expect(onTerminal(JUDGE, { TERM: "dumb" })).not.toMatch(COLOUR);
    // An empty value does not ask for anything.
    expect(onTerminal(JUDGE, { NO_COLOR: "" })).toMatch(COLOUR);
  });
  test("documents for programs have no colour there either", () => {
    for (const output of ["json", "sarif", "github", "junit"])
      expect(onTerminal(`${JUDGE} --output ${output}`)).not.toMatch(COLOUR);
    for (const line of ["--help", "judge --help", "cards", "schema policy", "--version"])
      expect(onTerminal(line)).not.toMatch(COLOUR);
  });
  test("not on a terminal nothing is coloured", async () => {
    expect((await run(JUDGE.split(" "), { env: { TERM: "xterm-256color" } })).out).not.toMatch(COLOUR);
  });
});

test("--quiet: what is no error is not said on stderr, and data and exit stay", async () => {
  const args = ["judge", "--skypilot", "examples/lora-qwen3-8b.sky.yaml", "--rewrite"];
  const loud = await run(args);
  const quiet = await run([...args, "--quiet"]);
  expect([quiet.exit, quiet.out, quiet.err]).toEqual([loud.exit, loud.out, ""]);
  const wrong = await run(["judge", "--skypilot", "none.yaml", "--quiet"]);
  expect([wrong.exit, wrong.err === ""]).toEqual([4, false]);
});

export { shown };
