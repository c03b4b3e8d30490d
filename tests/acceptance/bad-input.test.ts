import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./run.ts";

let folder = "";
const HEAD = "#!/bin/bash\n#SBATCH --gres=gpu:a10g:1\n";
const script = (directive: string) => `${HEAD}#NEURARCH ${directive}\n`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-bad-"));
  const put = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
  mkdirSync(join(folder, "directory"));
  Bun.spawnSync(["mkfifo", join(folder, "fifo")]);
  put("huge.sbatch", `${script("model=gpt2 batch=1 seq-len=512")}${"x".repeat(50_000_000)}`);
  put(
    "not-utf8.sbatch",
    new Uint8Array([...new TextEncoder().encode(script("model=gpt2 batch=1 seq-len=512")), 0xff, 0xfe, 10]),
  );
  put("crlf.sbatch", script("model=gpt2 batch=1 seq-len=512").replaceAll("\n", "\r\n"));
  put("eight.sbatch", script("model=gpt2 batch=eight"));
  put("zero.sbatch", script("model=gpt2 batch=0"));
  put("long.sbatch", script("model=gpt2 seq-len=1000000000000"));
  put("unknown-key.sbatch", script("model=gpt2 batch=1 seq-len=512 batchsize=8"));
  put("unknown-card.sbatch", script("model=gpt2").replace("a10g", "b999"));
  put("near-card.sbatch", script("model=gpt2").replace("a10g", "l400s"));
  put("unknown-model.sbatch", script("model=nobody/nothing"));
  put("no-keys.sbatch", script(`model=${join(folder, "no-keys.json")}`));
  put("no-keys.json", '{"model_type": "llama", "hidden_size": 4096}');
  put("not-sized.sbatch", script("model=gpt2 quant=nf4"));
  put(
    "task.yaml",
    "resources: {accelerators: A10G:1}\nenvs: {NEURARCH_MODEL: gpt2, NEURARCH_BATCH: eight}\n",
  );
  put("not-utf8.yaml", new Uint8Array([0x6e, 0x61, 0xff, 0xfe, 10]));
  put("open.yaml", "resources: {accelerators: A10G:1\n");
  put(
    "anchors.yaml",
    "resources:\n  ordered:\n  - &a {accelerators: 'A10G:1', labels: {team: x}}\n  - {<<: *a, accelerators: 'L4:1'}\nenvs: {NEURARCH_MODEL: gpt2, NEURARCH_BATCH: 2, NEURARCH_SEQ_LEN: 512}\n",
  );
  put("unknown-field.yaml", "resourcs: {accelerators: A10G:1}\n");
  const levels = ["a", "b", "c", "d", "e", "f", "g"].map((name, index) =>
    index === 0
      ? "a: &a [x,x,x,x,x,x,x,x,x,x]"
      : `${name}: &${name} [${Array(10)
          .fill(`*${"abcdefg"[index - 1]}`)
          .join(",")}]`,
  );
  put("bomb.yaml", `${levels.join("\n")}\n`);
  put("gate.toml", 'mode = "strict"\n');
  put("typo.toml", "max_cost = 5\n");
  put("broken.toml", "mode = \n");
  put("map.json", '{"a10": "A11G"}');
  put("list.json", "[1]");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const OPEN = "Allowed unchecked (fail open).";
const WHERE = "Name a readable regular file.";

