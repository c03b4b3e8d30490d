import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BINARY, exec, Scratch, steering } from "./kit.ts";

const scratch = new Scratch();
afterAll(() => scratch.remove());

/** What a path may come to that is no file of ours. `@` is the scratch folder. */
const ODD_FILES: Readonly<Record<string, string>> = {
  "a FIFO": "@/fifo",
  "an endless device": "/dev/zero",
  "a device that waits": "/dev/tty",
  "random bytes": "/dev/urandom",
  "a folder": "@",
  "a socket": "@/socket",
  "a loop of links": "@/loop",
  "a link to a FIFO": "@/to-fifo",
  "a name that is too long": `/${"x".repeat(5000)}`,
  "a name of a thousand folders": `/${"x/".repeat(1000)}`,
  "the kernel's log": "/proc/kmsg",
  "the memory of the process": "/proc/self/mem",
  "its environment": "/proc/self/environ",
  "the machine's memory": "/proc/kcore",
  "a trace that waits": "/sys/kernel/tracing/trace_pipe",
  "100 MB of zeros": "@/zeros",
  "100 MB of brackets": "@/brackets",
  "100 MB in one line": "@/line",
  "nothing in it": "@/empty",
  "bytes that are no text": "@/binary",
  "a zip": "@/zip",
};

/** Of those, what may not be read at all: it would wait for ever, or never end. */
const NO_FILES = ["a FIFO", "an endless device", "random bytes", "a link to a FIFO", "a socket"];

beforeAll(() => {
  const { path } = scratch;
  for (const name of ["fifo", "fifo2"]) Bun.spawnSync(["mkfifo", join(path, name)]);
  symlinkSync("fifo", join(path, "to-fifo"));
  symlinkSync("loop", join(path, "loop"));
  Bun.spawnSync([
    "python3",
    "-c",
    `import socket\nsocket.socket(socket.AF_UNIX).bind(${JSON.stringify(join(path, "socket"))})`,
  ]);
  writeFileSync(join(path, "zeros"), "");
  truncateSync(join(path, "zeros"), 100_000_000);
  for (const [name, piece] of [
    ["brackets", "["],
    ["line", "a: "],
  ] as const)
    writeFileSync(join(path, name), piece.repeat(Math.ceil(100_000_000 / piece.length)));
  writeFileSync(join(path, "empty"), "");
  writeFileSync(
    join(path, "binary"),
    Uint8Array.from({ length: 4096 }, (_, at) => (at * 37) % 256),
  );
  writeFileSync(join(path, "zip"), Buffer.from("504b0304140000000800", "hex"));
});

const at = (path: string) => path.replaceAll("@", scratch.path);

/** Every flag and word that names a file, `%` in its place, and what a command may end with for any file. */
const READERS: readonly (readonly [words: string, exits: readonly number[]])[] = [
  ["slurm --script %", [0]],
  ["slurm --script % --gres gpu:a10g:1", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --config %", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --gpu-map %", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --partition-map %", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --cards %", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --prices %", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --policy-file %", [0]],
  ["slurm --model gpt2 --gres gpu:a10g:1 --ledger %", [0]],
  ["slurm --model % --gres gpu:a10g:1", [0]],
  ["judge --slurm %", [0, 3, 4]],
  ["judge --skypilot %", [0, 3, 4]],
  ["judge --skypilot % --env-file %", [0, 3, 4]],
  ["judge --model % --request T4:1", [2, 3]],
  ["size %", [2, 4, 5]],
  ["rightsize %", [0, 4]],
  ["policy check %", [0, 4]],
  ["policy apply % --findings %", [0, 1, 2, 4]],
  ["ledger %", [0, 4]],
  ["ledger reconcile % --from %", [0, 2, 4]],
  ["serve --print-unit --auth-file %", [0, 2, 4]],
  ["serve --print-unit --tls-cert % --tls-key %", [0, 4]],
  ["bridge check --campaign %", [2, 4]],
];

