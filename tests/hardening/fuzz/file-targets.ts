import { flagFacts } from "../../../src/facts/flags.ts";
import { readFacts } from "../../../src/facts/read.ts";
import { readPolicyText } from "../../../src/gate/policy-file.ts";
import { Rightsizer } from "../../../src/gate/rightsize.ts";
import { readColumns } from "../../../src/gate/rightsize-columns.ts";
import { csvRecords } from "../../../src/gate/rightsize-csv.ts";
import { parseSiteFile } from "../../../src/gate/site-file.ts";
import { sizeLocated } from "../../../src/gate/size-anew.ts";
import { readLine } from "../../../src/ledger/read.ts";
import { GateError } from "../../../src/lib/errors.ts";
import { readGraph } from "../../../src/model/graph.ts";
import { parseConfig, readStructure } from "../../../src/model/read.ts";
import { globProblem, matchesName, matchesPath } from "../../../src/policy/glob.ts";
import { lintPolicy } from "../../../src/policy/lint.ts";
import { checkDocument, humanCheck } from "../../../src/render/policy.ts";
import { buildCardTable } from "../../../src/request/cards.ts";
import { planIn } from "../../../src/sources/hosted-answer.ts";
import { splitWords } from "../../../src/sources/words.ts";
import { CONFIGS, GRAPHS, LEDGER_LINES, POLICIES, SITE_FILE } from "./corpus.ts";
import { applied } from "./policy-try.ts";
import { mutated, mutatedJson, ODD, type Random } from "./random.ts";
import { ENV, SITES } from "./settings.ts";
import { hold, isOneLine, type Target, target } from "./target.ts";

const clean = (message: string) =>
  hold(isOneLine(message), `a message of more than one line: ${JSON.stringify(message)}`);
/** Runs what may throw an error of ours. */
function ours(use: () => void): void {
  try {
    use();
  } catch (error) {
    if (!(error instanceof GateError) || error.code === "internal") throw error;
  }
}

const YAML = [
  "\n",
  "  ",
  "- ",
  ": ",
  "{",
  "}",
  "[",
  "]",
  ",",
  "&a ",
  "*a",
  "<<: *a",
  "'",
  '"',
  "|",
  ">",
  "#",
  "---\n",
  "!!x ",
  "waivers:",
  "rules:",
  "budget:",
  "version: 1\n",
  "off",
  "block",
  "2026-12-24",
  "**",
  "*",
  "?",
  "[!a-z]",
  "{a,b}",
  "7B",
  "owner: ",
  "expires: ",
];
const GLOB = [
  "*",
  "**",
  "?",
  "[",
  "]",
  "[!a-c]",
  "[^x]",
  "{",
  "}",
  ",",
  "/",
  "\\",
  "a",
  "b",
  "Qwen",
  "-",
  ".",
  "{a,{b,c}}",
  "./",
];
const RECIPES: readonly Record<string, string>[] = [
  {},
  { "lora-rank": "16" },
  { precision: "fp32" },
  { quant: "nf4", "lora-rank": "8" },
  { checkpointing: "full", precision: "bf16" },
  { parallel: "ddp", attention: "eager" },
  { loss: "fused", optimizer: "adafactor" },
];
const factsOf = (flags: Record<string, string>) => {
  const reading = readFacts(flagFacts({ model: "m", batch: "2", ...flags }), {
    unknownKeys: "ignore",
    siteDefaults: {},
    notes: [],
  });
  if (reading.kind !== "facts") throw new Error("facts");
  return reading.facts;
};
const FACTS = RECIPES.map(factsOf);

const csv = (random: Random): string =>
  mutated(
    random,
    'job_id,model,gpu,hours,batch,seq_len,lora_rank\n1,Qwen/Qwen3-8B,H100:8,2,8,2048,\n"a ""b""",gpt2,"T4:1",,1,512,16\r\n3,gpt2,A100,1,2,,\n',
    ['"', ",", "\n", "\r", "\r\n", '""', " ", "gpu", "=1+1", "H100:8", "gpt2", ...ODD],
  );