/** Whatever the input, `slurm` answers with a decision and ends with 0. */
const SUBMITS: readonly (readonly [name: string, args: string, lines: string])[] = [
  [
    "a missing script",
    "--script D/missing",
    `decision=allow\nmessage=Neurarch: not judged: D/missing does not exist; allowed unchecked (fail open). ${WHERE}`,
  ],
  [
    "a directory",
    "--script D/directory",
    `decision=allow\nmessage=Neurarch: not judged: D/directory is a directory, not a file; allowed unchecked (fail open). ${WHERE}`,
  ],
  [
    "a FIFO",
    "--script D/fifo",
    `decision=allow\nmessage=Neurarch: not judged: D/fifo is not a regular file; allowed unchecked (fail open). ${WHERE}`,
  ],
  [
    "a device",
    "--script /dev/zero",
    `decision=allow\nmessage=Neurarch: not judged: /dev/zero is not a regular file; allowed unchecked (fail open). ${WHERE}`,
  ],
  ["50 MB", "--script D/huge.sbatch", "decision=allow"],
  ["bytes that are not UTF-8", "--script D/not-utf8.sbatch", "decision=allow"],
  ["DOS line ends", "--script D/crlf.sbatch", "decision=allow"],
  [
    "batch=eight",
    "--script D/eight.sbatch",
    `decision=allow\nmessage=Neurarch: #NEURARCH batch on line 3: "eight" is not a whole number from 1 to 1,000,000; write batch=8, say. Not judged; allowed unchecked.`,
  ],
  [
    "batch 0",
    "--script D/zero.sbatch",
    `decision=allow\nmessage=Neurarch: #NEURARCH batch on line 3: "0" is not a whole number from 1 to 1,000,000; write batch=8, say. Not judged; allowed unchecked.`,
  ],
  [
    "10^12 tokens",
    "--script D/long.sbatch",
    `decision=allow\nmessage=Neurarch: #NEURARCH seq-len on line 3: "1000000000000" is not a whole number from 1 to 100,000,000; write seq-len=2048, say. Not judged; allowed unchecked.`,
  ],
  [
    "an unknown key",
    "--script D/unknown-key.sbatch",
    "decision=allow\nmessage=Neurarch: Unknown key `batchsize` on line 3, did you mean `batch`?",
  ],
  [
    "an unknown card",
    "--script D/unknown-card.sbatch",
    `decision=allow\nmessage=Neurarch: b999:1 not judged: No capacity is on file for 'b999'; \`neurarch-gate cards\` lists the cards that are. ${OPEN}`,
  ],
  [
    "nearly a card",
    "--script D/near-card.sbatch",
    `decision=allow\nmessage=Neurarch: l400s:1 not judged: No capacity is on file for 'l400s'. Did you mean L40S:1? ${OPEN}`,
  ],
  [
    "an unknown model",
    "--script D/unknown-model.sbatch",
    `decision=allow\nmessage=Neurarch: nobody/nothing not judged: No config was found for nobody/nothing: not in the Hugging Face cache (/nonexistent/.cache/huggingface/hub); not in the catalogue; the hub is not asked while HF_HUB_OFFLINE is set. Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue. ${OPEN}`,
  ],
  [
    "a config without the needed keys",
    "--script D/no-keys.sbatch",
    `decision=allow\nmessage=Neurarch: D/no-keys.json not judged: D/no-keys.json cannot be used: the config has no \`num_hidden_layers\`. Check that it is the model's own config.json. ${OPEN}`,
  ],
  [
    "an unknown flag",
    "--script D/eight.sbatch --grse gpu:1",
    "decision=allow\nmessage=Neurarch: not judged: unknown flag --grse; allowed unchecked (fail open). Did you mean --gres?",
  ],
  [
    "a site file with a wrong value",
    "--config D/gate.toml --script D/eight.sbatch",
    "decision=allow\nmessage=Neurarch: not judged: `mode` in D/gate.toml is not one of warn, reject; allowed unchecked (fail open). Correct the value.",
  ],
  [
    "a site file with an unknown key",
    "--config D/typo.toml --script D/eight.sbatch",
    "decision=allow\nmessage=Neurarch: not judged: D/typo.toml has the unknown key `max_cost`; allowed unchecked (fail open). Did you mean `max_cost_usd`?",
  ],
  [
    "a map to no card",
    "--gpu-map D/map.json --script D/eight.sbatch",
    "decision=allow\nmessage=Neurarch: not judged: the GPU map maps `a10` to `A11G`, which has no capacity on file; allowed unchecked (fail open). Did you mean `A10G`?",
  ],
  [
    "a map that is a list",
    "--gpu-map D/list.json --script D/eight.sbatch",
    'decision=allow\nmessage=Neurarch: not judged: --gpu-map: D/list.json holds no JSON object; allowed unchecked (fail open). Write it as {"name": value, ...}.',
  ],
  [
    "a broken map, failing closed",
    "--fail-closed --gpu-map D/list.json --script D/eight.sbatch",
    'decision=reject\nmessage=Neurarch: not judged: --gpu-map: D/list.json holds no JSON object; refused, as this site fails closed. Write it as {"name": value, ...}.',
  ],
];

