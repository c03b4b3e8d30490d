import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./run.ts";

const GRAPHS = join(import.meta.dir, "../fixtures/graphs");
const KEY = "nk-secret-0123456789";
const linear = (id: string, params: string) => `{"id":"${id}","type":"linear","params":${params}}`;
const sizes = '{"inFeatures":8,"outFeatures":8}';

let folder = "";
let asked: { authorization: string | null; body: Record<string, unknown> }[] = [];
const servers: { stop(force: boolean): unknown; readonly port: number | undefined }[] = [];
const planAt = (index: number) => `http://127.0.0.1:${servers[index]!.port}/api/v1/plan`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-graphs-"));
  const put = (name: string, text: string) => writeFileSync(join(folder, name), text);
  for (const name of ["resnet18", "hf-gpt2", "lstm"])
    cpSync(join(GRAPHS, `${name}.neurarch.json`), join(folder, `${name}.neurarch.json`));
  mkdirSync(join(folder, "traced"));
  cpSync(join(GRAPHS, "vit.neurarch.json"), join(folder, "traced/vit.neurarch.json"));
  put(
    "job.sbatch",
    "#!/bin/sh\n#SBATCH --gres=gpu:T4:1\n#NEURARCH model=./resnet18.neurarch.json batch=4096\n",
  );
  put(
    "task.yaml",
    "resources: {accelerators: T4:1}\nenvs: {NEURARCH_MODEL: ./resnet18.neurarch.json, NEURARCH_BATCH: 4096}\n",
  );
  put(
    "jobs.csv",
    "job_id,model,gpu,hours,batch,seq_len,lora_rank,attention\na,./resnet18.neurarch.json,T4,1,8,,,\nb,./hf-gpt2.neurarch.json,T4,1,8,512,,\nc,./hf-gpt2.neurarch.json,T4,1,8,512,16,\n",
  );
  put(
    "odd.neurarch.json",
    '{"components":[{"id":"i","type":"input","params":{"shape":[4]}},{"id":"w","type":"wavelet"}],"connections":[{"from":"i","to":"w"}]}',
  );
  put(
    "circle.neurarch.json",
    `{"components":[${linear("a", sizes)},${linear("b", sizes)}],"connections":[{"from":"a","to":"b"},{"from":"b","to":"a"}]}`,
  );
  put(
    "dangling.neurarch.json",
    `{"components":[${linear("a", sizes)}],"connections":[{"from":"a","to":"zz"}]}`,
  );
  put("twice.neurarch.json", `{"components":[${linear("a", sizes)},${linear("a", sizes)}]}`);
  put("no-id.neurarch.json", '{"components":[{"type":"linear"}]}');
  put("negative.neurarch.json", `{"components":[${linear("a", '{"inFeatures":-8,"outFeatures":8}')}]}`);
  put("nan.neurarch.json", `{"components":[${linear("a", '{"inFeatures":8,"outFeatures":NaN}')}]}`);
  put("infinite.neurarch.json", `{"components":[${linear("a", '{"inFeatures":1e999,"outFeatures":8}')}]}`);
  put(
    "layers.neurarch.json",
    '{"components":[{"id":"l","type":"lstm","params":{"inputSize":8,"hiddenSize":8,"numLayers":1000000000}}]}',
  );
  put("deep.neurarch.json", `{"components":${"[".repeat(100_000)}${"]".repeat(100_000)}}`);
  put("cut.neurarch.json", '{"components":[{"id":"a"');
  put(
    "many.neurarch.json",
    `{"components":[${Array.from({ length: 400_000 }, (_, index) => linear(`l${index}`, sizes)).join(",")}]}`,
  );
  put("large.neurarch.json", `{"components":[${linear("a", sizes)}],"x":"${"x".repeat(100_000_000)}"}`);
  put("control.neurarch.json", '{"components":[{"id":"a\\n\\u001b[31mb","type":"wavelet"}]}');
  const plan = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      asked.push({
        authorization: request.headers.get("authorization"),
        body: (await request.json()) as Record<string, unknown>,
      });
      return Response.json({
        plan: {
          model: { params: 5_000_000 },
          cost: { peakGb: 20, activationGb: 16, seqLen: 2048, assumptions: "at batch 32" },
        },
      });
    },
  });
  const mover = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response("", { status: 307, headers: { location: `http://127.0.0.1:${plan.port}/api/v1/plan` } }),
  });
  servers.push(plan, mover);
  put("gate.toml", `plan_url = "http://127.0.0.1:${plan.port}/api/v1/plan"\n`);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  for (const server of servers) server.stop(true);
});

