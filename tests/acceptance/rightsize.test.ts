import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARY, run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "gate-rightsize-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const env = { HF_HUB_OFFLINE: "1" };
const HEADER = "job_id,model,gpu,hours,batch,seq_len,lora_rank,attention";
const QWEN = "Qwen/Qwen3-0.6B";

interface Job {
  readonly jobId: string;
  readonly peakGb: number | null;
  readonly seqLen: number | null;
  readonly params: number | null;
  readonly reason: string | null;
  readonly unjudged: string | null;
  readonly needGb: number | null;
  readonly decision: string;
  readonly fit: string | null;
  readonly smallest: { readonly accelerator: string; readonly count: number } | null;
  readonly usdSavedPerHour: number | null;
  readonly usdSaved: number | null;
}

interface Document {
  readonly schema: string;
  readonly jobs: readonly Job[];
  readonly summary: Record<string, number>;
  readonly error: string | null;
}

let files = 0;
function file(text: string | Uint8Array): string {
  const path = join(folder, `jobs${files++}.csv`);
  writeFileSync(path, text);
  return path;
}

async function report(text: string | Uint8Array, args: readonly string[] = []): Promise<Document> {
  const { exit, out, err } = await run(["rightsize", file(text), "--json", ...args], { env, cwd: folder });
  expect([exit, err]).toEqual([0, ""]);
  return JSON.parse(out);
}

const jobsOf = async (...rows: string[]) => (await report(`${HEADER}\n${rows.join("\n")}\n`)).jobs;

describe("the contract of the published packages", () => {
  test("jobId, peakGb, seqLen and params of each row, in its order", async () => {
    const jobs = await jobsOf(`b1,${QWEN},H200,1,1,2048,,sdpa`, `b2,${QWEN},H200,1,2,2048,,sdpa`);
    expect(jobs.map((job) => Object.keys(job).slice(0, 5))).toEqual(
      Array(2).fill(["jobId", "peakGb", "seqLen", "params", "reason"]),
    );
    for (const [at, batch] of [1, 2].entries()) {
      const sized = JSON.parse((await run(["size", QWEN, "--batch", String(batch), "--json"], { env })).out);
      const { jobId, peakGb, seqLen, params, reason } = jobs[at]!;
      expect({ jobId, seqLen, params, reason }).toEqual({
        jobId: `b${batch}`,
        seqLen: 2048,
        params: sized.params,
        reason: null,
      });
      expect(peakGb! / (sized.peakBytes / 1e9)).toBeCloseTo(1, 12);
    }
  });
  test("a row without a peak says why", async () => {
    const [job] = await jobsOf("b1,nobody/nothing,H200,1,1,,,");
    expect(job).toMatchObject({ jobId: "b1", peakGb: null, seqLen: null, params: null });
    expect(job!.reason).toStartWith("No config was found for nobody/nothing: ");
  });
});