describe("a path that is no file of ours", () => {
  for (const [words, exits] of READERS) {
    test(words, async () => {
      for (const [name, path] of Object.entries(ODD_FILES)) {
        const asked = words.split(" ").map((word) => (word === "%" ? at(path) : word));
        // A reader that waits for more is ended.
        const ran = await exec(["timeout", "-s", "KILL", "60", BINARY, ...asked]);
        expect({
          words,
          name,
          exit: exits.includes(ran.exit) ? "as it should" : ran.exit,
          err: steering(ran.err),
        }).toEqual({ words, name, exit: "as it should", err: null });
        const isRead =
          /^(?:slurm.*--(?:script|config|gpu-map|cards|prices|partition-map) %|judge --s|policy check|rightsize)/.test(
            words,
          );
        if (isRead && NO_FILES.includes(name))
          expect(ran.out + ran.err).toMatch(/is not a regular file|cannot be read/);
        if (words.startsWith("slurm"))
          expect(ran.out).toMatch(/^decision=(?:allow|warn)\n(?:message=[^\n]*\n)*$/);
        expect(ran.out.length + ran.err.length).toBeLessThan(200_000);
      }
    }, 600_000);
  }
});

/** Texts that grow when they are read. */
const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
const aliases = (depth: number) => {
  const lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"];
  for (let level = 1; level < depth; level++)
    lines.push(
      `a${level}: &a${level} [${Array(10)
        .fill(`*a${level - 1}`)
        .join(",")}]`,
    );
  return `${lines.join("\n")}\n`;
};
const merges = (depth: number) => {
  const lines = ["m0: &m0 {k0: 1}"];
  for (let level = 1; level < depth; level++)
    lines.push(
      `m${level}: &m${level} {<<: [${Array(9)
        .fill(`*m${level - 1}`)
        .join(",")}], k${level}: 1}`,
    );
  return `${lines.join("\n")}\n`;
};
const BOMBS: Readonly<Record<string, string>> = {
  "aliases of aliases": aliases(9),
  "merges of merges": merges(9),
  "an alias of itself": "a: &a [*a]\nb: *a\n",
  "lists in lists": nested("[", "]", 20_000),
  "maps in maps": nested("{a: ", "}", 10_000),
  indents: Array.from({ length: 3000 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
  dashes: `${"- ".repeat(20_000)}x\n`,
  "one key over and over": "a: 1\n".repeat(12_000),
  documents: "---\na: 1\n".repeat(6_000),
  "a number of 100,000 digits": `version: ${"9".repeat(100_000)}\nresources: {accelerators: "H100:${"9".repeat(100_000)}"}\n`,
  "an exponent":
    "resources: {accelerators: H100:1e999999}\nenvs: {NEURARCH_BATCH: 1e999999, NEURARCH_MODEL: gpt2}\n",
  "a sexagesimal": `a: ${"59:".repeat(50_000)}59\n`,
  quotes: `a: "${'\\"'.repeat(100_000)}"\n`,
  comments: "# a\n".repeat(16_000),
  "braces in a glob": `version: 1\nwaivers:\n  - {rule: admission/cost-cap, owner: a, reason: b, created: 2026-11-30, model: "${"{a,b}".repeat(200)}"}\n`,
  "stars in a glob": `version: 1\nwaivers:\n  - {rule: admission/cost-cap, owner: a, reason: b, created: 2026-11-30, model: "${"*a".repeat(100)}"}\n`,
};
const CONFIG = {
  model_type: "llama",
  architectures: ["LlamaForCausalLM"],
  hidden_size: 64,
  intermediate_size: 128,
  num_attention_heads: 4,
  num_hidden_layers: 2,
  vocab_size: 100,
};
const JSON_BOMBS: Readonly<Record<string, string>> = {
  "lists in lists": nested("[", "]", 200_000),
  "objects in objects": `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
  "a billion layers": JSON.stringify({ ...CONFIG, num_hidden_layers: 1e9 }),
  "layers beyond all numbers": JSON.stringify({ ...CONFIG, num_hidden_layers: 1e300 }),
  "a width beyond all numbers": JSON.stringify({ ...CONFIG, hidden_size: 1e200, intermediate_size: 1e200 }),
  "a list of a million kinds of layers": JSON.stringify({
    ...CONFIG,
    num_hidden_layers: 500_000,
    layer_types: Array(500_000).fill("full_attention"),
  }),
  "a million experts": JSON.stringify({
    ...CONFIG,
    model_type: "mixtral",
    architectures: ["MixtralForCausalLM"],
    num_local_experts: 1e6,
    num_experts_per_tok: 1e6,
    num_hidden_layers: 1e4,
  }),
  prototypes: '{"__proto__": {"model_type": "llama"}, "constructor": 1, "hidden_size": {"__proto__": 1}}',
  "a graph of 4,000 layers": JSON.stringify({
    components: Array.from({ length: 4_000 }, (_, index) => ({
      id: `l${index}`,
      type: "linear",
      name: `l${index}`,
      params: { inFeatures: 4, outFeatures: 4 },
      inputs: index === 0 ? [] : [`l${index - 1}`],
      outputs: [`l${index + 1}`],
      inputShape: [4],
      outputShape: [4],
    })),
    connections: [],
  }),
  "a graph in a circle": JSON.stringify({
    components: [
      { id: "a", type: "linear", name: "a", params: {}, inputs: ["b"], outputs: ["b"] },
      { id: "b", type: "linear", name: "b", params: {}, inputs: ["a"], outputs: ["a"] },
    ],
    connections: [],
  }),
};

describe("a text that grows when it is read", () => {
  const within = async (words: readonly string[], exits: readonly number[]) => {
    // Neither the memory nor the time of a login node.
    const limited = ["bash", "-c", 'ulimit -v 3000000; exec timeout -s KILL 60 "$@"', "x", BINARY, ...words];
    const ran = await exec(limited);
    expect({
      words: words.slice(0, 2),
      exit: exits.includes(ran.exit) ? "as it should" : `${ran.exit} ${ran.err.slice(0, 300)}`,
    }).toEqual({ words: words.slice(0, 2), exit: "as it should" });
    expect(steering(ran.out + ran.err)).toBeNull();
    return ran;
  };

  for (const [name, text] of Object.entries(BOMBS)) {
    test(`YAML: ${name}`, async () => {
      const path = scratch.put("bomb.yaml", text);
      await within(["judge", "--skypilot", path], [0, 1, 3, 4]);
      await within(["policy", "check", path], [0, 4]);
      const ran = await within(
        ["slurm", "--model", "gpt2", "--gres", "gpu:a10g:1", "--policy-file", path],
        [0],
      );
      expect(ran.out).toStartWith("decision=");
    });
  }

  for (const [name, text] of Object.entries(JSON_BOMBS)) {
    test(`JSON: ${name}`, async () => {
      const folder = scratch.fresh();
      mkdirSync(folder);
      const path = join(folder, "config.json");
      writeFileSync(path, text);
      writeFileSync(join(folder, "x.neurarch.json"), text);
      await within(["size", path], [0, 4, 5]);
      await within(["size", join(folder, "x.neurarch.json")], [0, 4, 5]);
      for (const flag of ["--gpu-map", "--cards", "--prices", "--partition-map"])
        await within(["cards", flag === "--partition-map" ? "--prices" : flag, path], [0, 4]);
      const ran = await within(["slurm", "--model", path, "--gres", "gpu:a10g:1"], [0]);
      expect(ran.out).toStartWith("decision=");
    });
  }

  test("TOML: tables in tables, long numbers, a megabyte of one key", async () => {
    for (const text of [
      `${Array.from(
        { length: 5000 },
        (_, depth) =>
          `[${Array(depth % 500)
            .fill("a")
            .concat("b")
            .join(".")}]`,
      ).join("\n")}\n`,
      `a = ${nested("[", "]", 50_000)}\n`,
      `max_cost_usd = ${"9".repeat(50_000)}\n`,
      'mode = "warn"\n'.repeat(50_000),
    ]) {
      const path = scratch.put("bomb.toml", text);
      await within(["cards", "--config", path], [0, 4]);
      await within(["slurm", "--config", path, "--model", "gpt2", "--gres", "gpu:1"], [0]);
    }
  });

  test("CSV: a field without an end, a million columns", async () => {
    for (const text of [
      `model,gpu\n"${"x".repeat(5_000_000)}`,
      `model${",a".repeat(1_000_000)}\ngpt2\n`,
      `model,gpu\n${"\n".repeat(1_000_000)}`,
    ])
      await within(["rightsize", scratch.put("bomb.csv", text)], [0, 4]);
  });
});
