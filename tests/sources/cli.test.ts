import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { type CliOptions, sizeByExternalCli } from "../../src/sources/cli.ts";
import { splitWords } from "../../src/sources/words.ts";
import { factsOf, freshFolder, program } from "./support.ts";

const PATH = process.env.PATH ?? "";

/** A stand-in CLI that prints `answer` and ends with `code`; it keeps its table beside itself. */
function standIn(script: string): { command: string; folder: string; options: CliOptions } {
  const folder = freshFolder();
  const keep = `echo "$@" >> ${folder}/calls; cp "$2" ${folder}/table.csv; stat -c %a "$2" > ${folder}/mode; echo "$2" > ${folder}/path`;
  const command = program(folder, "neurarch", `${keep}\n${script}`);
  const env = { PATH: `${folder}:${PATH}`, XDG_CACHE_HOME: join(folder, "cache") };
  return { command, folder, options: { command, env, timeoutMs: 5000 } };
}

function answer(one: unknown, two: unknown, more: object = {}): string {
  const jobs = [
    { jobId: "b1", peakGb: one, seqLen: 4096, params: 7_000_000_000, ...more },
    { jobId: "b2", peakGb: two, seqLen: 4096, params: 7_000_000_000, ...more },
  ];
  return `cat <<'END'\n${JSON.stringify({ jobs })}\nEND`;
}

async function messageOf(script: string, over: Partial<CliOptions> = {}) {
  const { options } = standIn(script);
  const sized = await sizeByExternalCli(factsOf(), { ...options, ...over });
  return sized.ok ? "sized" : `${sized.error.reason}: ${sized.error.message}`;
}

describe("the two peaks become a line", () => {
  test("of whole bytes", async () => {
    const { options } = standIn(answer(70.1, 76.4));
    const sized = await sizeByExternalCli(factsOf({ model: "org/model" }), options);
    expect(sized).toMatchObject({
      ok: true,
      value: {
        model: "org/model",
        source: "cli",
        family: null,
        params: 7_000_000_000,
        trainableParams: 7_000_000_000,
        seqLen: 4096,
        floorBytes: 63_800_000_000,
        stateBytes: 63_800_000_000,
        moments: [{ fixedBytes: 63_800_000_000, perSampleBytes: 6_300_000_000 }],
      },
    });
  });
  test("through both of them, whatever they are", async () => {
    const amount = fc.integer({ min: 0, max: 5_000_000 });
    await fc.assert(
      fc.asyncProperty(amount, amount, async (fixed, per) => {
        const [one, two] = [(fixed + per) / 1000, (fixed + 2 * per) / 1000];
        const { options } = standIn(answer(one, two));
        const sized = await sizeByExternalCli(factsOf(), options);
        const line = sized.ok ? sized.value.moments[0] : undefined;
        expect([line?.fixedBytes, line?.perSampleBytes]).toEqual([fixed * 1e6, per * 1e6]);
      }),
      { numRuns: 10 },
    );
  });
  test("that may not depend on the batch", async () => {
    const { options } = standIn(answer(19.302, 19.302));
    const sized = await sizeByExternalCli(factsOf(), options);
    expect(sized.ok && sized.value.moments[0]).toMatchObject({
      fixedBytes: 19_302_000_000,
      perSampleBytes: 0,
    });
  });
});