describe("each row is judged as judge would", () => {
  const rows: [string, string[], string[]][] = [
    ["A10G:1", ["--batch", "8", "--seq-len", "2048"], ["", "8", "2048", "", ""]],
    ["H100:8", ["--batch", "4", "--hours", "6"], ["6", "4", "", "", ""]],
    ["A100-80GB:8", ["--batch", "1"], ["", "1", "", "", ""]],
    ["H200", ["--batch", "1", "--lora-rank", "16"], ["", "1", "", "16", ""]],
    ["L4:3", ["--batch", "2", "--attention", "eager"], ["", "2", "", "", "eager"]],
    ["T4:1", [], ["", "", "", "", ""]],
    ["H100-80GB:2", ["--batch", "64", "--seq-len", "512"], ["", "64", "512", "", ""]],
  ];
  test.each(rows)("%s %p", async (gpu, flags, cells) => {
    const [job] = await jobsOf(["a", QWEN, gpu, ...cells].join(","));
    const judged = await run(["judge", "--model", QWEN, "--request", gpu, ...flags, "--json"], { env });
    const [verdict] = JSON.parse(judged.out).verdicts;
    const { needGb, peakGb, fit, decision } = verdict;
    expect(job).toMatchObject({ needGb, peakGb, fit, decision });
    if (fit === "over") expect(job!.smallest).toEqual(verdict.rightSized);
    if (fit === "under" && verdict.smallestRequest !== null)
      expect(job!.smallest).toEqual(verdict.smallestRequest);
    if (fit === "under" && verdict.smallestCard !== null)
      expect(job!.smallest).toEqual({ accelerator: verdict.smallestCard, count: 1 });
  });
  test("what an over-request saves is its price less the smallest's", async () => {
    const [job] = await jobsOf(`a,${QWEN},H100:8,6,1,512,,`);
    expect(job).toMatchObject({ fit: "over", smallest: { count: 1 } });
    const prices = JSON.parse((await run(["cards", "--json"])).out).cards as {
      name: string;
      usdPerHour: number;
    }[];
    const price = (name: string) => prices.find((card) => card.name === name)!.usdPerHour;
    const saved = 8 * price("H100") - price(job!.smallest!.accelerator);
    expect(job!.usdSavedPerHour).toBeCloseTo(saved, 9);
    expect(job!.usdSaved).toBeCloseTo(saved * 6, 9);
  });
  test("fact names of ours are columns too", async () => {
    const { jobs } = await report(
      `model,precision,Checkpointing,gpu,padding-mask\n${QWEN},bf16,full,H100:1,off\n${QWEN},,,H100:1,\n`,
    );
    const sized = await run(
      ["size", QWEN, "--batch", "32", "--precision", "bf16", "--checkpointing", "full", "--json"],
      { env },
    );
    expect(jobs[0]!.peakGb! / (JSON.parse(sized.out).peakBytes / 1e9)).toBeCloseTo(1, 12);
    expect(jobs[1]!.peakGb!).toBeGreaterThan(jobs[0]!.peakGb!);
    expect(jobs.map((job) => job.jobId)).toEqual(["row 1", "row 2"]);
  });
  test("a site's map, prices and cap hold", async () => {
    const map = file('{"big": "H100"}');
    const prices = file('{"H100": 10}');
    const text = `${HEADER}\na,${QWEN},big:2,10,4,,,\nb,${QWEN},A100:1,1,1,,,\n`;
    const { jobs } = await report(text, ["--gpu-map", map, "--prices", prices, "--max-cost-usd", "150"]);
    expect(jobs[0]).toMatchObject({ decision: "refuse", rule: "admission/cost-cap" } as Partial<Job>);
    expect(jobs[1]).toMatchObject({ fit: null, reason: null });
    expect(jobs[1]!.unjudged).toContain("'A100'");
  });
});

describe("a row that cannot be read is a row with a reason", () => {
  const rows: [string, string, string][] = [
    [
      "a batch that is a word",
      "a,gpt2,T4,,eight,,,",
      'batch: "eight" is not a whole number from 1 to 1,000,000; write "8", say.',
    ],
    [
      "two of them",
      "a,gpt2,T4,-1,0,,,",
      'batch: "0" is not a whole number from 1 to 1,000,000; write "8", say. hours: "-1" is not a number of hours above 0 and up to 1,000,000; write "6", say.',
    ],
    [
      "an attention that is none",
      "a,gpt2,T4,,,,,flsh",
      'attention: "flsh" is not one of sdpa, flash, eager; write "flash", say.',
    ],
    ["no model", "a,,T4,,,,,", "The row names no model."],
    [
      "too few fields",
      "a,gpt2,T4",
      "Line 2 has 3 fields where the header has 8; leave unset ones empty, and quote a comma.",
    ],
    [
      "too many fields",
      "a,gpt2,T4,1,1,1,1,sdpa,x",
      "Line 2 has 9 fields where the header has 8; leave unset ones empty, and quote a comma.",
    ],
    [
      "a quote that stays open",
      'a,"gpt2,T4,,,,,',
      "Line 2 cannot be read: a quote is opened and not closed.",
    ],
    ["text after a quote", 'a,"gpt2"x,T4,,,,,', "Line 2 cannot be read: text follows a closing quote."],
    ["a recipe that is not sized", "a,gpt2,T4,,,,,,", "Line 2 has 9 fields"],
    [
      "control characters",
      "a,gp\u0001t2,T4,,,,,",
      'model: "gp?t2" holds control characters; write "Qwen/Qwen3-8B", say.',
    ],
  ];
  test.each(rows)("%s", async (_, row, reason) => {
    const jobs = await jobsOf(row, `next,${QWEN},L4,,1,512,,`);
    expect(jobs).toHaveLength(2);
    expect(jobs[0]).toMatchObject({ peakGb: null, decision: "unjudged", fit: null });
    expect(jobs[0]!.reason).toStartWith(reason);
    expect(jobs[1]).toMatchObject({ jobId: "next", reason: null });
  });
  const sized: [string, string, string][] = [
    ["no card", "", "No card is asked for."],
    ["an unknown card", "B999:4", "No capacity is on file for 'B999'"],
    ["half a card", "A100:0.5", "A100:0.5 asks for a part of a card"],
    ["no request at all", "8xH100:x:y", "The accelerator '8xH100:x:y'"],
  ];
  test.each(sized)("a row with %s is sized and not judged", async (_, gpu, why) => {
    const [job] = await jobsOf(`a,${QWEN},${gpu},,1,512,,`);
    expect(job).toMatchObject({ decision: "unjudged", fit: null, reason: null, smallest: { count: 1 } });
    expect(job!.peakGb).toBeGreaterThan(1);
    expect(job!.unjudged).toContain(why);
  });
});

