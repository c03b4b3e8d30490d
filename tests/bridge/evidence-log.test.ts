import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MAX_ARTIFACT_BYTES, markerLine } from "../../src/bridge/markers.ts";
import { logOf, NONCE, readLog } from "./sky-transcripts.ts";

const P = "\x1b[36m(job-a1, pid=77)\x1b[0m ";
const HEAD =
  "\x1b[33mTailing logs of job 4 on cluster 'c'...\x1b[0m\n" +
  "\x1b[2m├── \x1b[0m\x1b[2mWaiting for task resources on 1 node.\x1b[0m\n" +
  "\x1b[2m└── \x1b[0mJob started. Streaming logs... \x1b[2m(Ctrl-C to exit log streaming; job will not be killed)\x1b[0m\n" +
  `${P}bash: /h/.sky_clusters/c-fcd1e5cf/.bashrc: No such file or directory\n`;
const DONE = "\x1b[0m\x1b[32m✓ Job finished (status: SUCCEEDED).\x1b[0m\x1b[0m\n";
const END = (exitCode: number) => `\n${markerLine({ kind: "end", exitCode }, NONCE)}\n`;
const STOPPED = `\n${markerLine({ kind: "stopped" }, NONCE)}\n`;
const artifact = (base64: string) =>
  `\n${markerLine({ kind: "artifact-begin", size: 3 }, NONCE)}\n${base64}\n${markerLine({ kind: "artifact-end" }, NONCE)}\n`;

/** A program's output as SkyPilot decorates it. */
const decorated = (output: string) => HEAD + output.replace(/[^\n]*\n|[^\n]+$/g, (line) => `${P}${line}`);

describe("real logs", () => {
  test.each([
    [
      "07-logs-ok",
      /^hello\none\nCVD=0\n[\s\S]*SLURM_JOB_NODELIST=a10g1\n$/,
      { finished: "SUCCEEDED", listedExit: null },
    ],
    ["09-exec-attached-fail7", /^two\nnew\njob=3 step=18\nerr\n$/, { finished: "FAILED", listedExit: 7 }],
    [
      "14-logs-cancelled",
      /^tick 1\nTraceback [\s\S]*tick 18\n$/,
      { finished: "CANCELLED", listedExit: null },
    ],
    ["21-expire-logs-follow", /^tick 1\n[\s\S]*tick 32\n$/, { finished: null, listedExit: null }],
    ["41-node-logs-follow", /^tick 1\nTraceback [\s\S]*tick 10\n$/, { finished: null, listedExit: null }],
    ["71-sshkill-logs-follow", /^tick 1\n[\s\S]*tick \d+\n$/, { finished: null, listedExit: null }],
    ["82-slurmdkill-logs-follow", /^tick 1\n[\s\S]*tick \d+\n$/, { finished: null, listedExit: null }],
    ["103-exec-sig", /^Killed\n$/, { finished: "FAILED", listedExit: null }],
    ["104-exec-143", /^$/, { finished: "FAILED", listedExit: 143 }],
    ["105-setup-fail", /^in setup\n$/, { finished: "FAILED_SETUP", listedExit: null }],
    ["124-logs-sigint", /^$/, { finished: "FAILED_SETUP", listedExit: null }],
    ["132-logs-nojob", /^$/, { finished: null, listedExit: null }],
    ["60-logs-oldjob", /^$/, { finished: null, listedExit: null }],
    [
      "16-nested",
      /^outer job=3[\s\S]*\nsrun: error: a10g1: task 0: Exited with exit code 9\n[\s\S]*rc=0\n$/,
      { finished: "FAILED", listedExit: 5 },
    ],
    [
      "210-two-nodes",
      /^rank=0 of 2 on a10g1\nrank=1 of 2 on a10g2\n$/,
      { finished: "FAILED", listedExit: 4 },
    ],
  ] as const)("%s", (name, output, said) => {
    const log = logOf(name);
    const read = readLog(log.text, log);
    expect(read.out).toMatch(output);
    expect(read.said).toMatchObject({ ...said, exitCode: null, artifact: null, style: "decorated" });
  });

  test.each([
    ["21-expire-logs-follow", "DUE TO TIME LIMIT"],
    ["61-preempt-logs-follow", "DUE TO PREEMPTION"],
    ["41-node-logs-follow", "Node failure on mi300x1"],
    ["82-slurmdkill-logs-follow", "Node failure on a10g1"],
    ["51-scancel-logs-follow", "CANCELLED AT"],
    ["103-exec-sig", "StopIteration"],
    ["105-setup-fail", "setup failed with return code 3"],
  ])("%s names its cause", (name, words) => {
    const log = logOf(name);
    expect(readLog(log.text, log).said.causes.join("\n")).toContain(words);
  });
});