describe("what the CLI is asked", () => {
  const header = "job_id,model,gpu,hours,batch,seq_len,lora_rank,attention\n";
  const rows: [string, Parameters<typeof factsOf>[0], string][] = [
    ["only the model", { model: "org/model" }, "b1,org/model,H200,1,1,,,\nb2,org/model,H200,1,2,,,\n"],
    [
      "all it can be told",
      { model: "org/model", batch: 64, seqLen: 8192, loraRank: 16, attention: "flash" },
      "b1,org/model,H200,1,1,8192,16,flash\nb2,org/model,H200,1,2,8192,16,flash\n",
    ],
    [
      "a model with a comma and a quote",
      { model: 'a,"b' },
      'b1,"a,""b",H200,1,1,,,\nb2,"a,""b",H200,1,2,,,\n',
    ],
  ];
  test.each(rows)("%s", async (_, values, table) => {
    const { options, folder } = standIn(answer(1, 2));
    await sizeByExternalCli(factsOf(values), options);
    expect(readFileSync(join(folder, "table.csv"), "utf8")).toBe(header + table);
    expect(readFileSync(join(folder, "calls"), "utf8")).toMatch(/^rightsize \S+\/jobs\.csv --json\n$/);
  });
  test("stands in a private file that is gone afterwards", async () => {
    const { options, folder } = standIn(answer(1, 2));
    await sizeByExternalCli(factsOf(), options);
    expect(readFileSync(join(folder, "mode"), "utf8").trim()).toBe("600");
    expect(existsSync(readFileSync(join(folder, "path"), "utf8").trim())).toBe(false);
  });
  test("comes without what the Slurm filter sets for us alone", async () => {
    const { folder, options } = standIn(`env > ${"$"}(dirname "$0")/env\n${answer(70.1, 76.4)}`);
    await sizeByExternalCli(factsOf(), {
      ...options,
      env: { ...options.env, BUN_JSC_useJIT: "0", HF_TOKEN: "t" },
    });
    const given = readFileSync(join(folder, "env"), "utf8");
    expect(given).toContain("HF_TOKEN=t");
    expect(given).not.toContain("BUN_JSC_useJIT");
  });
  test("is not what it cannot be told", async () => {
    const { options, folder } = standIn(answer(1, 2));
    for (const [values, told] of [
      [{ checkpointing: "full" }, "checkpointing=full"],
      [{ gradAccum: 4 }, "grad-accum=4"],
      [{ precision: "bf16" }, "precision=bf16"],
      [{ paddingMask: true }, "padding-mask=true"],
      [{ loraDropout: 0.05 }, "lora-dropout=0.05"],
    ] as const) {
      const sized = await sizeByExternalCli(factsOf(values), options);
      expect(sized).toMatchObject({ ok: false, error: { reason: "recipe-not-sized" } });
      expect(!sized.ok && sized.error.message).toContain(told);
    }
    expect(existsSync(join(folder, "calls"))).toBe(false);
  });
});

describe("what goes wrong is one line", () => {
  const rows: [string, string, string][] = [
    [
      "an exit code with a reason",
      "echo 'unknown model org/model' >&2; echo more >&2; exit 3",
      "The sizing CLI could not size org/model: unknown model org/model",
    ],
    [
      "a reason on stdout",
      "echo 'no such model'; exit 1",
      "The sizing CLI could not size org/model: no such model",
    ],
    ["no reason", "exit 7", "The sizing CLI could not size org/model: exit code 7"],
    [
      "colours and controls",
      "printf '\\n\\033[31mred\\033[0m\\007 alert\\n' >&2; exit 1",
      "The sizing CLI could not size org/model: red alert",
    ],
    [
      "a very long reason",
      "head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1",
      `The sizing CLI could not size org/model: ${"x".repeat(200)}`,
    ],
    ["no JSON", "echo hello", "The sizing CLI's answer on org/model is not JSON: hello"],
    ["nothing", "true", "The sizing CLI's answer on org/model is not JSON: it is empty"],
    ["no jobs", "echo '{}'", "The sizing CLI could not size org/model: it names no peak"],
    ["null", "echo null", "The sizing CLI could not size org/model: it names no peak"],
    [
      "a null peak with a reason",
      answer(null, 2, { reason: "model not found" }),
      "The sizing CLI could not size org/model: model not found",
    ],
    ["a null second peak", answer(1, null), "The sizing CLI could not size org/model: it names no peak"],
    ["a peak that is text", answer("1", 2), "The sizing CLI could not size org/model: it names no peak"],
    ["a negative peak", answer(-1, 2), "The sizing CLI could not size org/model: it names no peak"],
    [
      "peaks that fall",
      answer(3, 2),
      "The sizing CLI's peaks on org/model fall with the batch, so no line fits them.",
    ],
    [
      "other rows",
      'echo \'{"jobs": [{"jobId": "x", "peakGb": 1}, null, 7]}\'',
      "The sizing CLI could not size org/model: it names no peak",
    ],
  ];
  test.each(rows)("%s", async (_, script, message) => {
    expect(await messageOf(script)).toBe(`sizing-failed: ${message}`);
  });

  const commands: [string, string, string][] = [
    ["no program", "/nowhere/neurarch", "/nowhere/neurarch is not a program on PATH."],
    ["an empty command", "", '"" is not a program on PATH.'],
    ["an open quote", "neurarch 'x", "the command line has an open single quote."],
    ["a folder", "/tmp", "/tmp is not a program on PATH."],
  ];
  test.each(commands)("%s", async (_, command, message) => {
    expect(await messageOf("", { command })).toBe(
      `sizing-failed: The sizing CLI cannot be started: ${message}`,
    );
  });
  test("neither neurarch nor npx", async () => {
    const message = await messageOf("", { command: null, env: { PATH: "/nowhere" } });
    expect(message).toBe(
      "sizing-failed: The sizing CLI cannot be started: neither neurarch nor npx is a program on PATH.",
    );
  });
  test("no answer in time, and nothing is left running", async () => {
    const start = performance.now();
    const message = await messageOf("sleep 30 & sleep 30", { timeoutMs: 300 });
    expect(message).toBe("sizing-failed: The sizing CLI gave no answer on org/model within 0.3 s.");
    expect(performance.now() - start).toBeLessThan(3000);
  });
});