describe("slurm answers whatever it is given", () => {
  for (const [name, args, lines] of SUBMITS) {
    test(name, async () => {
      const ran = await run(["slurm", ...args.replaceAll("D/", `${folder}/`).split(" ")]);
      expect({ ...ran, out: ran.out.replaceAll(folder, "D") }).toEqual({
        exit: 0,
        out: `${lines}\n`,
        err: "",
      });
    });
  }
});

/** Other commands: one line on stderr that says what, where and what to do, and the exit code of its kind. */
const REFUSALS: readonly (readonly [name: string, args: string, exit: number, line: string])[] = [
  ["a missing task", "judge --skypilot D/missing", 4, `judge: D/missing does not exist. ${WHERE}`],
  [
    "a task that is a directory",
    "judge --skypilot D/directory",
    4,
    `judge: D/directory is a directory, not a file. ${WHERE}`,
  ],
  ["a task that is a FIFO", "judge --skypilot D/fifo", 4, `judge: D/fifo is not a regular file. ${WHERE}`],
  [
    "a task that is too large",
    "judge --skypilot D/huge.sbatch",
    4,
    `judge: D/huge.sbatch is 50.0 MB, above the limit of 4.0 MB. ${WHERE}`,
  ],
  [
    "a task that is not UTF-8",
    "judge --skypilot D/not-utf8.yaml",
    4,
    "judge: D/not-utf8.yaml is not UTF-8 text. Save the file as UTF-8.",
  ],
  ["a script that is missing", "judge --slurm D/missing", 4, `judge: D/missing does not exist. ${WHERE}`],
  [
    "a YAML bomb",
    "judge --skypilot D/bomb.yaml",
    4,
    "judge: D/bomb.yaml: The YAML cannot be read at line 6, column 29: its aliases stand for more than 1000000 values.",
  ],
  [
    "an unknown command",
    "jugde",
    2,
    "neurarch-gate: unknown command jugde. Did you mean `neurarch-gate judge`?",
  ],
  ["an unknown flag", "judge --modle x", 2, "judge: unknown flag --modle. Did you mean --model?"],
  [
    "a stray word",
    "cards all",
    2,
    "cards: `all` is not expected here. This command takes flags only; `--help` lists them.",
  ],
  ["an empty value", "judge --model=", 2, "judge: --model is empty. Write `--model ID`."],
  ["a value left out", "judge --model --explain", 2, "judge: --model needs a value. Write `--model ID`."],
  [
    "nothing to judge",
    "judge",
    2,
    "judge: nothing to judge is named. Give one of --skypilot FILE, --slurm FILE, or --model ID with --request CARD:N.",
  ],
  [
    "two things to judge",
    "judge --skypilot a --slurm b",
    2,
    "judge: --skypilot and --slurm exclude each other. Give one of --skypilot FILE, --slurm FILE, or --model ID with --request CARD:N.",
  ],
  [
    "a batch that is a word",
    "size gpt2 --batch eight",
    2,
    'size: --batch: "eight" is not a whole number from 1 to 1,000,000; write --batch 8, say.',
  ],
  [
    "a word for a choice",
    "judge --model gpt2 --request T4:1 --precision fp16",
    2,
    'judge: --precision: "fp16" is not one of amp-bf16, bf16, amp-fp16, fp32; write --precision amp-fp16, say.',
  ],
  [
    "a site file that is no TOML",
    "cards --config D/broken.toml",
    4,
    "cards: D/broken.toml:1:8 is not TOML: invalid value. Correct the line, or remove the file.",
  ],
  [
    "a price that is none",
    "cards --prices D/map.json",
    4,
    "cards: the price of `a10` is not an amount in USD per hour. Write a number such as 2.5.",
  ],
  [
    "a model that is nowhere",
    "size Qwen/Qwen3-8",
    5,
    "size: No config was found for Qwen/Qwen3-8: not in the Hugging Face cache (/nonexistent/.cache/huggingface/hub); not in the catalogue; the hub is not asked while HF_HUB_OFFLINE is set. Did you mean Qwen/Qwen3-8B? Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue.",
  ],
  [
    "a config without the needed keys",
    "size D/no-keys.json",
    4,
    "size: D/no-keys.json cannot be used: the config has no `num_hidden_layers`. Check that it is the model's own config.json.",
  ],
];

