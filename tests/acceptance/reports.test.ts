import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { CONFIGS, configOf, readRows, recipeOf } from "../sizing/rows.ts";
import { DECIDED } from "./decided.ts";
import { BINARY, run } from "./run.ts";

/** Requests, tasks, configs and surprises as people have reported them to other tools, and the right answer to each. */

let folder = "";
const at = (name: string) => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-reports-"));
  writeFileSync(at("partitions.json"), '{"mi300": "MI300A"}');
  writeFileSync(at("site.json"), '{"h100": "H100", "a10": "A10G", "rtx_6000": "RTX6000-Ada"}');
  writeFileSync(at("small-card.json"), '{"Titan12": {"gb": 12}}');
  writeFileSync(at("8b.sbatch"), "#!/bin/bash\n#NEURARCH model=Qwen/Qwen3-8B batch=8\ntrain\n");
  writeFileSync(
    at("no-gpu.sbatch"),
    "#!/bin/bash\n#SBATCH --constraint=h100 --exclusive\n#NEURARCH model=Qwen/Qwen3-8B batch=8\ntrain\n",
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Verdict {
  readonly decision: string;
  readonly reason: string;
  readonly message: string;
  readonly request: {
    readonly accelerator: string;
    readonly count: number | null;
    readonly nodes: number | null;
    readonly label: string;
    readonly gb: number | null;
  };
  readonly needGb: number | null;
  readonly peakGb: number | null;
  readonly fit: string | null;
  readonly largestBatch: number | null;
  readonly smallestCard: string | null;
  readonly smallestRequest: Count | null;
  readonly rightSized: Count | null;
  readonly stateGb: number | null;
  readonly rewriteTo: Count | null;
  readonly costUsd: number | null;
}
interface Count {
  readonly accelerator: string;
  readonly count: number;
}
interface Judged {
  readonly exit: number;
  readonly decision: string;
  readonly text: string;
  readonly verdicts: readonly Verdict[];
  readonly sizing: { readonly batch: number; readonly seqLen: number } | null;
}
interface Told {
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  /** Words that the messages hold, and words that they never hold. */
  readonly says?: readonly string[];
  readonly never?: readonly string[];
}

/** Runs `judge --json`; FOLDER in an argument is the scratch folder. */
async function judge(
  args: readonly string[],
  stdin?: string,
  env: Record<string, string> = {},
): Promise<Judged> {
  const { exit, out, err } = await run(
    ["judge", "--json", ...args.map((word) => word.replaceAll("FOLDER", folder))],
    { env, ...(stdin === undefined ? {} : { stdin }) },
  );
  if (err !== "") throw new Error(err);
  const document = JSON.parse(out);
  return { ...document, exit, text: document.messages.join("\n") };
}

/** A small model that a single 16 GB card holds, so that what is asked for decides the answer. */
const SMALL = "#NEURARCH model=gpt2 batch=1 seq-len=512\n";

function script(lines: readonly string[], model = SMALL): string {
  return `#!/bin/bash\n${lines.map((line) => `#SBATCH ${line}\n`).join("")}${model}train\n`;
}

function told({ text }: Judged, { says = [], never = [] }: Told): void {
  for (const words of says) expect(text).toContain(words);
  for (const words of never) expect(text).not.toContain(words);
}

/** What an expectation of a request reads: `a100:8 320 GB`, or `gpu:8 untyped-gpu` where it is not judged. */
function asked(verdict: Verdict): string {
  const { label, gb } = verdict.request;
  return verdict.decision === "unjudged" ? `${label} ${verdict.reason}` : `${label} ${gb} GB`;
}

type Request = readonly [name: string, lines: readonly string[], wanted: string, told?: Told];
const A100 = { args: ["--default-gpu-type", "a100"] };

const REQUESTS: readonly Request[] = [
  ["socket bindings behind an untyped count", ["--gres=gpu:8(S:0-3)"], "gpu:8 untyped-gpu"],
  ["... and the site's type for it", ["--gres=gpu:8(S:0-3)"], "a100:8 320 GB", A100],
  [
    "a type with an underscore and a binding",
    ["--gres=gpu:rtx_6000:4(S:0-1)"],
    "rtx_6000:4 192 GB",
    { args: ["--gpu-map", "FOLDER/site.json"] },
  ],
  ["a name of three cards", ["--gres=gpu:rtx_6000:4(S:0-1)"], "rtx_6000:4 card-unknown"],
  ["a comma inside a binding", ["--gres=gpu:a100:4(S:0,2)"], "a100:4 160 GB"],
  ["a comma inside a binding, and one behind it", ["--gres=gpu:a100:4(S:0,2),tmpfs:9G"], "a100:4 160 GB"],
  [
    "a total that repeats the typed count",
    ["-n 1 --tres-per-task=gres/gpu:a100=1,gres/gpu=1"],
    "a100:1 40 GB",
  ],
  ["the same as --gres", ["--gres=gres/gpu:a100=1,gres/gpu=1"], "a100:1 40 GB"],
  ["the total first", ["--gres=gres/gpu=1,gres/gpu:a100=1"], "a100:1 40 GB"],
  ["a type and a count", ["--gres=gpu:v100:4"], "v100:4 64 GB"],
  [
    "one of eight cards with --exclusive",
    ["--exclusive --gres=gpu:a100:1"],
    "a100:1 40 GB",
    { says: ["--exclusive may grant the whole node"], never: ["over-requested"] },
  ],
  ["among other resources", ["--gres=tmpfs:100G,gpu:a100:2,lscratch:50G"], "a100:2 80 GB"],
  ["--gres twice", ["--gres=gpu:a100:4", "--gres=gpu:h100:2"], "h100:2 160 GB", { says: ["given twice"] }],
  ["--gres=gpu", ["--gres=gpu"], "a100:1 40 GB", A100],
  ["--gres=gpu:TYPE", ["--gres=gpu:a100"], "a100:1 40 GB"],
  ["-G 1", ["-G 1"], "a100:1 40 GB", A100],
  ["a lone word after --gpus=", ["--gpus=a100"], "a100:1 40 GB"],
  ["a shard", ["--gres=shard:1"], "shard:1 shared-gpu"],
  ["a part by MPS", ["--gres=mps:50"], "mps:50 shared-gpu"],
  [
    "a slice with dots and underscores",
    ["--gres=gpu:nvidia_h100_80gb_hbm3_4g.40gb:2"],
    "nvidia_h100_80gb_hbm3_4g.40gb:2 80 GB",
    { says: ["on each slice", "40 GB each"], never: ["sharded"] },
  ],
  ["a slice of 5 GB", ["--gres=gpu:nvidia_a100_1g.5gb:1"], "nvidia_a100_1g.5gb:1 5 GB"],
  ["a slice of 20 GB", ["--gres=gpu:a100_3g.20gb:1"], "a100_3g.20gb:1 20 GB"],
  ["a slice without a count", ["--gres=gpu:a100_3g.20gb"], "a100_3g.20gb:1 20 GB"],
  [
    "two types for each task",
    ["--gpus-per-task=volta:3,kepler:1 --ntasks=4"],
    "volta:12 + kepler:4 mixed-cards",
  ],
  [
    "... and nothing says how many tasks",
    ["--gpus-per-task=volta:3,kepler:1"],
    "volta:3 + kepler:1 per task task-count-unknown",
  ],
  ["two cards for each of eight tasks", ["--gpus-per-task=2 -n 8"], "a100:16 640 GB", A100],
  ["a job's total over nodes", ["--gpus=8 --nodes=2"], "a100:4 x 2 nodes 320 GB", A100],
  ["the least of a range of nodes", ["--gpus-per-node=a100:4 --nodes=2-6"], "a100:4 x 2 nodes 320 GB"],
  ["a card for each of four tasks", ["--tres-per-task=gres/gpu:h100:1 -n 4"], "h100:4 320 GB"],
  ["for each socket", ["--gpus-per-socket=a100:2 --sockets-per-node=2"], "a100:4 160 GB"],
  ["in capitals", ["--gres=gpu:H100:8"], "H100:8 640 GB", { says: ["H100:8 (640 GB)"] }],
  ["in small letters", ["--gres=gpu:h100:8"], "h100:8 640 GB", { says: ["h100:8 (640 GB)"] }],
  [
    "a partition of one kind",
    ["--gres=gpu:4 -p mi300"],
    "MI300A:4 512 GB",
    { args: ["--partition-map", "FOLDER/partitions.json"] },
  ],
  ["a partition that no map names", ["--gres=gpu:4 -p mi300"], "gpu:4 untyped-gpu"],
  [
    "a count only in the environment, with --read-env",
    [],
    "a100:8 320 GB",
    { args: ["--read-env", ...A100.args], env: { SBATCH_GPUS_PER_NODE: "8" } },
  ],
];

describe("what a batch script asks for", () => {
  for (const [name, lines, wanted, words = {}] of REQUESTS) {
    test(`${name}: ${lines.join(" ")}`, async () => {
      const judged = await judge(["--slurm", "-", ...(words.args ?? [])], script(lines), words.env);
      expect(judged.verdicts.map(asked)).toEqual([wanted]);
      const unjudged = !wanted.endsWith(" GB");
      expect(judged.exit).toBe(unjudged ? 3 : 0);
      if (unjudged) expect(judged.text).toContain("not judged");
      told(judged, words);
    });
  }

  test("a count only in the environment is not read offline, and that is said", async () => {
    const judged = await judge(["--slurm", "-"], script([]), { SBATCH_GPUS_PER_NODE: "a100:8" });
    expect(judged.verdicts).toEqual([]);
    told(judged, { says: ["no accelerator is asked for", "SBATCH_GPUS_PER_NODE", "--read-env"] });
  });

  test("slices are judged one by one, however many there are", async () => {
    const model = "#NEURARCH model=Qwen/Qwen3-4B batch=1\n";
    const slices = ["--gres=gpu:nvidia_h100_80gb_hbm3_4g.40gb:7"];
    const { verdicts, text } = await judge(["--slurm", "-"], script(slices, model));
    const [one] = (await judge(["--slurm", "-"], script(["--gres=gpu:h100:1"], model))).verdicts;
    expect(verdicts[0]).toMatchObject({ decision: "refuse", reason: "too-small", smallestRequest: null });
    expect(verdicts[0]!.needGb).toBe(one!.needGb);
    expect(text).toContain("each slice of nvidia_h100_80gb_hbm3_4g.40gb:7 holds 40 GB");
    expect(text).not.toContain("sharded");
  });

  test("a slice is not the card that its name begins with", async () => {
    const model = "#NEURARCH model=Qwen/Qwen3-4B batch=1 lora-rank=16\n";
    const decisions = [];
    for (const type of ["nvidia_a100_1g.5gb", "a100_3g.20gb", "a100"]) {
      const { verdicts } = await judge(["--slurm", "-"], script([`--gres=gpu:${type}:1`], model));
      decisions.push(verdicts[0]!.decision);
    }
    expect(decisions).toEqual(["refuse", "refuse", "allow"]);
  });

  test("the message repeats the user's spelling, suggestions have the site's", async () => {
    const judged = await judge(
      ["--slurm", "-", "--gpu-map", "FOLDER/site.json"],
      script(["--gres=gpu:A10:1"], "#NEURARCH model=Qwen/Qwen3-0.6B batch=4\n"),
    );
    expect(judged.verdicts[0]).toMatchObject({ decision: "refuse", smallestCard: "h100" });
    told(judged, { says: ["A10:1 holds 24 GB", "is h100:1."], never: ["H100", "A10G"] });
  });
});

/** Lines that sbatch does not read: [name, script, the lines that are told as ignored]. */
const IGNORED: readonly (readonly [string, string, readonly number[]])[] = [
  [
    "behind the first command",
    `#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n${SMALL}module load cuda\n#SBATCH --gres=gpu:8\n#NEURARCH batch=64\n`,
    [5, 6],
  ],
  [
    "with blanks before them",
    `#!/bin/bash\n  #SBATCH --gres=gpu:8\n#SBATCH --gres=gpu:a10g:1\n${SMALL}  #NEURARCH batch=64\n`,
    [2, 5],
  ],
  [
    "commented out",
    `#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n##SBATCH --gres=gpu:8\n${SMALL}##NEURARCH batch=64\n`,
    [3, 5],
  ],
];
const CRLF = script(["--gres=gpu:a10g:1"]).replaceAll("\n", "\r\n");
const BOM = `\ufeff${script(["--gres=gpu:a10g:1"])}`;
const WRITTEN: readonly (readonly [string, string, readonly string[]])[] = [
  ["DOS line ends", CRLF, ["DOS line ends", "sbatch refuses"]],
  ["a byte order mark", BOM, ["byte order mark", "sbatch sees no #!"]],
];

describe("how a batch script is written", () => {
  for (const [name, text, lines] of IGNORED) {
    test(`directives ${name} are ignored and told`, async () => {
      const { verdicts, sizing, text: messages } = await judge(["--slurm", "-"], text);
      expect(verdicts.map(asked)).toEqual(["a10g:1 24 GB"]);
      expect(sizing?.batch).toBe(1);
      expect([...messages.matchAll(/line (\d+) is ignored/g)].map(([, line]) => Number(line))).toEqual([
        ...lines,
      ]);
    });
  }
  for (const [name, text, says] of WRITTEN) {
    test(`${name} are told, and the directives still read`, async () => {
      const judged = await judge(["--slurm", "-"], text);
      expect(judged.verdicts.map(asked)).toEqual(["a10g:1 24 GB"]);
      expect({ decision: judged.decision, batch: judged.sizing?.batch }).toEqual({
        decision: "allow",
        batch: 1,
      });
      expect(JSON.stringify(judged.verdicts)).not.toContain("\\r");
      told(judged, { says });
    });
  }
});

describe("at submit time", () => {
  const submitted = async (args: readonly string[], env: Record<string, string> = {}) => {
    const ran = await run(["slurm", ...args], { env });
    expect({ exit: ran.exit, err: ran.err }).toEqual({ exit: 0, err: "" });
    return ran.out;
  };

  test("what sbatch merged from its environment is the request", async () => {
    const out = await submitted(["--script", at("8b.sbatch"), "--gpus-per-node", "a10g:8"]);
    expect(out).toStartWith("decision=warn\nmessage=Neurarch: Qwen/Qwen3-8B needs 1802.2 GB");
    expect(out).toContain("a10g:8 holds 192 GB");
  });

  test("a submit from inside a job is judged", async () => {
    const args = ["--script", at("8b.sbatch"), "--gres", "gpu:a10g:1", "--mode", "reject"];
    expect(await submitted(args, { SLURM_JOB_ID: "77" })).toStartWith("decision=reject\n");
  });

  for (const words of [["--exclusive"], ["--exclusive=exclusive"]]) {
    test(`${words} beside a request is a note`, async () => {
      const out = await submitted(["--script", at("8b.sbatch"), "--gres", "gpu:h200:8", ...words]);
      expect(out).not.toContain("not judged");
      expect(out).not.toContain("over-requested");
      expect(out).toContain("--exclusive may grant the whole node");
    });
  }

  test("a constraint in place of a request is no request, and nothing is said", async () => {
    expect(await submitted(["--script", at("no-gpu.sbatch")])).toBe("decision=allow\n");
  });
});

/** Lua of the distributions that Slurm is linked with; CI has them all. */
const LUAS = ["5.1", "5.2", "5.3", "5.4"].filter(
  (version) => process.env.CI !== undefined || Bun.which(`lua${version}`) !== null,
);
const STUB = resolve(import.meta.dir, "../slurm/stub.lua");

describe("the filter that print-lua writes", () => {
  /** Loads the filter under one Lua with the real executable behind it and submits once. */
  async function submit(
    version: string,
    values: Record<string, string>,
    flags: readonly string[] = [],
    env: Record<string, string> = {},
  ) {
    const started = at("started");
    rmSync(started, { force: true });
    writeFileSync(at("gate"), `#!/bin/sh\ntouch '${started}'\nexec '${BINARY}' "$@"\n`);
    chmodSync(at("gate"), 0o755);
    writeFileSync(at("filter.lua"), (await run(["print-lua", "--binary", at("gate"), ...flags])).out);
    const { type = "sbatch", ...set } = values;
    const options = Object.entries(set).map(([name, value]) => `["${name}"]="${value}"`);
    const argv = type === "sbatch" ? `{"${at(set.script ?? "8b.sbatch")}"}` : '{"train"}';
    writeFileSync(
      at("scenario.lua"),
      `slurm.json_cli_options = function() return json_of({${options}}, ${argv}) end\n` +
        `submit(proxy({type="${type}", argv=${argv}, nodes="1-0", ${options}}), 0)\n`,
    );
    const child = Bun.spawnSync([`lua${version}`, STUB, at("filter.lua"), at("scenario.lua")], {
      env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", ...env },
      stdin: "ignore",
    });
    expect(child.stderr.toString()).toBe("");
    return { out: child.stdout.toString(), started: existsSync(started) };
  }

  for (const version of LUAS) {
    test(`Lua ${version}: defines the three functions and needs nothing to load`, async () => {
      writeFileSync(at("filter.lua"), (await run(["print-lua"])).out);
      const program = `
        require, unpack, table.unpack, loadstring, load, slurm = nil
        dofile("${at("filter.lua")}")
        for _, name in ipairs({"setup_defaults", "pre_submit", "post_submit"}) do print(type(_G["slurm_cli_" .. name])) end`;
      const child = Bun.spawnSync([`lua${version}`, "-e", program]);
      expect(child.stderr.toString() + child.stdout.toString()).toBe("function\n".repeat(3));
    });

    test(`Lua ${version}: a step never starts the executable, a submit does`, async () => {
      const job = { SLURM_JOB_ID: "77", NEURARCH_MODEL: "Qwen/Qwen3-8B" };
      const gres = { gres: "gres:gpu:a10g:4" };
      const step = await submit(version, { type: "srun", jobid: "77", ...gres }, [], job);
      expect(step).toEqual({ out: "return 0\n", started: false });
      const nested = await submit(version, gres, ["--mode", "reject"], job);
      expect(nested.started).toBe(true);
      expect(nested.out).toContain("Qwen/Qwen3-8B needs");
      expect(nested.out).toEndWith("return -1\n");
      const plain = await submit(version, { type: "srun", jobid: "unset", ...gres }, [], job);
      expect(plain.started).toBe(true);
    });
  }

  test("no request is silent; debug says why", async () => {
    const [version = "5.1"] = LUAS;
    const constraint = { constraint: "h100", exclusive: "exclusive", script: "no-gpu.sbatch" };
    expect(await submit(version, constraint)).toEqual({ out: "return 0\n", started: false });
    expect((await submit(version, constraint, ["--debug"])).out).toContain("no GPU is asked for");
  });
});

/** A SkyPilot task around one value of `accelerators:`. */
function task(accelerators: string, envs: readonly string[] = [], model = "gpt2"): string {
  const lines = [`NEURARCH_MODEL: ${model}`, "NEURARCH_SEQ_LEN: 512", ...envs];
  return `resources:\n  accelerators: ${accelerators}\nenvs:\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

describe("values that YAML 1.1 turns into something else", () => {
  /** [as written, the batch that is sized, or null where it is refused as unreadable, what SkyPilot makes of it]. */
  const BATCHES: readonly (readonly [string, number | null, string?])[] = [
    ["8", 8],
    ["010", 8],
    ['"8"', 8],
    ["0x10", 16],
    ["08", null, "08"],
    ["8.0", null, "8.0"],
    ["1e3", null, "1e3"],
    ["on", null, "True"],
  ];
  for (const [written, batch, value] of BATCHES) {
    test(`NEURARCH_BATCH: ${written}`, async () => {
      const judged = await judge(["--skypilot", "-"], task("A10G:1", [`NEURARCH_BATCH: ${written}`]));
      if (batch !== null) {
        expect(judged.sizing?.batch).toBe(batch);
        return;
      }
      expect({ exit: judged.exit, reason: judged.verdicts[0]!.reason }).toEqual({
        exit: 1,
        reason: "facts-unreadable",
      });
      told(judged, { says: [`NEURARCH_BATCH on line 6: "${value}"`, 'write NEURARCH_BATCH: "8"'] });
    });
  }

  test("NEURARCH_HOURS: 1:30 is ninety hours", async () => {
    const costs = [];
    for (const hours of ["1:30", "90"]) {
      const text = task("A10G:1", ["NEURARCH_BATCH: 1", `NEURARCH_HOURS: ${hours}`]);
      costs.push((await judge(["--skypilot", "-"], text)).verdicts[0]!.costUsd);
    }
    expect(costs[0]).toBeCloseTo(90 * 1.1, 9);
    expect(costs[1]).toBe(costs[0]!);
  });
});

type Accelerators = readonly [written: string, wanted: readonly string[], told?: Told];
const ACCELERATORS: readonly Accelerators[] = [
  ["[A100:1, V100:1]", ["A100:1 40 GB", "V100:1 16 GB"]],
  ["[V100:1, A100:1]", ["V100:1 16 GB", "A100:1 40 GB"]],
  ["{A100:1, 'T4:4'}", ["A100:1 40 GB", "T4:4 64 GB"]],
  ["{A100: 1, V100: 1}", ["A100:1 40 GB", "V100:1 16 GB"]],
  ["8xH100", ["8xH100:1 card-unknown"], { says: ["Did you mean H100:8?"] }],
  ["H100:8", ["H100:8 640 GB"]],
  ["H100", ["H100:1 80 GB"]],
  ["h100:8", ["h100:8 640 GB"]],
  ["A10G:0.5", ["A10G:0.5 fractional"]],
  ["H100:1.0", ["H100:1 80 GB"]],
  ["80GB+", ["80GB+:1 80 GB"], { says: ["at least 80 GB"], never: ["card-unknown", "No capacity"] }],
  ["80GB:8", ["80GB:8 640 GB"], { says: ["at least 640 GB"], never: ["No capacity"] }],
  ["NVIDIA:40GB+:2", ["NVIDIA:40GB+:2 80 GB"], { says: ["at least 80 GB"], never: ["No capacity"] }],
  ["NVIDIA:80GB", ["NVIDIA:80GB:1 80 GB"], { says: ["at least 80 GB"], never: ["No capacity"] }],
];

describe("what a task asks for", () => {
  for (const [written, wanted, words = {}] of ACCELERATORS) {
    test(`accelerators: ${written}`, async () => {
      const judged = await judge(["--skypilot", "-"], task(written, ["NEURARCH_BATCH: 1"]));
      expect(judged.verdicts.map(asked)).toEqual([...wanted]);
      expect(judged.exit).toBe(wanted[0]!.endsWith(" GB") ? 0 : 3);
      told(judged, words);
    });
  }

  test("a refusal names the candidates that do not fit, and only those", async () => {
    const text = task("[H200:8, V100:1]", ["NEURARCH_BATCH: 1"], "Qwen/Qwen3-8B");
    const judged = await judge(["--skypilot", "-"], text);
    expect(judged.verdicts.map(({ decision }) => decision)).toEqual(["warn", "refuse"]);
    expect({ exit: judged.exit, decision: judged.decision }).toEqual({ exit: 1, decision: "refuse" });
    told(judged, { says: ["1 of 2 candidates refused: V100:1."], never: ["H200:8 holds"] });
  });

  for (const written of ["80GB+", "80GB:8", "NVIDIA:40GB+:2"]) {
    test(`${written} is never rewritten`, async () => {
      const judged = await judge(["--skypilot", "-", "--mutate"], task(written, ["NEURARCH_BATCH: 1"]));
      expect(judged.decision).toBe("warn");
      expect(judged.verdicts[0]!.rewriteTo).toBeNull();
    });
  }

  test("a memory size is refused only where no card of it holds the job", async () => {
    const decisions = [];
    for (const written of ["80GB", "80GB+"]) {
      const judged = await judge(["--skypilot", "-"], task(written, ["NEURARCH_BATCH: 1"], "Qwen/Qwen3-8B"));
      decisions.push(judged.decision);
      if (judged.decision === "refuse") told(judged, { says: ["80GB:1 holds at least 80 GB"] });
    }
    expect(decisions).toEqual(["refuse", "warn"]);
  });

  for (const model of [`\${BASE_MODEL}`, "$BASE_MODEL"]) {
    test(`NEURARCH_MODEL: ${model} is no model's name`, async () => {
      const text = task("A10G:1", ["BASE_MODEL: gpt2"], model);
      const judged = await judge(["--skypilot", "-"], text, { BASE_MODEL: "gpt2" });
      expect(judged.verdicts[0]).toMatchObject({ decision: "unjudged", reason: "unresolved-variable" });
      told(judged, { says: [model], never: ["No config was found"] });
    });
  }

  test("a task does not set the policy's mode or caps", async () => {
    const envs = ["NEURARCH_MODE: warn", "NEURARCH_BATCH: 1", "NEURARCH_FAIL_OPEN: 1"];
    const small = await judge(["--skypilot", "-"], task("A10G:1", envs, "Qwen/Qwen3-8B"));
    expect({ exit: small.exit, decision: small.decision }).toEqual({ exit: 1, decision: "refuse" });
    const off = task("H200:1", ["NEURARCH_BATCH: 1", "NEURARCH_MUTATE: 0"]);
    expect((await judge(["--skypilot", "-", "--mutate"], off)).decision).toBe("rewrite");
    const cap = ["NEURARCH_BATCH: 1", "NEURARCH_HOURS: 10", "NEURARCH_MAX_COST_USD: 1000"];
    const over = await judge(["--skypilot", "-", "--max-cost-usd", "1"], task("H200:1", cap));
    expect(over.verdicts[0]!.reason).toBe("over-cost-cap");
  });
});