describe("the file", () => {
  const row = `a,${QWEN},L4,,1,512,,`;
  const alike: [string, string | Uint8Array][] = [
    ["CRLF", `${HEADER}\r\n${row}\r\n`],
    ["CR", `${HEADER}\r${row}\r`],
    ["a byte-order mark", `\ufeff${HEADER}\n${row}\n`],
    ["no end of the last line", `${HEADER}\n${row}`],
    ["every field in quotes", `${HEADER.replace(/[^,]+/g, '"$&"')}\n${row.replace(/[^,]+/g, '"$&"')}\n`],
    ["another order", `attention,gpu,model,seq_len,batch,job_id\n,L4,${QWEN},512,1,a\n`],
    ["other spellings and blanks", ` Job-ID , MODEL ,GPU,seq-len,Batch\n a , ${QWEN} , L4 , 512 , 1 \n`],
    ["columns of others", `User,${HEADER},State\n"x,y",${row},DONE\n`],
    ["empty lines", `\n${HEADER}\n\n${row}\n\n`],
  ];
  test.each(alike)("with %s reads alike", async (_, text) => {
    const [expected] = await jobsOf(row);
    const { jobs } = await report(text);
    expect(jobs).toEqual([expected!]);
  });
  test("on stdin, and as a pipe of the shell", async () => {
    const text = `${HEADER}\n${row}\n`;
    const piped = await run(["rightsize", "-", "--json"], { env, stdin: text });
    expect(JSON.parse(piped.out).jobs).toHaveLength(1);
    const shell = Bun.spawnSync(
      ["bash", "-c", `${BINARY} rightsize <(sleep 0.2; cat ${file(text)}) --json`],
      {
        env: { PATH: "/usr/bin:/bin", ...env },
      },
    );
    expect(JSON.parse(shell.stdout.toString()).jobs).toHaveLength(1);
  });
  test("with no rows is a report of none", async () => {
    expect(await report(`${HEADER}\n`)).toMatchObject({ jobs: [], summary: { jobs: 0 }, error: null });
  });

  mkdirSync(join(folder, "directory"));
  Bun.spawnSync(["mkfifo", join(folder, "fifo")]);
  const refused: [string, () => string[], number, string][] = [
    ["that is missing", () => ["nowhere.csv"], 4, "nowhere.csv does not exist. Name a readable CSV file."],
    [
      "that is a folder",
      () => ["directory"],
      4,
      "directory is a directory, not a file. Name a readable CSV file.",
    ],
    ["that is a FIFO", () => ["fifo"], 4, "fifo is not a regular file. Name a readable CSV file."],
    ["that never ends", () => ["/dev/zero"], 4, "/dev/zero is not a regular file. Name a readable CSV file."],
    [
      "that is empty",
      () => [file("")],
      4,
      "F is empty. The first line names the columns: job_id,model,gpu,hours,batch,seq_len,lora_rank,attention.",
    ],
    [
      "without a model column",
      () => [file("a,b\n1,2\n")],
      4,
      "F has no column named model. The first line names the columns: job_id,model,gpu,hours,batch,seq_len,lora_rank,attention.",
    ],
    [
      "with semicolons",
      () => [file("job_id;model\na;gpt2\n")],
      4,
      "F has no column named model. Its columns are parted by `;`; save it with commas.",
    ],
    [
      "with two bytes a letter",
      () => [file(new Uint8Array([0xff, 0xfe, 0x6d, 0, 0x6f, 0]))],
      4,
      "F has no column named model. Save it as UTF-8 text with commas between the fields.",
    ],
    ["that is not named", () => [], 2, "FILE is missing: CSV"],
    ["with another one", () => ["a.csv", "b.csv"], 2, "`b.csv` is not expected here."],
    ["with an unknown flag", () => ["a.csv", "--jsn"], 2, "unknown flag --jsn. Did you mean --json?"],
  ];
  test.each(refused)("%s", async (_, args, exit, line) => {
    const words = args();
    const ran = await run(["rightsize", ...words], { env, cwd: folder });
    expect([ran.exit, ran.out]).toEqual([exit, ""]);
    expect(ran.err).toStartWith(`neurarch-gate rightsize: ${line.replace(/^F /, `${words[0]} `)}`);
  });
  test("that is missing is one JSON document under --json", async () => {
    const ran = await run(["rightsize", "nowhere.csv", "--json"], { env, cwd: folder });
    expect(ran.exit).toBe(4);
    expect(JSON.parse(ran.out)).toMatchObject({ schema: "neurarch-gate/error", code: "input-unreadable" });
  });
  test("with a column that is nearly one of ours says so, and goes on", async () => {
    const ran = await run(["rightsize", file(`model,seqlen,gpu\n${QWEN},512,L4\n`), "--json"], { env });
    expect([ran.exit, ran.err]).toEqual([0, "The column seqlen is not read; is seq_len meant?\n"]);
    expect(JSON.parse(ran.out).jobs[0].seqLen).toBe(2048);
  });
});