describe("other commands say what, where and what to do", () => {
  for (const [name, args, exit, line] of REFUSALS) {
    test(name, async () => {
      const ran = await run(args.replaceAll("D/", `${folder}/`).split(" "));
      const text = line.startsWith("neurarch-gate") ? line : `neurarch-gate ${line}`;
      expect({ ...ran, err: ran.err.replaceAll(folder, "D") }).toEqual({ exit, out: "", err: `${text}\n` });
    });
  }
});

describe("judge", () => {
  const judged = async (args: string) => {
    const ran = await run(args.replaceAll("D/", `${folder}/`).split(" "));
    return { exit: ran.exit, ...JSON.parse(ran.out.replaceAll(folder, "D")) };
  };

  test("a fact of a task that cannot be read refuses it", async () => {
    const { exit, decision, messages } = await judged("judge --skypilot D/task.yaml --json");
    expect({ exit, decision }).toEqual({ exit: 1, decision: "refuse" });
    expect(messages).toEqual([
      'Neurarch: NEURARCH_BATCH on line 2: "eight" is not a whole number from 1 to 1,000,000; write NEURARCH_BATCH: "8", say. Correct it and resubmit.',
    ]);
  });

  test("anchors are followed", async () => {
    const { exit, verdicts } = await judged("judge --skypilot D/anchors.yaml --json");
    expect(verdicts.map((verdict: { request: { label: string } }) => verdict.request.label)).toEqual([
      "A10G:1",
      "L4:1",
    ]);
    expect(exit).toBe(0);
  });

  test("a recipe that is not sized is not judged, and --fail-open makes that 0", async () => {
    const { exit, decision, verdicts } = await judged("judge --slurm D/not-sized.sbatch --json");
    expect({ exit, decision, reason: verdicts[0].reason }).toEqual({
      exit: 3,
      decision: "unjudged",
      reason: "recipe-not-sized",
    });
    expect((await judged("judge --slurm D/not-sized.sbatch --json --fail-open")).exit).toBe(0);
  });

  test("errors are one JSON document where JSON is asked for", async () => {
    const { exit, ...document } = await judged("judge --skypilot D/missing --json");
    expect(exit).toBe(4);
    expect(document).toEqual({
      schema: "neurarch-gate/error",
      version: 1,
      code: "input-unreadable",
      message: "D/missing does not exist",
      hint: WHERE,
    });
  });
});

describe("a flag that would be ignored is a usage error", () => {
  const rows: readonly (readonly [args: string, message: string])[] = [
    [
      "judge --slurm D/eight.sbatch --gpus h100:2",
      "--gpus goes with --skypilot only. Leave it out, or judge with --skypilot.",
    ],
    [
      "judge --skypilot D/task.yaml --nodes 4",
      "--nodes goes with --request only. Leave it out, or judge with --request.",
    ],
    [
      "judge --skypilot D/task.yaml --read-env",
      "--read-env goes with --slurm only. Leave it out, or judge with --slurm.",
    ],
    [
      "judge --skypilot D/task.yaml --rewrite --batch 1",
      "--batch changes what is judged and not the file, so a rewrite would not hold. Put it into the file.",
    ],
    [
      "judge D/task.yaml",
      "`D/task.yaml` is not expected here. Name a task file with --skypilot FILE, a batch script with --slurm FILE.",
    ],
  ];
  for (const [args, message] of rows) {
    test(args, async () => {
      const ran = await run(args.replaceAll("D/", `${folder}/`).split(" "));
      expect({ exit: ran.exit, err: ran.err.replaceAll(folder, "D") }).toEqual({
        exit: 2,
        err: `neurarch-gate judge: ${message}\n`,
      });
    });
  }
});

test("an error before the command's name is one document too", async () => {
  const { exit, out, err } = await run(["--json", "size", "gpt2"]);
  expect({ exit, err }).toEqual({ exit: 2, err: "" });
  expect(JSON.parse(out)).toMatchObject({ schema: "neurarch-gate/error", code: "usage" });
});