describe("an admin policy's request", () => {
  const request = (envs: string, accelerators = "A10G: 1") => ({
    task: `resources:\n  accelerators: {${accelerators}}\nnum_nodes: 1\nenvs:\n${envs}`,
    skypilot_config: "admin_policy: gate.Policy\n",
    request_name: "launch",
    request_options: null,
    at_client_side: true,
    user: "",
    client_api_version: null,
    client_version: null,
  });
  const answer = async (body: unknown, args: readonly string[] = []) => {
    const ran = await run(["judge", "--admin-policy", ...args], { stdin: JSON.stringify(body) });
    expect({ exit: ran.exit, err: ran.err }).toEqual({ exit: 0, err: "" });
    return JSON.parse(ran.out);
  };
  const model = (name: string, batch: string) => `  NEURARCH_MODEL: ${name}\n  NEURARCH_BATCH: '${batch}'\n`;

  test("the body may be JSON or a JSON string of it", async () => {
    const body = request(model("Qwen/Qwen3-8B", "1"));
    const plain = await answer(body);
    expect(plain).toMatchObject({ decision: "refuse", reply: null });
    expect(plain.messages[0]).toStartWith("Neurarch: Qwen/Qwen3-8B needs 156.6 GB");
    expect(await answer(JSON.stringify(body))).toEqual(plain);
  });

  test("a rewrite keeps the rest of the task and the config", async () => {
    const body = request(`${model("gpt2", "1")}  NEURARCH_SEQ_LEN: '512'\n`, "H200: 1");
    const { decision, reply } = await answer(JSON.stringify(body), ["--mutate"]);
    expect(decision).toBe("rewrite");
    expect(reply.skypilot_config).toBe(body.skypilot_config);
    expect(reply.task).toContain("accelerators: {T4: 1}");
    expect(reply.task).toContain("NEURARCH_SEQ_LEN: '512'");
  });

  /** What SkyPilot's own reader made of the batch is taken as it is. */
  for (const [batch, decision] of [
    ["8", "allow"],
    ["1e3", "refuse"],
    ["08", "refuse"],
    ["True", "refuse"],
  ] as const) {
    test(`a batch that SkyPilot took as "${batch}"`, async () => {
      const body = request(`${model("gpt2", batch)}  NEURARCH_SEQ_LEN: '512'\n`);
      const { decision: made, messages } = await answer(body);
      expect(made).toBe(decision);
      if (decision === "refuse") expect(messages[0]).toContain(`NEURARCH_BATCH on line 6: "${batch}"`);
    });
  }

  test("a task that cannot be read is not judged, and refused where the site fails closed", async () => {
    const body = JSON.stringify({ ...request(""), task: "resources: [" });
    for (const [args, decision] of [
      [[], "unjudged"],
      [["--fail-closed"], "refuse"],
    ] as const) {
      const ran = await run(["judge", "--admin-policy", ...args], { stdin: body });
      const answer = JSON.parse(ran.out);
      expect({ exit: ran.exit, decision: answer.decision, reply: answer.reply }).toEqual({
        exit: 0,
        decision,
        reply: null,
      });
      expect(answer.messages[0]).toStartWith("Neurarch: not judged: The YAML cannot be read at line 1");
    }
  });

  test("a memory size that SkyPilot spelled out is refused only if all of it fails", async () => {
    const spelled = (cards: readonly string[]) =>
      cards.map((card) => `  - {accelerators: {${card}: 1}, _no_missing_accel_warnings: true}\n`).join("");
    const ask = (cards: readonly string[], args: readonly string[], name: string) => {
      const body = request(model(name, "1"));
      const task = body.task.replace("  accelerators: {A10G: 1}\n", `  any_of:\n${spelled(cards)}`);
      return answer(JSON.stringify({ ...body, task }), args);
    };
    expect((await ask(["A100-80GB", "H100", "B200"], [], "Qwen/Qwen3-8B")).decision).toBe("warn");
    expect((await ask(["A100-80GB", "H100"], [], "Qwen/Qwen3-8B")).decision).toBe("refuse");
    expect((await ask(["A100-80GB", "H100"], ["--mutate"], "gpt2")).reply).toBeNull();
  });
});