const here = (args: string[], env: Record<string, string> = {}) =>
  run(args, { cwd: folder, env: { XDG_CACHE_HOME: join(folder, "cache"), ...env } });

describe("a traced graph as the model", () => {
  test("is sized", async () => {
    const { exit, out } = await here(["size", "resnet18.neurarch.json", "--batch", "8", "--json"]);
    expect([exit, JSON.parse(out)]).toMatchObject([
      0,
      {
        family: "graph",
        source: "builtin",
        params: 11_689_512,
        activeParams: 11_689_512,
        assumed: [],
        revision: null,
      },
    ]);
  });
  test("of no text is told by its samples, without tokens that it does not have", async () => {
    const sized = await here(["size", "resnet18.neurarch.json", "--batch", "8"]);
    expect(sized.out).toMatch(/^resnet18\.neurarch\.json: [\d.]+ GB at batch 8, samples as traced\n/);
    const judged = await here(["judge", "--slurm", "job.sbatch"]);
    expect(judged.out).toContain("batch 4096 per device (peak");
    expect(judged.out).not.toContain("tokens");
  });
  test("is the one graph of a folder", async () => {
    const { exit, out } = await here(["size", "./traced", "--json"]);
    expect([exit, JSON.parse(out).params]).toEqual([0, 3_010_216]);
  });
  test("and a folder of several is asked to be told apart", async () => {
    expect(await here(["size", "."])).toMatchObject({
      exit: 5,
      err: expect.stringMatching(/holds \d+ graphs; name one of them/),
    });
  });
  test("is explained by the sample", async () => {
    const { exit, out } = await here(["size", "resnet18.neurarch.json", "--batch", "8", "--explain"]);
    expect([exit, out.includes("bytes a sample"), /0 words|1 layers/.test(out)]).toEqual([0, true, false]);
  });
  test("is judged by plain flags, by a batch script, by the filter and by a task", async () => {
    const plain = await here([
      "judge",
      "--model",
      "./resnet18.neurarch.json",
      "--batch",
      "4096",
      "--request",
      "T4:1",
      "--json",
    ]);
    expect([plain.exit, JSON.parse(plain.out).decision, JSON.parse(plain.out).sizing.family]).toEqual([
      1,
      "refuse",
      "graph",
    ]);
    const script = await here(["judge", "--slurm", "job.sbatch", "--json"]);
    const task = await here(["judge", "--skypilot", "task.yaml", "--json"]);
    const needs = [plain, script, task].map(({ out }) => JSON.parse(out).verdicts[0].needGb);
    expect(new Set(needs).size).toBe(1);
    const filter = await here(["slurm", "--script", "job.sbatch"]);
    expect([filter.exit, filter.out]).toEqual([
      0,
      expect.stringMatching(/^decision=warn\nmessage=.*The largest batch that fits T4:1 is \d+/),
    ]);
  });
  test("is a row of a report, and LoRA on it a row that says why not", async () => {
    const { exit, out } = await here(["rightsize", "jobs.csv", "--json"]);
    const { jobs } = JSON.parse(out);
    expect([exit, jobs.map(({ peakGb }: { peakGb: number | null }) => peakGb !== null)]).toEqual([
      0,
      [true, true, false],
    ]);
    expect(jobs[2].reason).toContain("LoRA is not sized from a graph");
  });
});