describe("for people", () => {
  test("a table and what it comes to", async () => {
    const text = `${HEADER}\nsmall,${QWEN},T4:1,,16,2048,,\nover,${QWEN},H100:8,6,1,512,,\nright,${QWEN},L4:1,,1,512,,\nodd,${QWEN},B999:4,,1,512,,\nbad,${QWEN},L4,,x,,,\n`;
    const { out, err, exit } = await run(["rightsize", file(text)], { env });
    expect([exit, err]).toEqual([0, ""]);
    const lines = out.split("\n");
    expect(lines[0]).toMatch(/^job +model +requested +needs +verdict +smallest +saves$/);
    expect(lines[1]).toMatch(/^small +Qwen\/Qwen3-0\.6B +T4:1 +[\d.]+ GB +too small +\S+:\d+$/);
    expect(lines[2]).toMatch(
      /^over +Qwen\/Qwen3-0\.6B +H100:8 +[\d.]+ GB +over-requested +\S+:1 +\$[\d.]+\/h$/,
    );
    expect(lines[3]).toMatch(/^right +Qwen\/Qwen3-0\.6B +L4:1 +[\d.]+ GB +(right-sized|borderline) +\S+:1$/);
    expect(lines[4]).toMatch(/^odd +Qwen\/Qwen3-0\.6B +B999:4 +[\d.]+ GB +not judged +\S+:1$/);
    expect(lines[5]).toStartWith("    No capacity is on file for 'B999'");
    expect(lines[6]).toMatch(/^bad +- +L4:1 +- +not judged +-$/);
    expect(lines[7]).toBe('    batch: "x" is not a whole number from 1 to 1,000,000; write "8", say.');
    expect(out).toContain("\n5 jobs: 1 too small, 1 right-sized, 1 over-requested, 2 not judged.\n");
    expect(out).toMatch(/cost \$[\d.]+ an hour less, \$[\d.]+ over the hours that the rows state \(/);
  });
  test("names that steer a terminal do not", async () => {
    const { out } = await run(["rightsize", file(`job_id,model\n"a\u001b[31m\nb","x\u202ey"\n`)], { env });
    expect(out).not.toContain("\u001b");
    expect(out).not.toContain("\u202e");
  });
  test("a progress bar on a terminal only, which leaves nothing behind", async () => {
    const rows = Array.from({ length: 3000 }, (_, at) => `j${at},${QWEN},L4,,${at + 1},512,,`).join("\n");
    const path = file(`${HEADER}\n${rows}\n`);
    const plain = await run(["rightsize", path], { env });
    expect(plain.err).toBe("");
    // A terminal on stderr alone: what comes through it is the bar and nothing else.
    const driver = [
      "import os, pty, subprocess, sys",
      "mine, theirs = pty.openpty()",
      "child = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], 'wb'), stderr=theirs)",
      "os.close(theirs)",
      "seen = b''",
      "try:",
      "    while True: seen += os.read(mine, 65536) or exit(1)",
      "except OSError: pass",
      "child.wait(); sys.stdout.buffer.write(seen)",
    ].join("\n");
    const out = join(folder, "pty.out");
    // A bare chroot has no terminals; then some of our own are mounted, where nobody else sees them.
    const mounted = ["unshare", "-m", "sh", "-c", 'mount -t devpts devpts /dev/pts && exec "$@"', "sh"];
    const withTerminals = existsSync("/dev/pts/ptmx") ? [] : mounted;
    const seen = Bun.spawnSync([...withTerminals, "python3", "-c", driver, out, BINARY, "rightsize", path], {
      env: { PATH: process.env.PATH, HOME: "/nonexistent", ...env },
    }).stdout.toString();
    expect(readFileSync(out, "utf8")).toBe(plain.out);
    expect(seen).toMatch(/\[#+\.*\] \d+ % {2}[\d,]+ jobs/);
    expect(seen).toEndWith("\r\u001b[K");
  });
});

describe("many rows", () => {
  const models = [QWEN, "Qwen/Qwen3-8B", "openai-community/gpt2", "mistralai/Mistral-7B-v0.1"];
  const cards = ["H100:8", "A100-80GB:4", "T4", "L4:2"];
  function many(count: number): string {
    const rows = Array.from({ length: count }, (_, at) => {
      const model = models[at % models.length];
      return `j${at},${model},${cards[(at >> 2) % 4]},${at % 24 || ""},${(at % 4999) + 1},1024,,sdpa`;
    });
    return file(`${HEADER}\n${rows.join("\n")}\n`);
  }
  /**
   * Runs the report into a file; seconds and the most memory it took, in MiB. The high-water mark is read while it
   * runs: what a parent is told of its child counts the parent's own memory at the start.
   */
  async function measured(path: string) {
    const out = join(folder, "many.json");
    const startMs = performance.now();
    const child = Bun.spawn([BINARY, "rightsize", path, "--json"], {
      env: { PATH: "/usr/bin:/bin", HOME: "/nonexistent", ...env },
      stdout: Bun.file(out),
    });
    let mib = 0;
    while (child.exitCode === null) {
      try {
        const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
        mib = Math.max(mib, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024);
      } catch {
        // it has just ended
      }
      await Bun.sleep(20);
    }
    return { seconds: (performance.now() - startMs) / 1000, mib, out };
  }

  test("20,000 in about a second, each with its answer", async () => {
    const { seconds, out } = await measured(many(20_000));
    const { jobs, summary } = JSON.parse(readFileSync(out, "utf8")) as Document;
    expect(jobs).toHaveLength(20_000);
    expect(jobs.every((job, at) => job.jobId === `j${at}` && job.peakGb !== null)).toBe(true);
    expect(summary.jobs).toBe(20_000);
    console.log(`rightsize: 20,000 rows in ${seconds.toFixed(2)} s`);
    expect(seconds).toBeLessThan(5);
  }, 60_000);
  test("memory does not grow with them", async () => {
    const small = await measured(many(150_000));
    // The same again and again is worked out once and soon read, and would fill memory as well if it were kept.
    const [header, ...rows] = readFileSync(many(1_000), "utf8").trimEnd().split("\n");
    const large = await measured(file(`${header}\n${`${rows.join("\n")}\n`.repeat(1_000)}`));
    console.log(
      `rightsize: ${small.mib.toFixed(0)} MiB for 150,000 rows, ${large.mib.toFixed(0)} for 1,000,000`,
    );
    expect(readFileSync(large.out).length).toBeGreaterThan(250_000_000);
    expect(large.mib).toBeLessThan(small.mib * 1.5);
    expect(small.mib).toBeGreaterThan(20);
    expect(large.mib).toBeLessThan(200);
  }, 120_000);
  test("a reader that goes away ends it", () => {
    const startMs = performance.now();
    const shell = Bun.spawnSync(
      ["bash", "-c", `${BINARY} rightsize ${many(400_000)} | head -2; echo "\${PIPESTATUS[0]}"`],
      {
        env: { PATH: "/usr/bin:/bin", ...env },
      },
    );
    expect(shell.stderr.toString()).toBe("");
    expect(shell.stdout.toString().split("\n")[2]).toBe("0");
    expect(performance.now() - startMs).toBeLessThan(4000);
  }, 60_000);
});