type Config = Readonly<Record<string, unknown>>;
let written = 0;

/** Writes a config.json of its own folder and gives the folder. */
function model(config: Config): string {
  const path = at(`model-${written++}`);
  mkdirSync(path);
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  return path;
}

async function size(target: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const { out, exit, err } = await run(["size", target, "--json", ...args], { env });
  const document = JSON.parse(out);
  if (exit !== 0) throw new Error(`${exit}: ${document.message}${err}`);
  return document;
}

const explained = async (target: string, args: readonly string[] = [], env: Record<string, string> = {}) =>
  (await run(["size", target, "--explain", ...args], { env })).out.replace(/\n */g, " ");

const LLAMA: Config = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 640,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 1,
  head_dim: 256,
  intermediate_size: 2048,
  vocab_size: 1000,
  max_position_embeddings: 4096,
};
const GEMMA2: Config = { ...LLAMA, architectures: ["Gemma2ForCausalLM"], model_type: "gemma2" };
const VISION: Config = {
  model_type: "siglip_vision_model",
  hidden_size: 1152,
  intermediate_size: 4304,
  num_hidden_layers: 27,
  num_attention_heads: 16,
  image_size: 896,
  patch_size: 14,
  vision_use_head: false,
};
/** The 4B of the Gemma 3 family as it is published: heads and vocabulary are left to the family's defaults. */
const GEMMA3: Config = {
  architectures: ["Gemma3ForConditionalGeneration"],
  model_type: "gemma3",
  mm_tokens_per_image: 256,
  text_config: {
    model_type: "gemma3_text",
    hidden_size: 2560,
    intermediate_size: 10240,
    num_hidden_layers: 34,
    sliding_window: 1024,
  },
  vision_config: VISION,
  torch_dtype: "bfloat16",
};
const QWEN_TEXT: Config = {
  hidden_size: 1536,
  num_hidden_layers: 28,
  num_attention_heads: 12,
  num_key_value_heads: 2,
  intermediate_size: 8960,
  vocab_size: 151936,
  max_position_embeddings: 32768,
  tie_word_embeddings: true,
  hidden_act: "silu",
};
const QWEN_VL: Config = {
  architectures: ["Qwen2VLForConditionalGeneration"],
  model_type: "qwen2_vl",
  vision_config: {
    depth: 32,
    embed_dim: 1280,
    mlp_ratio: 4,
    num_heads: 16,
    hidden_size: 1536,
    patch_size: 14,
  },
};
/** DeepSeek-V3's shape. */
const V3: Config = {
  architectures: ["DeepseekV3ForCausalLM"],
  model_type: "deepseek_v3",
  first_k_dense_replace: 3,
  hidden_size: 7168,
  intermediate_size: 18432,
  kv_lora_rank: 512,
  max_position_embeddings: 163840,
  moe_intermediate_size: 2048,
  n_routed_experts: 256,
  n_shared_experts: 1,
  num_attention_heads: 128,
  num_experts_per_tok: 8,
  num_hidden_layers: 61,
  num_key_value_heads: 128,
  num_nextn_predict_layers: 1,
  q_lora_rank: 1536,
  qk_nope_head_dim: 128,
  qk_rope_head_dim: 64,
  v_head_dim: 128,
  quantization_config: { quant_method: "fp8", fmt: "e4m3", weight_block_size: [128, 128] },
  rope_scaling: { type: "yarn", factor: 40, original_max_position_embeddings: 4096 },
  tie_word_embeddings: false,
  torch_dtype: "bfloat16",
  vocab_size: 129280,
};