const columns = (text: string) => {
  const first = csvRecords([text]).next();
  return first.done || "problem" in first.value
    ? null
    : { header: first.value, rest: [...csvRecords([text])].slice(1) };
};

const located = (structure: unknown) =>
  ({ structure, model: "m", source: "path", revision: null, from: "a file" }) as never;

export const FILE_TARGETS: readonly Target[] = [
  target({
    name: "config-json",
    input: (random) =>
      random.once(3)
        ? mutated(random, JSON.stringify(random.of(CONFIGS)), [
            '"',
            ":",
            ",",
            "{",
            "}",
            "[",
            "]",
            "NaN",
            "Infinity",
            "-Infinity",
            ...ODD,
          ])
        : JSON.stringify(mutatedJson(random, random.of(CONFIGS))),
    check(text) {
      const raw = parseConfig(text);
      if (!raw.ok) return;
      const read = readStructure(raw.value);
      if (!read.ok) return;
      const { params } = read.value;
      hold(Number.isFinite(params) && params > 0, `${params} parameters`);
    },
  }),
  target({
    name: "config-sized",
    share: 40,
    input: (random) => ({
      config: mutatedJson(random, random.of(CONFIGS)),
      recipe: random.int(FACTS.length),
    }),
    check({ config, recipe }) {
      const read = readStructure(config);
      if (!read.ok) return;
      const sized = sizeLocated(located(read.value), FACTS[recipe]!);
      if (!sized.ok) return clean(sized.error.message);
      for (const { fixedBytes, perSampleBytes, name } of sized.value.sizing.moments)
        hold(
          fixedBytes >= 0 && perSampleBytes >= 0 && Number.isFinite(fixedBytes + perSampleBytes),
          `${name}: ${fixedBytes} + ${perSampleBytes} bytes`,
        );
    },
  }),
  target({
    name: "graph",
    share: 20,
    input: (random) => mutatedJson(random, random.of(GRAPHS)),
    check(graph) {
      const read = readGraph(graph);
      if (!read.ok) return clean(read.error.message);
      const sized = sizeLocated(located(read.value), FACTS[0]!);
      if (!sized.ok) return clean(sized.error.message);
      for (const { fixedBytes, perSampleBytes, name } of sized.value.sizing.moments)
        hold(
          fixedBytes >= 0 && perSampleBytes >= 0 && Number.isFinite(fixedBytes + perSampleBytes),
          `${name}: ${fixedBytes} + ${perSampleBytes} bytes`,
        );
    },
  }),
  target({
    name: "policy-yaml",
    input: (random) => (random.once(4) ? random.soup(YAML, 60) : mutated(random, random.of(POLICIES), YAML)),
    check(text) {
      const reading = readPolicyText(text);
      hold(reading.policy !== null || reading.problems.length > 0, "no policy, and nothing wrong with it");
      const problems = lintPolicy(reading, {
        today: "2026-12-01",
        identity: (name) => name,
        nearestCard: (name) => SITES[0]!.table.nearest(name),
      });
      const checked = { file: "p.yml", today: "2026-12-01", policy: reading.policy, problems };
      for (const line of humanCheck(checked).split("\n")) clean(line);
      JSON.parse(JSON.stringify(checkDocument(checked)));
      if (reading.policy !== null) applied(reading.policy);
    },
  }),
  target({
    name: "policy-globs",
    input: (random) => ({
      pattern: random.soup(GLOB, 12),
      path: random.soup(["a", "b", "/", "Qwen", ".", "-", "x.yml", "c"], 10),
    }),
    check({ pattern, path }) {
      const problem = globProblem(pattern);
      const matches = [matchesName(pattern, path), matchesPath(pattern, path)];
      hold(problem === null || !matches.includes(true), "a pattern with a problem matches");
    },
  }),
  target({
    name: "gate-toml",
    input: (random) =>
      mutated(random, SITE_FILE, [
        "[",
        "]",
        "=",
        '"',
        "'",
        '"""',
        "{",
        "}",
        ",",
        "\n",
        ".",
        "1979-05-27T07:32:00Z",
        "inf",
        "nan",
        "0x1",
        "[[a]]\n",
        "mode = ",
        ...ODD,
      ]),
    check(text) {
      ours(() => parseSiteFile(text, "gate.toml"));
    },
  }),
  target({
    name: "site-tables",
    share: 4,
    input: (random) => ({
      cards: random.once(2)
        ? mutatedJson(random, {
            X1: { gb: 80, vendor: "cuda", usd_per_hour: 2, names: ["x-1"] },
            H100: { gb: 79 },
          })
        : null,
      prices: random.once(2) ? mutatedJson(random, { H100: 2.5, T4: 0.1 }) : null,
      gpuMap: random.once(2) ? mutatedJson(random, { a100: "A100-80", h100: "H100", x: "T4" }) : null,
    }),
    check(tables) {
      ours(() => {
        const table = buildCardTable(tables as never);
        for (const name of ["a100", "h100", "T4", "X1", "nope", "__proto__"]) table.nearest(name);
      });
    },
  }),
  target({
    name: "jobs-csv",
    input: (random) => ({ text: csv(random), cut: random.int(40) + 1 }),
    check({ text, cut }) {
      const whole = [...csvRecords([text])];
      const pieces: string[] = [];
      for (let at = 0; at < text.length; at += cut) pieces.push(text.slice(at, at + cut));
      hold(JSON.stringify([...csvRecords(pieces)]) === JSON.stringify(whole), "in pieces it reads otherwise");
    },
  }),
  target({
    name: "rightsize-rows",
    share: 20,
    input: csv,
    async check(text) {
      const found = columns(text);
      if (found === null) return;
      let read: ReturnType<typeof readColumns> | null = null;
      ours(() => {
        read = readColumns((found.header as { fields: readonly string[] }).fields, "jobs.csv");
      });
      if (read === null) return;
      const sizer = new Rightsizer(read, SITES[1]!, { cwd: "/proc", env: ENV, deadlineMs: 1000 });
      for (const [row, record] of found.rest.slice(0, 6).entries()) await sizer.report(record, row + 1);
    },
  }),
  target({
    name: "ledger-line",
    input: (random) =>
      random.once(2)
        ? mutated(random, random.of(LEDGER_LINES), ['"', ":", ",", "null", ...ODD])
        : JSON.stringify(mutatedJson(random, JSON.parse(random.of(LEDGER_LINES)))),
    check(line) {
      const read = readLine(line);
      if (typeof read === "string") return;
      const again = readLine(JSON.stringify(read));
      hold(
        JSON.stringify(again) === JSON.stringify(read),
        "an entry that is not the same when it is read again",
      );
    },
  }),
  target({
    name: "plan-reply",
    input: (random) =>
      random.once(2)
        ? mutated(random, PLAN, ['"', "{", "}", "[", "null", ...ODD])
        : JSON.stringify(mutatedJson(random, JSON.parse(PLAN))),
    check(text) {
      const plan = planIn(text);
      if (plan !== null) hold(plan.fixedBytes >= 0 && plan.perSampleBytes >= 0, "a plan below nothing");
    },
  }),
  target({
    name: "cli-words",
    input: (random) => random.soup(["a", " ", "'", '"', "\\", "-", "/x", "$", "\t", "\n", ""], 12),
    check(text) {
      splitWords(text);
    },
  }),
];

const PLAN =
  '{"plan":{"cost":{"peakGb":71.5,"activationGb":10.25,"seqLen":2048,"assumptions":["at batch 32","x"]},"model":{"params":7000000000}}}';