describe("a graph that cannot be used is refused in one line within a second", () => {
  const rows: readonly (readonly [string, number, RegExp])[] = [
    ["odd", 4, /component "w" \(wavelet\) is of a type that is not known here/],
    ["circle", 4, /run in a circle/],
    ["dangling", 4, /goes to "zz", which is no component/],
    ["twice", 4, /two components have the id "a"/],
    ["no-id", 4, /component 1 of 1 has no id/],
    ["negative", 4, /inFeatures = -8/],
    ["nan", 4, /outFeatures/],
    ["infinite", 4, /inFeatures = Infinity/],
    ["layers", 4, /1000000000 layers/],
    ["deep", 4, /not an object|not valid JSON/],
    ["cut", 4, /not valid JSON/],
    ["many", 4, /more than 20,000/],
    ["large", 5, /above the limit of 32\.0 MB/],
    ["control", 4, /wavelet/],
  ];
  for (const [name, code, words] of rows)
    test(name, async () => {
      const start = performance.now();
      const { exit, out, err } = await here(["size", `${name}.neurarch.json`]);
      const ms = performance.now() - start;
      expect([exit, out, err]).toEqual([code, "", expect.stringMatching(words)]);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what may not be there
      expect(err.trimEnd()).not.toMatch(/[\x00-\x1f\x7f]/);
      expect(ms).toBeLessThan(name === "many" ? 2000 : 1000);
    });
});

describe("the hosted plan", () => {
  test("is sent nothing unless an address is given", async () => {
    asked = [];
    expect((await here(["size", "odd.neurarch.json"], { NEURARCH_API_KEY: KEY })).exit).toBe(4);
    expect(asked).toEqual([]);
  });
  test("sizes what we cannot where a site names it, with the key in the header and nowhere else", async () => {
    asked = [];
    for (const args of [
      ["--config", "gate.toml"],
      ["--plan-url", planAt(0), "--sizing", "hosted"],
    ]) {
      const { exit, out, err } = await here(
        ["size", "odd.neurarch.json", "--batch", "2", "--json", ...args],
        { NEURARCH_API_KEY: KEY },
      );
      expect([exit, JSON.parse(out)]).toMatchObject([
        0,
        {
          family: null,
          source: "hosted",
          params: 5_000_000,
          fixedBytes: 4e9,
          perSampleBytes: 0.5e9,
          peakBytes: 5e9,
        },
      ]);
      expect(out + err).not.toContain(KEY);
    }
    expect(asked.map(({ authorization }) => authorization)).toEqual([`Bearer ${KEY}`]);
    expect(asked[0]!.body).toMatchObject({
      attention: "sdpa",
      source: "neurarch-gate",
      model: { components: expect.any(Array) },
    });
  });
  test("is not asked of what we can size, nor with LoRA", async () => {
    asked = [];
    await here(["size", "resnet18.neurarch.json", "--config", "gate.toml"]);
    const lora = await here(["size", "odd.neurarch.json", "--config", "gate.toml", "--lora-rank", "8"]);
    expect([lora.exit, lora.err]).toEqual([
      4,
      expect.stringContaining("The hosted plan does not size LoRA."),
    ]);
    expect(asked).toEqual([]);
  });
  test("gets neither graph nor key by a redirect to another server", async () => {
    asked = [];
    const { exit, err } = await here(
      ["size", "odd.neurarch.json", "--plan-url", planAt(1), "--sizing", "hosted"],
      { NEURARCH_API_KEY: KEY },
    );
    expect([exit, err]).toEqual([5, expect.stringContaining("where neither a graph nor a key is sent")]);
    expect([asked, err.includes(KEY)]).toEqual([[], false]);
  });
  test("judges in a verdict that says so", async () => {
    const { exit, out } = await here([
      "judge",
      "--model",
      "./odd.neurarch.json",
      "--batch",
      "64",
      "--request",
      "T4:1",
      "--config",
      "gate.toml",
    ]);
    expect([exit, out.replace(/\s+/g, " ")]).toEqual([
      1,
      expect.stringContaining("Sized by the hosted plan from the model's graph"),
    ]);
  });
});