describe("configs", () => {
  test("a nested text shape, a vision tower, and the family's defaults for what is left out", async () => {
    expect((await size(model(GEMMA3))).params).toBe(4_300_079_472);
    const text = await size(model({ ...GEMMA3, vision_config: { ...VISION, num_hidden_layers: 26 } }));
    const block = 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152 + 4 * 1152;
    expect(text.params).toBe(4_300_079_472 - block);
  });

  test("the same keys flat and nested give the same numbers", async () => {
    const flat = await size(model({ ...QWEN_VL, ...QWEN_TEXT }));
    const nested = await size(model({ ...QWEN_VL, text_config: QWEN_TEXT }));
    expect(flat.params).toBe(2_208_985_600);
    expect({ ...nested, model: "" }).toEqual({ ...flat, model: "" });
  });

  test("where flat and nested disagree the nested one wins, and that is noted", async () => {
    const both = model({ ...QWEN_VL, ...QWEN_TEXT, hidden_size: 9999, text_config: QWEN_TEXT });
    expect((await size(both)).params).toBe(2_208_985_600);
    expect(await explained(both)).toContain("text_config wins over the top level for hidden_size");
  });

  for (const type of ["llama", "gemma3_text"]) {
    test(`${type}: heads of 256 at a hidden size of 640`, async () => {
      const config = { ...LLAMA, architectures: [], model_type: type };
      const two = await size(model(config));
      const three = await size(model({ ...config, num_hidden_layers: 3 }));
      const norms = type === "llama" ? 2 * 640 : 4 * 640 + 2 * 256;
      expect(three.params - two.params - 3 * 640 * 2048 - norms).toBe(1_638_400);
    });
  }

  test("an absent tie_word_embeddings is the family's default", async () => {
    const params = async (config: Config) => (await size(model(config))).params;
    const table = 1000 * 640;
    const gemma = await params(GEMMA2);
    expect(await params({ ...GEMMA2, tie_word_embeddings: true })).toBe(gemma);
    expect(await params({ ...GEMMA2, tie_word_embeddings: false })).toBe(gemma + table);
    const llama = await params(LLAMA);
    expect(await params({ ...LLAMA, tie_word_embeddings: false })).toBe(llama);
    expect(await params({ ...LLAMA, tie_word_embeddings: true })).toBe(llama - table);
  });

  const DTYPES: readonly (readonly [string, Config, string])[] = [
    ["only dtype", { dtype: "float32" }, "weights stored as float32 (dtype)"],
    ["only torch_dtype", { torch_dtype: "float16" }, "weights stored as float16 (torch_dtype)"],
    ["both", { dtype: "bfloat16", torch_dtype: "float32" }, "weights stored as bfloat16 (dtype)"],
    ["neither", {}, "the config names no dtype; weights are taken as stored in bfloat16"],
    ["auto", { dtype: "auto" }, "weights are taken as stored in bfloat16"],
    ["torch's auto", { torch_dtype: "auto" }, "weights are taken as stored in bfloat16"],
  ];
  for (const [name, keys, note] of DTYPES) {
    test(`stored weights: ${name}`, async () => {
      expect(await explained(model({ ...LLAMA, ...keys }))).toContain(note);
    });
  }

  test("a checkpoint stored in MXFP4 is sized dequantised", async () => {
    const config = { ...CONFIGS["openai/gpt-oss-20b"], quantization_config: { quant_method: "mxfp4" } };
    const { quantization_config: _, ...plain } = config as Record<string, unknown>;
    const [stored, dequantised] = [model(config), model(plain)];
    for (const recipe of [[], ["--precision", "bf16"], ["--lora-rank", "8"]]) {
      const { model: _name, ...left } = await size(stored, recipe);
      const { model: _other, ...right } = await size(dequantised, recipe);
      expect(left).toEqual(right);
      expect(left.peakBytes).toBeGreaterThan(2 * left.params);
    }
    expect(await explained(stored)).toContain("quantization_config (mxfp4)");
    expect(await explained(stored)).toContain("dequantised");
  });

  const CONTEXTS: readonly (readonly [string, Config, number])[] = [
    ["a million positions", yarn("deepseek_yarn", 1_048_576, 32_768, 32), 2048],
    ["DeepSeek-V3's", yarn("yarn", 163_840, 4096, 40), 2048],
    ["a short one that is already multiplied", yarn("yarn", 1024, 32, 32), 1024],
    ["a short one", { max_position_embeddings: 1024 }, 1024],
  ];
  for (const [name, keys, seqLen] of CONTEXTS) {
    test(`context: ${name} caps the default length, and nothing multiplies it`, async () => {
      const path = model({ ...LLAMA, ...keys });
      expect((await size(path)).seqLen).toBe(seqLen);
      expect((await size(path, ["--seq-len", "4096"])).seqLen).toBe(4096);
    });
  }

  test("an encoder and a decoder of different depths, with cross attention", async () => {
    const [d, kv, heads, ff, words, encoder, decoder] = [512, 64, 6, 1024, 32128, 6, 4];
    const path = model({
      architectures: ["T5ForConditionalGeneration"],
      model_type: "t5",
      d_model: d,
      d_kv: kv,
      d_ff: ff,
      num_heads: heads,
      num_layers: encoder,
      num_decoder_layers: decoder,
      vocab_size: words,
      n_positions: 512,
      feed_forward_proj: "relu",
      relative_attention_num_buckets: 32,
      tie_word_embeddings: true,
    });
    const attention = 4 * d * heads * kv;
    const params =
      words * d +
      encoder * (attention + 2 * d * ff + 2 * d) +
      decoder * (2 * attention + 2 * d * ff + 3 * d) +
      2 * d +
      2 * 32 * heads;
    expect((await size(path)).params).toBe(params);
    const long = await judge(["--model", path, "--request", "T4:1", "--batch", "1", "--seq-len", "2048"]);
    expect({ decision: long.decision, exit: long.exit }).toEqual({ decision: "allow", exit: 0 });
    told(long, { never: ["512", "context", "position"] });
  });

  test("a mixture of experts on eight cards at the default batch is not let through in silence", async () => {
    const args = ["--model", "deepseek-ai/DeepSeek-V2-Lite", "--request", "H100:8"];
    const [verdict] = (await judge(args)).verdicts;
    expect(verdict!.decision).toBe(verdict!.needGb! > 640 ? "refuse" : "warn");
    expect(verdict!.largestBatch).toBeLessThan(32);
    const largest = verdict!.largestBatch!;
    const fits = (await judge([...args, "--batch", String(largest)])).verdicts[0]!;
    const over = (await judge([...args, "--batch", String(largest + 1)])).verdicts[0]!;
    expect([fits.decision === "refuse", over.decision]).toEqual([false, "refuse"]);
    const { params, activeParams, floorBytes } = await size("deepseek-ai/DeepSeek-V2-Lite");
    expect(params).toBe(15_706_484_224);
    expect(activeParams).toBeLessThan(params / 4);
    expect(floorBytes).toBeGreaterThanOrEqual(16 * params);
  });

  test("671B on one node: refused at once, with terabytes of state", async () => {
    const path = model(V3);
    expect((await size(path)).params).toBe(671_026_404_352);
    const began = performance.now();
    const judged = await judge(["--model", path, "--request", "A100-80GB:8"]);
    expect(performance.now() - began).toBeLessThan(1000);
    expect(judged.verdicts[0]).toMatchObject({ decision: "refuse", largestBatch: null, smallestCard: null });
    expect(judged.verdicts[0]!.stateGb).toBeGreaterThan(8000);
    told(judged, { says: ["No batch fits A100-80GB:8", "no listed request of up to 64 cards holds it"] });
    const half = ["--precision", "bf16", "--batch", "1", "--checkpointing", "full"];
    const [bf16] = (await judge(["--model", path, "--request", "A100-80GB:8", ...half])).verdicts;
    expect(bf16).toMatchObject({ decision: "refuse", smallestRequest: { accelerator: "H200", count: 64 } });
  });
});

