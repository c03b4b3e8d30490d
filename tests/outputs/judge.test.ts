import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Ran, run } from "../acceptance/run.ts";
import { githubCommand, junitErrors, sarifErrors, scratch } from "./support.ts";

const folder = scratch();
afterAll(() => folder.remove());

interface Result {
  readonly ruleId: string;
  readonly level: string;
  readonly message: { readonly text: string };
  readonly locations?: readonly {
    readonly physicalLocation: {
      readonly artifactLocation: { readonly uri: string };
      readonly region: { readonly startLine: number; readonly startColumn: number };
    };
  }[];
}

async function judged(file: string, text: string, args: readonly string[] = [], env = {}) {
  const mode = file.endsWith(".yaml") ? "--skypilot" : "--slurm";
  writeFileSync(join(folder.path, file), text);
  const of = (output: string): Promise<Ran> =>
    run(["judge", mode, file, "--output", output, ...args], { cwd: folder.path, env });
  const [sarif, github, junit] = await Promise.all([of("sarif"), of("github"), of("junit")]);
  const log = JSON.parse(sarif.out);
  expect(sarifErrors(log)).toEqual([]);
  expect(junitErrors(junit.out)).toBe("");
  const results: readonly Result[] = log.runs[0].results;
  return { results, sarif, github, junit, log };
}

/** `level line:column rule` of each result, in order. */
function spots(results: readonly Result[]): string[] {
  return results.map(({ level, ruleId, locations }) => {
    const { startLine, startColumn } = locations![0]!.physicalLocation.region;
    return `${level} ${startLine}:${startColumn} ${ruleId}`;
  });
}

const FIT = "admission/request-does-not-fit";
const SH = "#!/bin/bash\n";
const JOB = "#NEURARCH model=Qwen/Qwen3-8B batch=8\nsrun x\n";
const ENVS = "envs:\n  NEURARCH_MODEL: Qwen/Qwen3-8B\n  NEURARCH_BATCH: 8\nrun: x\n";

const ONE = ENVS.replace("BATCH: 8", "BATCH: 1");