describe("the command", () => {
  test("is neurarch on PATH where none is given", async () => {
    const { options } = standIn(answer(1, 2));
    expect((await sizeByExternalCli(factsOf(), { ...options, command: null })).ok).toBe(true);
  });
  test("may have words of its own", async () => {
    const { options, folder, command } = standIn(answer(1, 2));
    await sizeByExternalCli(factsOf(), { ...options, command: `env A='b c' ${command}` });
    expect(readFileSync(join(folder, "calls"), "utf8")).toStartWith("rightsize ");
  });
  const rows: [string, string[]][] = [
    ["neurarch", ["neurarch"]],
    ["  a  b\tc\n", ["a", "b", "c"]],
    ["a 'b c' d", ["a", "b c", "d"]],
    ['a "b c" d', ["a", "b c", "d"]],
    ["a''b", ["ab"]],
    ["a '' b", ["a", "", "b"]],
    ['"a\\"b"', ['a"b']],
    ['"a\\\\b"', ["a\\b"]],
    ['"a\\nb"', ["a\\nb"]],
    ["'a\\'", ["a\\"]],
    ["a\\ b", ["a b"]],
    ["$HOME *.csv | x; y", ["$HOME", "*.csv", "|", "x;", "y"]],
    ["", []],
  ];
  test.each(rows)("splits %p", (line, words) => {
    expect(splitWords(line)).toEqual({ ok: true, value: words });
  });
  test.each([["a '"], ['"a'], ["a\\"]])("%p is not whole", (line) => {
    expect(splitWords(line).ok).toBe(false);
  });
  test("quoted words come back as they were", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        const line = words.map((word) => `'${word.replaceAll("'", `'"'"'`)}'`).join(" ");
        expect(splitWords(line)).toEqual({ ok: true, value: words });
      }),
    );
  });
});

describe("an answer is remembered", () => {
  const calls = (folder: string) => readFileSync(join(folder, "calls"), "utf8").trim().split("\n").length;

  test("for the same question, and not for another", async () => {
    const { options, folder } = standIn(answer(1, 2));
    const first = await sizeByExternalCli(factsOf(), options);
    expect(await sizeByExternalCli(factsOf({ batch: 4 }), options)).toMatchObject({
      ok: true,
      value: { params: 7_000_000_000 },
    });
    expect(first.ok).toBe(true);
    expect(calls(folder)).toBe(1);
    await sizeByExternalCli(factsOf({ seqLen: 512 }), options);
    expect(calls(folder)).toBe(2);
  });
  test("also when it failed, so that a queue of submits does not wait for each", async () => {
    const { options, folder } = standIn("echo no >&2; exit 1");
    const first = await sizeByExternalCli(factsOf(), options);
    expect(await sizeByExternalCli(factsOf(), options)).toEqual(first);
    expect(calls(folder)).toBe(1);
  });
  test("not for a model on disk, not when told not to, and without a cache not at all", async () => {
    const { options, folder } = standIn(answer(1, 2));
    for (let i = 0; i < 2; i++) await sizeByExternalCli(factsOf({ model: folder }), options);
    for (let i = 0; i < 2; i++) await sizeByExternalCli(factsOf(), { ...options, remember: false });
    for (let i = 0; i < 2; i++) await sizeByExternalCli(factsOf(), { ...options, env: { PATH } });
    expect(calls(folder)).toBe(6);
  });
  test("until the program changes", async () => {
    const { options, folder } = standIn(answer(1, 2));
    await sizeByExternalCli(factsOf(), options);
    const before = statSync(join(folder, "neurarch")).mtimeMs;
    await Bun.sleep(15);
    program(folder, "neurarch", answer(5, 6));
    expect(statSync(join(folder, "neurarch")).mtimeMs).not.toBe(before);
    const sized = await sizeByExternalCli(factsOf(), options);
    expect(sized.ok && sized.value.moments[0]?.fixedBytes).toBe(4e9);
  });
});