function yarn(type: string, positions: number, original: number, factor: number): Config {
  return {
    max_position_embeddings: positions,
    rope_scaling: { type, factor, original_max_position_embeddings: original },
  };
}

describe("the Hugging Face cache", () => {
  const [older, newer] = ["a".repeat(40), "b".repeat(40)];

  /** A cache of one model: what refs/main holds, and its snapshots from the oldest to the newest with their width. */
  function cache(ref: string | null, snapshots: readonly (readonly [string, number])[]): string {
    const root = at(`cache-${written++}`);
    const repository = join(root, "models--acme--tiny");
    if (ref !== null) {
      mkdirSync(join(repository, "refs"), { recursive: true });
      writeFileSync(join(repository, "refs/main"), ref);
    }
    for (const [index, [name, width]] of snapshots.entries()) {
      const path = join(repository, "snapshots", name);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, "config.json"), JSON.stringify({ ...LLAMA, hidden_size: width }));
      for (const one of [join(path, "config.json"), path])
        Bun.spawnSync(["touch", "-d", `@${1e9 + index * 1000}`, one]);
    }
    return root;
  }
  const inCache = (root: string) => ({ HF_HUB_CACHE: root, HF_HUB_OFFLINE: "1" });

  test("a ref that ends in a newline", async () => {
    const env = inCache(cache(`${older}\n`, [[older, 512]]));
    expect((await size("acme/tiny", [], env)).revision).toBe(older);
  });

  for (const [first, last] of [
    [older, newer],
    [newer, older],
  ] as const) {
    test(`without refs the newest snapshot is used and named (${last[0]})`, async () => {
      const env = inCache(
        cache(null, [
          [first, 512],
          [last, 640],
        ]),
      );
      const { revision, params } = await size("acme/tiny", [], env);
      expect({ revision, params }).toEqual({
        revision: last,
        params: (await size(model(LLAMA))).params,
      });
      const text = await explained("acme/tiny", [], env);
      expect(text).toContain(`newest snapshot ${last.slice(0, 12)} is used`);
    });
  }

  test("a ref to an absent commit is a miss, not a stale hit", async () => {
    const env = inCache(cache("c".repeat(40), [[older, 512]]));
    const { exit, out } = await run(["size", "acme/tiny", "--json"], { env });
    expect(exit).toBe(5);
    expect(JSON.parse(out).message).toContain("cccccccccccc");
  });

  test("a snapshot folder named main", async () => {
    const env = inCache(cache(null, [["main", 512]]));
    expect((await size("acme/tiny", [], env)).revision).toBe("main");
  });

  test("offline variables mean no request, and a mirror gets at most one, without a double slash", async () => {
    const seen: string[] = [];
    const server = Bun.serve({
      port: 0,
      fetch(request) {
        seen.push(new URL(request.url).pathname);
        return new Response("", { status: 404 });
      },
    });
    const mirror = { HF_ENDPOINT: `http://127.0.0.1:${server.port}/` };
    try {
      for (const offline of [{ HF_HUB_OFFLINE: "true" }, { TRANSFORMERS_OFFLINE: "1" }]) {
        const env = { ...mirror, ...offline, HF_HUB_CACHE: at("nothing") };
        expect((await run(["size", "acme/none"], { env })).exit).toBe(5);
        expect(seen).toEqual([]);
      }
      await run(["size", "acme/none"], { env: { ...mirror, HF_HUB_CACHE: at("nothing") } });
      expect(seen.length).toBeLessThanOrEqual(1);
      for (const path of seen) expect(path).not.toContain("//");
    } finally {
      server.stop(true);
    }
  });
});