const SPOTS: readonly (readonly [name: string, file: string, text: string, expected: readonly string[]])[] = [
  ["--gres", "a.sbatch", `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}`, [`error 2:9 ${FIT}`]],
  ["--gpus", "a.sbatch", `${SH}#SBATCH --gpus=a10g:1\n${JOB}`, [`error 2:9 ${FIT}`]],
  ["-G among others", "a.sbatch", `${SH}#SBATCH -N1 -G a10g:1 -t 5\n${JOB}`, [`error 2:13 ${FIT}`]],
  ["more blanks", "a.sbatch", `${SH}\n#SBATCH \t --gres gpu:a10g:1\n${JOB}`, [`error 3:11 ${FIT}`]],
  [
    "the value on the next line",
    "a.sbatch",
    `${SH}#SBATCH --gres\n#SBATCH gpu:a10g:1\n${JOB}`,
    [`error 2:9 ${FIT}`],
  ],
  [
    "the last of two counts",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:t4:1\n#SBATCH --gres=gpu:a10g:1\n${JOB}`,
    [`error 3:9 ${FIT}`, "note 3:9 judge/note"],
  ],
  ["--gpus-per-node", "a.sbatch", `${SH}#SBATCH -J x --gpus-per-node=a10g:1\n${JOB}`, [`error 2:14 ${FIT}`]],
  [
    "--gpus-per-task",
    "a.sbatch",
    `${SH}#SBATCH --ntasks=1\n#SBATCH --gpus-per-task=a10g:1\n${JOB}`,
    [`error 3:9 ${FIT}`],
  ],
  [
    "--tres-per-task",
    "a.sbatch",
    `${SH}#SBATCH -n1\n#SBATCH --tres-per-task=gres/gpu:a10g:1\n${JOB}`,
    [`error 3:9 ${FIT}`],
  ],
  [
    "--gres of something else beside --gpus",
    "a.sbatch",
    `${SH}#SBATCH --gres=lustre:1\n#SBATCH --gpus=a10g:1\n${JOB}`,
    [`error 3:9 ${FIT}`],
  ],
  [
    "DOS line ends",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}`.replaceAll("\n", "\r\n"),
    [`error 2:9 ${FIT}`, "note 2:9 judge/note"],
  ],
  [
    "a component each",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:a10g:1\n#SBATCH hetjob\n#SBATCH --gres=gpu:t4:1\n${JOB}`,
    [`error 2:9 ${FIT}`, `error 4:9 ${FIT}`],
  ],
  ["no card asked", "a.sbatch", `${SH}#SBATCH --time=5\n${JOB}`, ["note 2:1 judge/not-judged"]],
  ["no option at all", "a.sbatch", `${SH}${JOB}`, ["note 2:1 judge/not-judged"]],
  ["no model", "a.sbatch", `${SH}#SBATCH --gres=gpu:a10g:1\nsrun x\n`, ["note 2:9 judge/not-judged"]],
  ["an untyped GPU", "a.sbatch", `${SH}#SBATCH --gres=gpu:1\n${JOB}`, ["note 2:9 judge/not-judged"]],
  [
    "a value that cannot be read, at its own line",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:a10g:1\n#NEURARCH model=gpt2\n#NEURARCH batch=many\nsrun x\n`,
    ["note 4:1 judge/unreadable-fact"],
  ],
  [
    "a model that is not found, at the line that names it",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:a10g:1\n#NEURARCH model=no/such\nsrun x\n`,
    ["note 3:1 judge/not-judged"],
  ],
  [
    "an over-request",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:h100:8\n#NEURARCH model=gpt2 batch=1\nsrun x\n`,
    ["warning 2:9 admission/over-requested"],
  ],
  [
    "a fit",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:t4:1\n#NEURARCH model=gpt2 batch=1 seq-len=512\nsrun x\n`,
    [],
  ],
  ["a text", "a.yaml", `resources:\n  accelerators: A10G:1\n${ENVS}`, [`error 2:17 ${FIT}`]],
  [
    "quoted, and not the first key",
    "a.yaml",
    `# \u00fc\u{1f600}\n${ENVS}resources:\n  cpus: 4+\n  accelerators: "A10G:1"\n`,
    [`error 8:17 ${FIT}`],
  ],
  ["the other name", "a.yaml", `resources: {gpus: A10G}\n${ENVS}`, [`error 1:19 ${FIT}`]],
  [
    "a mapping",
    "a.yaml",
    `resources:\n  accelerators:\n    A10G: 1\n    T4: 2\n${ENVS}`,
    [`error 3:5 ${FIT}`, `error 4:5 ${FIT}`],
  ],
  [
    "a list",
    "a.yaml",
    `resources:\n  accelerators: [A10G:1, H200:8, T4:1]\n${ONE}`,
    [`error 2:18 ${FIT}`, `warning 2:26 admission/over-requested`, `error 2:34 ${FIT}`],
  ],
  [
    "any_of",
    "a.yaml",
    `resources:\n  any_of:\n    - accelerators: A10G:1\n    - accelerators: T4:1\n${ENVS}`,
    [`error 3:21 ${FIT}`, `error 4:21 ${FIT}`],
  ],
  [
    "ordered, a list in an entry",
    "a.yaml",
    `resources:\n  ordered:\n    - accelerators: {A10G: 1}\n      infra: aws\n    - infra: gcp\n      accelerators: T4:1\n${ENVS}`,
    [`error 3:22 ${FIT}`, `error 6:21 ${FIT}`],
  ],
  [
    "an entry that takes the base's",
    "a.yaml",
    `resources:\n  accelerators: A10G:1\n  any_of:\n    - infra: aws\n    - infra: gcp\n${ENVS}`,
    [`error 2:17 ${FIT}`, `error 2:17 ${FIT}`],
  ],
  [
    "a merge key and an anchor",
    "a.yaml",
    `x-skip: 1\n`.replace("x-skip: 1\n", "") +
      `resources:\n  any_of:\n    - &one\n      accelerators: A10G:1\n      infra: aws\n    - {<<: *one, infra: gcp}\n${ENVS}`,
    [`error 4:21 ${FIT}`, `error 4:21 ${FIT}`],
  ],
  [
    "the second document",
    "a.yaml",
    `name: pipe\n---\nname: one\nresources:\n  accelerators: A10G:1\n${ENVS}---\nname: two\nresources:\n  accelerators: T4:1\n${ENVS}`,
    [`error 5:17 ${FIT}`, `error 13:17 ${FIT}`],
  ],
  [
    "a card nobody knows",
    "a.yaml",
    `resources:\n  accelerators: A10H:1\n${ENVS}`,
    ["note 2:17 judge/not-judged"],
  ],
  [
    "an instance type",
    "a.yaml",
    `resources:\n  instance_type: p4d.24xlarge\n${ENVS}`,
    ["note 1:1 judge/not-judged"],
  ],
  ["no resources", "a.yaml", `name: x\n${ENVS}`, ["note 1:1 judge/not-judged"]],
  ["a memory form", "a.yaml", `resources:\n  accelerators: 16GB\n${ENVS}`, [`error 2:17 ${FIT}`]],
  [
    "facts that cannot be read, each at its line",
    "a.yaml",
    `resources:\n  accelerators: A10G:1\nenvs:\n  NEURARCH_MODEL: gpt2\n  NEURARCH_BATCH: many\n  NEURARCH_SEQ_LEN: -1\nrun: x\n`,
    ["error 5:1 judge/unreadable-fact", "error 6:1 judge/unreadable-fact"],
  ],
  [
    "DOS line ends, tabs and another option first",
    "a.sbatch",
    `${SH}#SBATCH\t--time=1\t--gres=gpu:a10g:1\n${JOB}`.replaceAll("\n", "\r\n"),
    [`error 2:18 ${FIT}`, "note 2:18 judge/note"],
  ],
  [
    "--gres within another option's quoted value",
    "a.sbatch",
    `${SH}#SBATCH --job-name="a --gres=gpu:t4:1" --gres="gpu:a10g:1"\n${JOB}`,
    [`error 2:40 ${FIT}`],
  ],
  [
    "--gres as another option's value, and a remark behind",
    "a.sbatch",
    `${SH}#SBATCH --comment=--gres=x --gres=gpu:a10g:1 # note\n${JOB}`,
    [`error 2:28 ${FIT}`],
  ],
  ["a value that is glued on", "a.sbatch", `${SH}#SBATCH -Ga10g:1\n${JOB}`, [`error 2:9 ${FIT}`]],
  [
    "given again behind the first command, where nothing counts",
    "a.sbatch",
    `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}#SBATCH --gres=gpu:h100:8\n`,
    [`error 2:9 ${FIT}`, "note 2:9 judge/note"],
  ],
  [
    "a byte order mark, and no line end at the end",
    "a.sbatch",
    `\ufeff${SH}#SBATCH --gres=gpu:a10g:1\n${JOB.trimEnd()}`,
    [`error 2:9 ${FIT}`, "note 2:9 judge/note"],
  ],
  [
    "any_of with DOS line ends, in block and flow",
    "a.yaml",
    `resources:\n  any_of:\n    - accelerators: A10G:1\n    - {accelerators: {T4: 1}}\n${ENVS}`.replaceAll(
      "\n",
      "\r\n",
    ),
    [`error 3:21 ${FIT}`, `error 4:23 ${FIT}`],
  ],
  [
    "any_of whose entries are alike, on one line",
    "a.yaml",
    `---\nresources: {any_of: [{accelerators: A10G:1}, {accelerators: A10G:1}]}\n${ENVS}`,
    [`error 2:37 ${FIT}`, `error 2:61 ${FIT}`],
  ],
  [
    "any_of beside the base's own",
    "a.yaml",
    `resources:\n  accelerators: {A10G: 1}\n  any_of:\n  - accelerators: T4:1\n  - infra: aws\n${ENVS}`,
    [`error 4:19 ${FIT}`, `error 2:18 ${FIT}`],
  ],
];