describe("the program's own bytes, decorated and plain", () => {
  const cases: [string, string, string?][] = [
    ["nothing", ""],
    ["one line", "one\n"],
    ["empty lines", "\n\none\n\n\n"],
    ["a line that looks like a prefix", "(task, pid=1) hello\n\x1b[36m(task, pid=1)\x1b[0m hello\n"],
    ["its own prefix twice", `${P}x\n${P}${P}y\n`],
    [
      "what looks like the driver",
      "ERROR: Job 4 failed with return code list: [3] \nsrun: error: a10g1: task 0: Exited with exit code 1\nafter\n",
    ],
    ["what looks like the end of the log", "✓ Job finished (status: FAILED).\nmore\n"],
    ["what looks like the end, glued", "so far ✓ Job finished (status: FAILED).\nmore\n"],
    ["another nonce", "__NEURARCH_BRIDGE_END_ffff__ exit=0\n"],
    ["a marker in mid-line", `x ${markerLine({ kind: "end", exitCode: 0 }, NONCE)}\n`],
    ["carriage returns", "10%\r20%\r\n"],
    ["a cause of its own", "printed: DUE TO TIME LIMIT\nNode failure on moon\n"],
    ["a traceback of its own", "Traceback (most recent call last):\n  File x\nStopIteration\nafter\n"],
    ["the beginning of a marker", "__NEURARCH_BRIDGE_\n__NEU\n"],
  ];
  for (const [name, output] of cases) {
    test(name, () => {
      const marked = readLog(decorated(output + END(3)) + DONE);
      expect(marked.out).toBe(output);
      expect(marked.said).toMatchObject({ exitCode: 3, finished: "SUCCEEDED", causes: [], listedExit: null });
      const plain = readLog(output + END(3));
      expect(plain.out).toBe(output);
      expect(plain.said).toMatchObject({ exitCode: 3, finished: null, listedExit: null });
      expect(plain.said.style).toBe("plain");
    });
  }

  test("an unfinished last line gains the newline before the marker, no more", () => {
    expect(readLog(`abc${END(0)}`).out).toBe("abc\n");
    expect(readLog(decorated(`abc${END(0)}`) + DONE).out).toBe("abc\n");
  });

  test.each([
    ["srun's words", `${P}two${"srun: error: a10g1: task 0: Exited with exit code 3\n"}`, "two"],
    ["the list", `${P}two${"ERROR: \x1b[31mJob 4 failed with return code list:\x1b[0m [3] \n"}`, "two"],
    ["the end", `${P}two${DONE}`, "two"],
    ["the end without colours", `${P}two✓ Job finished (status: SUCCEEDED).\n`, "two"],
    ["bytes that are no text", `${P}\xff\xfe${DONE}`, "\xff\xfe"],
  ])("an unfinished last line with %s behind it", (_, tail, out) => {
    const text = HEAD + tail + (tail.includes("finished") ? "" : DONE);
    const bytes = Buffer.from(text.replaceAll("\xff\xfe", "@@"));
    if (text.includes("\xff\xfe")) bytes.set([0xff, 0xfe], bytes.indexOf("@@"));
    const read = readLog(bytes);
    expect(read.bytes.toString("latin1")).toBe(out);
    expect(read.said.finished).toBe("SUCCEEDED");
    expect(read.said.listedExit).toBe(tail.includes("list:") ? 3 : null);
  });

  test("the words of the step daemon count in a plain log at its end only", () => {
    const words = "srun: error: Node failure on a10g1\n";
    expect(readLog(`one\n${words}`, { final: false }).said.causes).toEqual([
      "srun: error: Node failure on a10g1",
    ]);
    expect(readLog(`${words}1\n2\n3\n4\n5\n6\n7\n`, { final: false }).said.causes).toEqual([]);
    expect(readLog(`one\n${words}`).out).toBe(`one\n${words}`);
  });

  test("a banner before the announcement", () => {
    expect(readLog(`\x1b[33mnote\x1b[0m\n\n${decorated(`x\n${END(0)}`)}${DONE}`).out).toBe("x\n");
    expect(readLog(`✓ mine\n\nx\n${END(0)}`).out).toBe("✓ mine\n\nx\n");
  });

  test("an announcement of another job is output", () => {
    const line = "Tailing logs of job 5 on cluster 'c'...\nx\n";
    expect(readLog(line + END(0)).out).toBe(line);
  });

  test("a plain line reaches the client before its end is there, and an empty one with what follows", () => {
    expect(readLog("prompt> ", { final: false }).out).toBe("prompt> ");
    expect(readLog("one\n\n", { final: false }).out).toBe("one\n");
    expect(readLog("one\n\n", { final: true }).out).toBe("one\n\n");
  });

  test("the job's shell was asked to end", () => {
    expect(readLog(`one\n${STOPPED}`, { final: false })).toMatchObject({
      out: "one\n",
      said: { stopped: true, exitCode: null },
    });
  });

  test("of several nodes the code that is not 0 counts", () => {
    expect(readLog(`${END(0)}${END(4)}${END(0)}`).said.exitCode).toBe(4);
  });

  test("a marker that was cut says nothing", () => {
    const cut = `one\n${END(137)}`.slice(0, -3);
    expect(readLog(cut, { final: false })).toMatchObject({ out: "one\n", said: { exitCode: null } });
  });
});