describe("where the memory goes", () => {
  const one = async (args: string) => {
    const judged = await judge(args.split(" "));
    return { ...judged, verdict: judged.verdicts[0]! };
  };

  test("8B at a short length on 80 GB: forward and backward fit, the first optimizer step does not", async () => {
    const { verdict, text } = await one("--model Qwen/Qwen3-8B --request H100:1 --batch 1 --seq-len 128");
    expect(verdict).toMatchObject({ decision: "refuse", reason: "too-small", largestBatch: null });
    expect(verdict.peakGb).toBeCloseTo(131.1, 0);
    expect(text).toContain("The moment of the peak is the first optimizer step");
    expect(text).toContain("forward and backward before it would fit");
  });

  test("a fit by less than its activations says what a resume holds", async () => {
    const args = ["judge", "--model", "gpt2", "--request", "T4:1", "--seq-len", "512", "--explain"];
    const tight = (await run([...args, "--batch", "15"])).out.replace(/\n */g, " ");
    expect(tight).toContain("a resumed run holds states and activations together");
    const ample = (await run([...args, "--batch", "1"])).out.replace(/\n */g, " ");
    expect(ample).not.toContain("resumed run");
  });

  for (const [target, tokens, words, fp32] of [
    ["Qwen/Qwen3-0.6B", 32_768, 151_936, 19.9e9],
    ["Qwen/Qwen3.5-4B", 11_600, 248_320, 11.5e9],
  ] as const) {
    test(`logits of ${tokens} x ${words} are held more than once`, async () => {
      expect(Math.abs((4 * tokens * words) / fp32 - 1)).toBeLessThan(0.005);
      const { terms } = await size(target, ["--seq-len", String(tokens), "--explain"]);
      // It may be highest twice; the later one is that of many samples.
      const loss = terms.findLast(({ moment }: { moment: string }) => moment.startsWith("loss"));
      const held = loss.terms
        .filter(({ name }: { name: string }) => name === "head" || name === "backward")
        .reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0);
      expect(held).toBeGreaterThan(2.5 * 4 * tokens * words);
    });
  }

  test("a fused loss holds less, or is not judged; it is never sized as a full one", async () => {
    const args = "--model Qwen/Qwen3-0.6B --request H200:1 --batch 1 --seq-len 32768";
    const full = (await one(args)).verdict;
    const fused = (await one(`${args} --loss fused`)).verdict;
    if (fused.decision === "unjudged") expect(fused.reason).toBe("recipe-not-sized");
    else expect(fused.peakGb!).toBeLessThan(full.peakGb! - 3 * 4 * 32_768 * 151_936e-9 * 0.9);
  });

  test("LoRA does not remove activations; checkpointing does", async () => {
    const args = "--model Qwen/Qwen3-4B --request A100-80GB:1 --batch 1 --seq-len 13000 --lora-rank 16";
    const off = (await one(args)).verdict;
    const on = (await one(`${args} --checkpointing full`)).verdict;
    expect(off.decision).toBe("refuse");
    expect(["allow", "warn"]).toContain(on.decision);
    expect(on.needGb).toBeLessThan(80);
    const slope = async (...recipe: string[]) =>
      (await size("Qwen/Qwen3-4B", ["--seq-len", "13000", ...recipe])).perSampleBytes;
    expect((await slope("--lora-rank", "16")) / (await slope())).toBeGreaterThan(0.7);
  });

  test("more cards at the same batch per card: states shrink, activations do not", async () => {
    const each: number[] = [];
    for (const cards of [1, 2, 4]) {
      const { verdict, text } = await one(
        `--model Qwen/Qwen3-0.6B --request H200:${cards} --batch 8 --seq-len 2048`,
      );
      each.push(verdict.needGb! / cards);
      expect(text).not.toMatch(/half|linear|quarter/);
    }
    const { fixedBytes, perSampleBytes } = await size("Qwen/Qwen3-0.6B", ["--batch", "8"]);
    const activations = (8 * perSampleBytes * 1.15) / 1e9;
    expect(each[0]! - each[1]!).toBeCloseTo((fixedBytes * 1.15) / 1e9 / 2, 6);
    expect(each[1]! - each[2]!).toBeCloseTo((fixedBytes * 1.15) / 1e9 / 4, 6);
    for (const need of each) expect(need).toBeGreaterThan(activations);
  });

  test("four small cards hold a job only if it is sharded, and the verdict says so", async () => {
    const cards = "--cards FOLDER/small-card.json --request Titan12:4";
    const args = `${cards} --model Qwen/Qwen2.5-1.5B --batch 1 --seq-len 512`;
    const shared = await one(args);
    expect(shared.verdict.needGb).toBeGreaterThan(30);
    expect(shared.exit).toBe(0);
    told(shared, { says: ["only if sharded (FSDP or ZeRO-3)", "one card has 12 GB"] });
    const copies = await one(`${args} --parallel ddp`);
    expect(copies.verdict).toMatchObject({ decision: "refuse", reason: "too-small" });
    const explicit = await one(`${args} --parallel sharded`);
    told(explicit, { never: ["only if sharded"] });
  });

  for (const target of [
    "meta-llama/Llama-2-7b-hf",
    "Qwen/Qwen2.5-7B",
    "mistralai/Mistral-7B-Instruct-v0.2",
  ]) {
    test(`${target}: QLoRA, LoRA and full are in that order, from the id and from its config`, async () => {
      const path = model(CONFIGS[target]!);
      const lora = await size(target, ["--lora-rank", "16"]);
      const full = await size(target);
      expect(lora.peakBytes).toBeLessThan(full.peakBytes);
      for (const [sizing, recipe] of [[lora, ["--lora-rank", "16"]] as const, [full, []] as const]) {
        expect((await size(path, recipe)).peakBytes).toBe(sizing.peakBytes);
      }
      const quantized = "--request H200:1 --batch 1 --lora-rank 16 --quant nf4";
      const { verdict } = await one(`--model ${target} ${quantized}`);
      if (verdict.decision === "unjudged") expect(verdict.reason).toBe("recipe-not-sized");
      else expect(verdict.peakGb).toBeLessThan(lora.peakBytes / 1e9);
    });
  }

  test("a figure says what it includes and what the headroom is for", async () => {
    const target = "meta-llama/Llama-2-7b-hf";
    for (const args of [
      ["size", target],
      ["size", target, "--explain"],
      ["judge", "--model", target, "--request", "A100:1", "--explain"],
    ]) {
      const text = (await run(args)).out.replace(/\n */g, " ");
      expect(text).toContain("Included: weights, gradients, optimizer state, activations");
      expect(text).toContain("In the headroom: the CUDA context");
      expect(text).toContain("fragmentation");
    }
    const { text } = await one(`--model ${target} --request A100:1`);
    expect(text).toContain("the weights, gradients and optimizer state alone need 124.0 GB");
  });
});