describe("where a finding stands", () => {
  for (const [name, file, text, expected] of SPOTS) {
    test(`${file}: ${name}`, async () => {
      const { results, github } = await judged(file, text);
      expect(spots(results)).toEqual([...expected]);
      for (const { locations } of results)
        expect(locations![0]!.physicalLocation.artifactLocation.uri).toBe(file);
      // GitHub is told the same places, and nothing that its runner reads otherwise.
      const annotations = github.out
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => githubCommand(line)!);
      const words = { error: "error", warning: "warning", notice: "note" } as Record<string, string>;
      expect(
        annotations.map(
          ({ command, properties }) =>
            `${words[command]} ${properties.line}:${properties.col} ${properties.title}`,
        ),
      ).toEqual([...expected]);
      expect(annotations.map(({ data }) => data)).toEqual(results.map(({ message }) => message.text));
    });
  }

  test("what SBATCH_GRES asks for stands nowhere in the script: its first option stands for it", async () => {
    const text = `${SH}#SBATCH --time=5\n#SBATCH --gres=gpu:h100:8\n${JOB}`;
    const { results } = await judged("a.sbatch", text, ["--read-env"], { SBATCH_GRES: "gpu:a10g:1" });
    expect(spots(results)[0]).toBe(`error 2:1 ${FIT}`);
  });
  test("what --gpus asks for is told where the file asks", async () => {
    const { results } = await judged("a.yaml", `resources:\n  accelerators: H200:8\n${ENVS}`, [
      "--gpus",
      "A10G:1",
    ]);
    expect(spots(results)).toEqual([`error 2:17 ${FIT}`]);
  });
  test("a file below, above and beside the working directory, and from the checkout's root", async () => {
    const uri = async (file: string, cwd: string, env = {}) => {
      const ran = await run(["judge", "--slurm", file, "--output", "sarif"], { cwd, env });
      return JSON.parse(ran.out).runs[0].results[0].locations[0].physicalLocation.artifactLocation.uri;
    };
    const root = `${folder.path}/root`;
    await Bun.write(`${root}/jobs/a b.sbatch`, `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}`);
    expect(await uri("jobs/a b.sbatch", root)).toBe("jobs/a%20b.sbatch");
    expect(await uri("./jobs/../jobs/a b.sbatch", root)).toBe("jobs/a%20b.sbatch");
    expect(await uri(`${root}/jobs/a b.sbatch`, root)).toBe("jobs/a%20b.sbatch");
    expect(await uri("a b.sbatch", `${root}/jobs`, { GITHUB_WORKSPACE: root })).toBe("jobs/a%20b.sbatch");
    expect(await uri(`${root}/jobs/a b.sbatch`, "/usr")).toBe(`file://${root}/jobs/a%20b.sbatch`);
  });
  test("a request on plain flags, and one on standard input, stand in no file", async () => {
    const args = "judge --model Qwen/Qwen3-8B --request A10G:1 --batch 8 --output".split(" ");
    const { runs } = JSON.parse((await run([...args, "sarif"])).out);
    expect(runs[0].results[0].locations).toBeUndefined();
    expect((await run([...args, "github"])).out).toStartWith(
      `::error title=${FIT}::Neurarch: Qwen/Qwen3-8B needs`,
    );
    const junit = await run([...args, "junit"]);
    expect([junit.exit, junitErrors(junit.out)]).toEqual([1, ""]);
    const stdin = `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}`;
    const piped = await run(["judge", "--slurm", "-", "--output", "sarif"], { stdin });
    expect(JSON.parse(piped.out).runs[0].results[0].locations).toBeUndefined();
  });
});