describe("the artifact", () => {
  const base64 = "eyJhIjogMX0=";
  test.each([
    ["on one line", artifact(base64)],
    ["on several", artifact("eyJh\nIjog\nMX0=")],
    ["twice, the last counts", artifact("AAAA") + artifact(base64)],
  ])("%s", (_, text) => {
    for (const log of [`x\n${text}${END(0)}`, decorated(`x\n${text}${END(0)}`) + DONE])
      expect(readLog(log)).toMatchObject({ out: "x\n", said: { artifact: base64, exitCode: 0 } });
  });

  test("the largest, in small pieces", () => {
    const big = "A".repeat(Math.ceil(MAX_ARTIFACT_BYTES / 3) * 4);
    const read = readLog(artifact(big) + END(0), { sizes: [65_536] });
    expect(read.said.artifact).toBe(big);
    expect(read.out).toBe("");
  });

  test("more than fits, on one line or many, is dropped and the end is still seen", () => {
    for (const line of ["A".repeat(3_000_000), `${"A".repeat(76)}\n`.repeat(30_000)])
      expect(readLog(artifact(line) + END(0), { sizes: [65_536] })).toMatchObject({
        out: "",
        said: { artifact: "too-big", exitCode: 0 },
      });
  });

  test("the job says that it is too big", () => {
    const line = `\n${markerLine({ kind: "artifact-unsent", reason: "too-big" }, NONCE)}\n`;
    expect(readLog(line + END(0))).toMatchObject({ out: "", said: { artifact: "too-big", exitCode: 0 } });
  });

  test("one that was cut is none", () => {
    expect(readLog(`x\n${artifact(base64).slice(0, -60)}`, { final: false })).toMatchObject({
      out: "x\n",
      said: { artifact: null },
    });
  });
});

describe("however the stream is cut into chunks", () => {
  const word = fc.constantFrom(
    "a",
    "\n",
    "\n\n",
    "__NEURARCH_BRIDGE_",
    `__NEURARCH_BRIDGE_END_${NONCE}`,
    P,
    "srun: error: a10g1: task 0: Exited with exit code 3",
    "✓ Job finished (status: FAILED).",
    "é",
    "\x1b[31m",
    "Tailing logs of job",
    "x".repeat(300),
  );
  const output = fc.array(word, { maxLength: 12 }).map((words) => words.join(""));
  const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 });

  test("the bytes and the findings are the same", () => {
    fc.assert(
      fc.property(output, sizes, fc.boolean(), fc.boolean(), (text, cuts, isDecorated, withArtifact) => {
        const job = text + (withArtifact ? artifact("QUJD") : "") + END(5);
        const log = isDecorated ? decorated(job) + DONE : job;
        const whole = readLog(log);
        const cut = readLog(log, { sizes: cuts });
        expect(cut.out).toBe(whole.out);
        expect(cut.said).toEqual(whole.said);
        expect(whole.said.exitCode).toBe(5);
        expect([text, `${text}\n`]).toContain(whole.out);
      }),
      { numRuns: 500 },
    );
  });

  for (const before of ["", "\r", "  ", "\t\x1b[0m", "\u00a0", "\x1b[31"]) {
    test(`the announcement behind ${JSON.stringify(before)}`, () => {
      const log = before + decorated("a\n");
      const whole = readLog(log);
      for (let size = 1; size < 60; size++) expect(readLog(log, { sizes: [size] })).toEqual(whole);
    });
  }

  test("what a cut stream gave is a beginning of what the whole one gives", () => {
    fc.assert(
      fc.property(output, fc.nat(), sizes, fc.boolean(), (text, at, cuts, isDecorated) => {
        const bytes = Buffer.from(isDecorated ? decorated(text + END(5)) + DONE : text + END(5));
        const whole = readLog(bytes);
        const part = readLog(bytes.subarray(0, at % (bytes.length + 1)), { final: false, sizes: cuts });
        expect(whole.bytes.subarray(0, part.bytes.length).equals(part.bytes)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("bytes that are no text pass as they are", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), sizes, (noise, cuts) => {
        const bytes = Buffer.concat([Buffer.from("x"), noise, Buffer.from(END(0))]);
        const out = readLog(bytes, { sizes: cuts }).bytes;
        const wanted = Buffer.concat([Buffer.from("x"), noise]);
        expect(out.subarray(0, wanted.length).equals(wanted)).toBe(true);
        expect(out.length - wanted.length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 300 },
    );
  });

  test("a line without end is not kept", () => {
    const line = "y".repeat(3_000_000);
    expect(readLog(line, { sizes: [65_536], final: false }).bytes.length).toBe(line.length);
    const long = readLog(`${HEAD}${P}${line}\n${P}z\n${DONE}`, { sizes: [65_536] });
    expect(long.out).toBe(`${line}\nz\n`);
  });
});