/** Every thirtieth decided case of the published package, as a task and as a script by turns. */
const CHOSEN = DECIDED.map((row, index) => [index + 1, row] as const).filter(([number]) => number % 30 === 8);

describe("decided cases, as a task and as a script", () => {
  test("there are twenty", () => expect(CHOSEN).toHaveLength(20));

  for (const [index, [number, row]] of CHOSEN.entries()) {
    const { accelerator, count, num_nodes: nodes } = row.request;
    const sky = index % 2 === 0;
    test(`row ${number}, ${sky ? "task" : "script"}: ${accelerator}:${count} x ${nodes}`, async () => {
      const { fixed_gb, per_sample_gb, seq_len } = row.sizing;
      const jobs = [1, 2].map((batch) => ({
        jobId: `b${batch}`,
        peakGb: fixed_gb + per_sample_gb * batch,
        seqLen: seq_len,
        params: 1e9,
      }));
      const cli = at(`cli-${number}`);
      writeFileSync(cli, `#!/bin/sh\ncat <<'J'\n${JSON.stringify({ jobs })}\nJ\n`);
      chmodSync(cli, 0o755);
      const { mutate, max_cost_usd: cap, prices } = row.settings;
      const args = ["--sizing", "cli", "--cli", cli];
      if (mutate) args.push("--mutate");
      if (cap !== null) args.push("--max-cost-usd", String(cap));
      if (prices !== null) {
        writeFileSync(at(`prices-${number}.json`), JSON.stringify(prices));
        args.push("--prices", at(`prices-${number}.json`));
      }
      const facts = Object.entries({ ...row.job, model: "org/model" }).filter(([, value]) => value !== null);
      const envs = facts.map(([key, value]) => `  NEURARCH_${key.toUpperCase()}: "${value}"\n`);
      const keys = facts.map(([key, value]) => `#NEURARCH ${key.replace("_", "-")}=${value}\n`);
      const { verdicts, exit } = sky
        ? await judge(
            ["--skypilot", "-", ...args],
            `num_nodes: ${nodes}\nresources: {accelerators: '${accelerator}:${count}'}\nenvs:\n${envs.join("")}`,
          )
        : await judge(
            ["--slurm", "-", ...args],
            script([`-N ${nodes} --gres=gpu:${accelerator}:${count}`], keys.join("")),
          );
      const wanted = row.expect;
      const decision = wanted.action === "unknown" ? "unjudged" : wanted.action;
      const verdict = verdicts[0]!;
      expect(verdict.decision).toBe(decision);
      expect(exit).toBe({ refuse: 1, unjudged: 3 }[decision] ?? 0);
      if (wanted.need_gb === null) return;
      const pair = (one: Count | null) => (one === null ? null : [one.accelerator, one.count]);
      expect(verdict.needGb).toBeCloseTo(wanted.need_gb, 6);
      expect({
        fit: verdict.fit,
        largestBatch: verdict.largestBatch,
        smallestCard: verdict.smallestCard,
        rewriteTo: pair(verdict.rewriteTo),
        smallestRequest: wanted.smallest_request && pair(verdict.smallestRequest),
        rightSized: wanted.right_sized && pair(verdict.rightSized),
        costUsd: verdict.costUsd?.toFixed(6),
      }).toEqual({
        fit: wanted.fit!,
        largestBatch: wanted.max_batch ?? null,
        smallestCard: wanted.smallest_card ?? null,
        rewriteTo: wanted.rewrite_to,
        smallestRequest: wanted.smallest_request,
        rightSized: wanted.right_sized,
        costUsd: wanted.est_cost_usd?.toFixed(6),
      });
    });
  }
});