describe("exit codes follow the results", () => {
  const rows: readonly (readonly [
    name: string,
    text: string,
    args: readonly string[],
    exit: number,
    counts: string,
  ])[] = [
    [
      "refused",
      `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}`,
      [],
      1,
      'tests="1" failures="1" errors="0" skipped="0"',
    ],
    [
      "not judged",
      `${SH}#SBATCH --gres=gpu:1\n${JOB}`,
      [],
      3,
      'tests="1" failures="0" errors="0" skipped="1"',
    ],
    [
      "not judged, open",
      `${SH}#SBATCH --gres=gpu:1\n${JOB}`,
      ["--fail-open"],
      0,
      'tests="1" failures="0" errors="0" skipped="1"',
    ],
    [
      "not judged, closed",
      `${SH}#SBATCH --gres=gpu:1\n${JOB}`,
      ["--fail-closed"],
      1,
      'tests="1" failures="1" errors="0" skipped="0"',
    ],
    [
      "warned",
      `${SH}#SBATCH --gres=gpu:h100:8\n#NEURARCH model=gpt2 batch=1\n`,
      [],
      0,
      'tests="1" failures="0" errors="0" skipped="0"',
    ],
    [
      "warned, which fails",
      `${SH}#SBATCH --gres=gpu:h100:8\n#NEURARCH model=gpt2 batch=1\n`,
      ["--fail-on", "warn"],
      10,
      'tests="1" failures="1" errors="0" skipped="0"',
    ],
    [
      "two jobs, one refused",
      `${SH}#SBATCH --gres=gpu:a10g:1\n#SBATCH hetjob\n#SBATCH --gres=gpu:h200:2\n${JOB.replace("batch=8", "batch=1")}`,
      [],
      1,
      'tests="2" failures="1" errors="0" skipped="0"',
    ],
  ];
  for (const [name, text, args, exit, counts] of rows) {
    test(name, async () => {
      const { sarif, github, junit } = await judged("e.sbatch", text, args);
      expect([sarif.exit, github.exit, junit.exit]).toEqual([exit, exit, exit]);
      expect(/<testsuite [^>]*(tests=.*) time/.exec(junit.out)?.[1]).toBe(counts);
      expect([sarif.err, github.err, junit.err]).toEqual(["", "", ""]);
    });
  }

  test("a dropped candidate is a warning, not an error, where another is rewritten to", async () => {
    const text = `resources:\n  accelerators: {A10G: 1, H200: 8}\n${ONE}`;
    const { results, sarif } = await judged("m.yaml", text, ["--mutate"]);
    expect([sarif.exit, results.map(({ level }) => level)]).toEqual([0, ["warning", "note", "warning"]]);
  });

  test("a file that cannot be read: its place, and exit 4", async () => {
    const broken = "resources:\n  accelerators: [A10G\nrun: x\n";
    const { log, results, sarif, github, junit } = await judged("b.yaml", broken);
    expect([sarif.exit, github.exit, junit.exit]).toEqual([4, 4, 4]);
    expect(results.map(({ ruleId, level }) => `${level} ${ruleId}`)).toEqual([
      "error judge/unreadable-input",
    ]);
    expect(spots(results)[0]).toMatch(/^error [34]:\d+ /);
    expect(log.runs[0].invocations[0].executionSuccessful).toBe(false);
    expect(github.out).toMatch(/^::error file=b\.yaml,line=[34],col=\d+,title=judge\/unreadable-input::/);
    expect(junit.out).toContain('errors="1"');
    for (const { err } of [sarif, github, junit]) expect(err).toStartWith("neurarch-gate judge: b.yaml: ");
    const gone = await run(["judge", "--slurm", "none.sbatch", "--output", "github"], { cwd: folder.path });
    expect([gone.exit, gone.out]).toEqual([
      4,
      "::error file=none.sbatch,title=judge/unreadable-input::none.sbatch does not exist. Name a readable regular file.\n",
    ]);
  });

  test("outputs that exclude each other", async () => {
    for (const other of ["--json", "--explain", "--rewrite"]) {
      const ran = await run([
        "judge",
        "--skypilot",
        "examples/lora-qwen3-8b.sky.yaml",
        "--output",
        "junit",
        other,
      ]);
      expect([ran.exit, ran.out === "" || other === "--json"]).toEqual([2, true]);
    }
  });
});