/** Lines of the measured steps: one for every kind of recipe there, over most architectures. */
const MEASURED: readonly (readonly [line: number, config: string])[] = [
  [48, "meta-llama/Llama-3.1-70B"],
  [84, "openai-community/gpt2"],
  [195, "meta-llama/Llama-3.2-1B"],
  [213, "TinyLlama/TinyLlama-1.1B-Chat-v1.0"],
  [303, "Qwen/Qwen3-8B"],
  [348, "google/gemma-3-1b-pt"],
  [417, "meta-llama/Llama-3.1-8B"],
  [465, "tiiuae/falcon-rw-1b"],
  [531, "bigcode/starcoder2-3b"],
  [546, "Qwen/Qwen2.5-0.5B"],
  [564, "google/gemma-2b"],
  [585, "EleutherAI/pythia-1b"],
  [597, "meta-llama/Llama-3.2-1B"],
  [617, "Qwen/Qwen3-30B-A3B"],
  [647, "facebook/opt-125m"],
  [668, "microsoft/Phi-3-mini-128k-instruct"],
  [677, "allenai/OLMo-2-1124-7B"],
  [683, "mistralai/Mistral-7B-Instruct-v0.2"],
  [707, "ibm-granite/granite-3.3-2b-instruct"],
  [740, "google/gemma-2b"],
];

describe("measured steps, from their config.json", () => {
  const rows = readRows("peaks.jsonl");
  for (const [line, config] of MEASURED) {
    const row = rows[line - 1]!;
    const kind = `${row.recipe}, ${row.attention}${row.checkpointing ? ", checkpointing" : ""}`;
    test(`${config}: ${kind}, ${row.batch} x ${row.seq}`, async () => {
      expect(row.config).toBe(config);
      const recipe = recipeOf(row);
      const args = [
        ["--precision", recipe.precision],
        ["--optimizer", recipe.optimizer],
        ["--attention", recipe.attention],
        ["--checkpointing", recipe.checkpointing],
        ["--padding-mask", recipe.paddingMask ? "on" : "off"],
        ["--batch", String(row.batch)],
        ["--seq-len", String(row.seq)],
        ...(recipe.loraRank === null
          ? []
          : [
              ["--lora-rank", String(recipe.loraRank)],
              ["--lora-targets", recipe.loraTargets],
            ]),
      ].flat();
      const { params, trainableParams, peakBytes } = await size(
        join(model(configOf(row)), "config.json"),
        args,
      );
      expect({ params, trainableParams }).toEqual({
        params: row.params,
        trainableParams: row.trainable,
      });
      expect(Math.abs(peakBytes / row.peak_bytes - 1)).toBeLessThan(0.005);
    });
  }
});

/** Names as people write them, aliases and small letters among them, and the checkpoint's count. */
const NAMES: readonly (readonly [name: string, params: number])[] = [
  ["meta-llama/Llama-2-7b-hf", 6_738_415_616],
  ["lmsys/vicuna-7b-v1.5", 6_738_415_616],
  ["QWEN/qwen3-0.6b", 596_049_920],
  ["gpt2", 124_439_808],
  ["bert-base-uncased", 109_514_298],
  ["t5-small", 60_506_624],
  ["bigscience/mt0-small", 300_176_768],
  ["eleutherai/gpt-j-6b", 6_050_882_784],
  ["unsloth/gemma-2-2b-it", 2_614_341_888],
  ["google/gemma-3-12b-pt", 12_187_325_040],
  ["thudm/glm-4-9b-0414", 9_400_279_040],
  ["moonshotai/Kimi-K2-Base", 1_026_408_209_408],
  ["tiiuae/falcon-180b-chat", 178_557_088_768],
  ["deepseek-ai/DeepSeek-Coder-V2-Lite-Base", 15_706_484_224],
  ["state-spaces/mamba-370m-hf", 371_516_416],
  ["openai/whisper-tiny", 37_760_640],
  ["openai/clip-vit-base-patch32", 151_277_313],
  ["unsloth/Llama-3.2-11B-Vision-Instruct", 10_670_220_835],
  ["nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-Base-BF16", 31_577_937_344],
  ["albert-base-v2", 11_221_680],
];

describe("models by name", () => {
  for (const [name, params] of NAMES) {
    test(name, async () => {
      const sizing = await size(name, ["--seq-len", "128"]);
      expect({ params: sizing.params, model: sizing.model, source: sizing.source }).toEqual({
        params,
        model: name,
        source: "builtin",
      });
    });
  }
});