describe("names that mean mischief", () => {
  const NASTY = "x::error file=a%0A::,b%25]]><b a='\"&amp;\u0001\u001b[31m\u2028\ufffe\ud83d";
  const rows: readonly (readonly [name: string, file: string, text: string])[] = [
    ["a file's name", `::warning::a%0A,b: <c>&"'\u0007.sbatch`, `${SH}#SBATCH --gres=gpu:a10g:1\n${JOB}`],
    [
      "a job's name",
      "n.sbatch",
      `${SH}#SBATCH --gres=gpu:a10g:1 --job-name='${NASTY.replaceAll("'", "")}'\n${JOB}`,
    ],
    [
      "a model",
      "n.sbatch",
      `${SH}#SBATCH --gres=gpu:a10g:1\n#NEURARCH model="${NASTY.replaceAll('"', "")}"\n`,
    ],
    [
      "a card",
      "n.yaml",
      `resources:\n  accelerators: ${JSON.stringify(`${NASTY.toWellFormed().replaceAll(":", "")}:1`)}\n${ENVS}`,
    ],
    [
      "a task",
      "n.yaml",
      `name: ${JSON.stringify(NASTY.toWellFormed())}\nresources:\n  accelerators: A10G:1\n${ENVS}`,
    ],
    [
      "a variable",
      "n.yaml",
      `resources:\n  accelerators: A10G:1\nenvs:\n  NEURARCH_MODEL: gpt2\n  NEURARCH_BATCH: ${JSON.stringify(`\n::error::pwned\n${NASTY.toWellFormed()}`)}\nrun: x\n`,
    ],
  ];
  for (const [name, file, text] of rows) {
    test(name, async () => {
      const { results, github, junit } = await judged(file, text);
      const lines = github.out.split("\n").filter((line) => line !== "");
      expect(lines.length).toBe(results.length);
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) {
        const { command, properties, data } = githubCommand(line)!;
        expect(["error", "warning", "notice"]).toContain(command);
        expect(Object.keys(properties).sort()).toEqual(["col", "file", "line", "title"]);
        expect(properties.file).toBe(file.replace("\u0007", ""));
        expect(data).not.toMatch(/[\p{Cc}\u2028\ufffe]/u);
      }
      expect(junit.out.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u2028\ufffe]/u);
    });
  }
});
