import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, run } from "../acceptance/run.ts";
import { serve } from "../serve/server.ts";

/**
 * The two sides of one launch: at the client's a model is a file in the user's folder; the server's side has no such
 * file, and what the client sent along.
 */
const folder = mkdtempSync(join(tmpdir(), "neurarch-client-sizing-"));
const project = join(folder, "planted-project");
const home = join(folder, "planted-home");
const CONFIG = {
  model_type: "llama",
  hidden_size: 1024,
  num_hidden_layers: 12,
  num_attention_heads: 16,
  intermediate_size: 4096,
  vocab_size: 32000,
};
const GRAPH = "hf-llama-gqa.neurarch.json";

beforeAll(() => {
  for (const name of ["m", "gpt2", "adapter", "o'brien é"])
    mkdirSync(join(project, name), { recursive: true });
  for (const name of ["m", "gpt2", "o'brien é"])
    writeFileSync(join(project, name, "config.json"), JSON.stringify(CONFIG));
  mkdirSync(join(home, "m"), { recursive: true });
  copyFileSync(join(project, "m/config.json"), join(home, "m/config.json"));
  writeFileSync(
    join(project, "adapter/adapter_config.json"),
    JSON.stringify({ base_model_name_or_path: "gpt2", r: 8 }),
  );
  copyFileSync(join(ROOT, "tests/fixtures/graphs", GRAPH), join(project, GRAPH));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Answer {
  readonly decision: string;
  readonly messages: readonly string[];
  readonly reply: { readonly task: string; readonly skypilot_config: string } | null;
}

interface Asked {
  readonly model?: string;
  readonly cards?: string;
  readonly envs?: string;
  readonly more?: string;
}

/** A task as SkyPilot writes it. */
const taskOf = ({ model = "./m", cards = "A100-80GB: 1", envs = "", more = "" }: Asked = {}) =>
  `name: t\n\nresources:\n  accelerators:\n    ${cards}\n  disk_size: 256\n\nnum_nodes: 1\n\n${more}` +
  `run: |\n  python train.py\n\n  envs:\n    x\n\nenvs:\n  HF_TOKEN: planted-variable\n  NEURARCH_MODEL: '${model.replaceAll("'", "''")}'\n` +
  `  NEURARCH_BATCH: '1'\n${envs}\nsecrets:\n  TOKEN: planted-secret\n\nfile_mounts: {}\n\nvolumes: {}\n\n` +
  `_user_specified_yaml: 'name: t\n\n  run: x\n\n  '\n`;

interface Way {
  readonly side?: "client" | "server";
  readonly flags?: readonly string[];
  readonly name?: string;
}

async function ask(
  task: string,
  { side = "client", flags = [], name = "launch" }: Way = {},
): Promise<Answer> {
  const atClient = side === "client";
  const body = { task, skypilot_config: "{}\n", request_name: name, at_client_side: atClient, user: "" };
  const start = atClient ? ["--policy-start", project] : [];
  const { out, exit } = await run(["judge", "--admin-policy", ...start, ...flags], {
    cwd: "/",
    env: { HOME: atClient ? home : join(folder, "server-home") },
    stdin: JSON.stringify(body),
  });
  expect(exit).toBe(0);
  return JSON.parse(out);
}

const onServer = (task: string, ...flags: string[]) => ask(task, { side: "server", flags });
const LINE = /^ {2}NEURARCH_SIZING_FACTS: '(.*)'\n/m;
async function sent(asked: Asked = {}, ...flags: string[]): Promise<string> {
  const answer = await ask(taskOf(asked), { flags });
  if (answer.reply === null) throw new Error(answer.messages.join("\n"));
  return answer.reply.task;
}
const MARKED =
  /^Neurarch: judged by the size that the client sent: .* \(structure [0-9a-f]{16}\) cannot be read here\.$/;

describe("at the client's side", () => {
  for (const [what, asked] of [
    ["a folder", {}],
    ["a config", { model: "./m/config.json" }],
    ["a graph", { model: `./${GRAPH}` }],
    ["an adapter", { model: "./adapter", envs: "  NEURARCH_LORA_RANK: '8'\n" }],
    ["a folder named like a hub's model", { model: "gpt2" }],
    ["a name with a quote and a letter", { model: "./o'brien é" }],
    ["a folder of one's home", { model: "~/m" }],
  ] as const) {
    test(`the size of ${what} goes along, and the task is otherwise what it was`, async () => {
      const task = taskOf(asked);
      const after = await sent(asked);
      expect(after.replace(LINE, "")).toBe(task);
      const [, text = ""] = LINE.exec(after)!;
      expect(JSON.parse(text.replaceAll("''", "'")).model).toBe(asked.model ?? "./m");
      expect(text).not.toContain("planted");
      expect((await ask(after)).reply).toBeNull();
    });
  }

  for (const [what, asked, way] of [
    ["a model that any host finds", { model: "openai-community/gpt2" }, {}],
    ["a refused one", { cards: "T4: 1", envs: "  NEURARCH_SEQ_LEN: '32768'\n" }, {}],
    ["one that is not there", { model: "./nowhere" }, {}],
    ["a controller", {}, { name: "jobs.launch_controller" }],
    ["a service", { more: "service:\n  readiness_probe: /\n\n" }, { name: "serve.up" }],
    ["a task at the server's side", { model: "/nowhere/else" }, { side: "server" }],
    ["a site that wants none", {}, { flags: ["--no-client-sizing"] }],
  ] as const) {
    test(`nothing goes along with ${what}`, async () => {
      expect((await ask(taskOf(asked), way)).reply).toBeNull();
    });
  }

  test("a model that a label names gets variables of its own", async () => {
    const task =
      "resources:\n  accelerators:\n    A100-80GB: 1\n  labels:\n    neurarch-model: m\n    neurarch-batch: '1'\n\nrun: x\n";
    const { reply } = await ask(task);
    expect(reply?.task.replace(LINE, "")).toBe(`${task}\nenvs:\n`);
    expect((await onServer(reply!.task)).messages.at(-1)).toMatch(MARKED);
  });

  test("a rewrite takes it along, and comes to the same at every further call", async () => {
    const rewritten = await sent({ cards: "A100-80GB: 8" }, "--mutate");
    expect(rewritten).toMatch(LINE);
    expect(rewritten).not.toContain("A100-80GB: 8");
    expect(rewritten).toContain("NEURARCH_REWRITTEN");
    expect((await ask(rewritten, { flags: ["--mutate"] })).reply).toBeNull();
    const again = await onServer(rewritten, "--mutate");
    expect([again.reply, again.decision]).toEqual([null, "allow"]);
  });

  test("what an earlier call sent is replaced when the file is another one now", async () => {
    const before = await sent();
    const file = join(project, "m/config.json");
    writeFileSync(file, JSON.stringify({ ...CONFIG, num_hidden_layers: 6 }));
    const now = (await ask(before)).reply!.task;
    writeFileSync(file, JSON.stringify(CONFIG));
    expect(now.match(new RegExp(LINE, "gm"))?.length).toBe(1);
    expect(now.replace(LINE, "")).toBe(before.replace(LINE, ""));
    expect(LINE.exec(now)![1]).not.toBe(LINE.exec(before)![1]!);
  });
});

describe("at the server's side", () => {
  test("without it the task is not judged", async () => {
    const { decision, messages } = await onServer(taskOf());
    expect(decision).toBe("unjudged");
    expect(messages.join()).toContain("/m does not exist");
  });

  for (const [what, asked] of [
    ["a fit", { cards: "A10G: 1" }],
    ["an over-request", { cards: "A100-80GB: 8" }],
    ["a pool", { cards: "A10G: 2" }],
    ["cards that share the state", { cards: "A10G: 4", envs: "  NEURARCH_PARALLEL: zero2\n" }],
    [
      "a recipe",
      { envs: "  NEURARCH_PRECISION: bf16\n  NEURARCH_ATTENTION: eager\n  NEURARCH_SEQ_LEN: '512'\n" },
    ],
    ["a graph", { model: `./${GRAPH}`, cards: "L4: 1" }],
  ] as const) {
    test(`${what} is told as the client was, and marked`, async () => {
      const client = await ask(taskOf(asked));
      const server = await onServer(client.reply!.task);
      expect(server.decision).toBe(client.decision);
      expect(server.messages.slice(0, -1)).toEqual([...client.messages]);
      expect(server.messages.at(-1)).toMatch(MARKED);
      expect(server.reply).toBeNull();
    });
  }

  test("a refusal says whose figure it is", async () => {
    const task = (await sent()).replace("NEURARCH_BATCH: '1'", "NEURARCH_BATCH: '64'");
    const { decision, messages } = await onServer(task);
    expect(decision).toBe("refuse");
    expect(messages[0]).toContain(
      "Sized by the client, whose word it is: the model cannot be read here; nothing was trained.",
    );
    expect(messages.at(-1)).toMatch(MARKED);
  });

  const UNUSED = "NEURARCH_SIZING_FACTS, the size that the client sent, is not used:";
  for (const [what, change, flags, said] of [
    [
      "of another length",
      (task) => `${task}`.replace("  NEURARCH_BATCH", "  NEURARCH_SEQ_LEN: '128'\n  NEURARCH_BATCH"),
      [],
      `${UNUSED} it is of 2048 tokens a sample, and the job is not.`,
    ],
    [
      "of another model",
      (task) => task.replace("NEURARCH_MODEL: './m'", "NEURARCH_MODEL: './n'"),
      [],
      `${UNUSED} it is of another model.`,
    ],
    [
      "of another recipe",
      (task) => task.replace("  NEURARCH_BATCH", "  NEURARCH_OPTIMIZER: sgd\n  NEURARCH_BATCH"),
      [],
      `${UNUSED} it is of optimizer=adamw, and optimizer=sgd is judged here; write NEURARCH_OPTIMIZER into the task.`,
    ],
    [
      "that is none",
      (task) => task.replace(LINE, "  NEURARCH_SIZING_FACTS: planted\n"),
      [],
      `${UNUSED} it is not the JSON of a sizing.`,
    ],
    [
      "changed by hand",
      (task) => task.replace('"state":', '"state":1'),
      [],
      `${UNUSED} its parts do not belong together.`,
    ],
    [
      "of a later version",
      (task) => task.replace('"v":1', '"v":9'),
      [],
      `${UNUSED} it is of another version than this program's.`,
    ],
    [
      "that the site forbids",
      (task) => task,
      ["--no-client-sizing"],
      "the size that the client sent is not used: this site sets client_sizing = false.",
    ],
  ] as readonly (readonly [string, (task: string) => string, readonly string[], string])[]) {
    test(`a size ${what} is said and ignored`, async () => {
      const task = change(await sent());
      const open = await onServer(task, ...flags);
      expect(open.decision).toBe("unjudged");
      expect(open.messages.at(-1)).toBe(`Neurarch: ${said}`);
      expect(open.messages.join()).not.toContain("planted");
      expect((await onServer(task, "--fail-closed", ...flags)).decision).toBe("refuse");
    });
  }

  test("a setting of the site's file forbids it, and a flag lies over that", async () => {
    const file = join(folder, "gate.toml");
    writeFileSync(file, "client_sizing = false\n");
    const task = await sent();
    expect((await onServer(task, "--config", file)).decision).toBe("unjudged");
    expect((await onServer(task, "--config", file, "--client-sizing")).decision).not.toBe("unjudged");
  });

  test("a site's own defaults are said where the client does not know them", async () => {
    const file = join(folder, "defaults.toml");
    writeFileSync(file, '[defaults]\nprecision = "bf16"\n');
    const { messages } = await onServer(await sent(), "--config", file);
    expect(messages.at(-1)).toBe(
      `Neurarch: ${UNUSED} it is of precision=amp-bf16, and precision=bf16 is judged here; write NEURARCH_PRECISION into the task.`,
    );
    const said = await sent({ envs: "  NEURARCH_PRECISION: bf16\n" });
    expect((await onServer(said, "--config", file)).messages.at(-1)).toMatch(MARKED);
  });

  test("a model that is found here is judged by what is found, and that it is another one is said", async () => {
    const task = await sent({ model: "gpt2" });
    const own = await onServer(taskOf({ model: "gpt2" }));
    const { decision, messages } = await onServer(task);
    expect(decision).toBe(own.decision);
    expect(messages.slice(0, -1)).toEqual([...own.messages]);
    expect(messages.at(-1)).toMatch(
      /^Neurarch: sized as gpt2 is found here \(peak [\d.]+ GB a device at its batch\), not by what the client sent \([\d.]+ GB\): name its file by a path that begins with \.\/ or \/\.$/,
    );
  });

  test("a size made up loosens no cap of cost", async () => {
    const task = await sent({ cards: "A10G: 1", envs: "  NEURARCH_HOURS: '1000'\n" });
    const { decision, messages } = await onServer(task, "--max-cost-usd", "5");
    expect(decision).toBe("refuse");
    expect(messages[0]).toContain("over the cap");
    expect(messages.at(-1)).toMatch(MARKED);
  });

  test("the ledger has whose word it is", async () => {
    const ledger = join(folder, "ledger");
    mkdirSync(ledger);
    await onServer(await sent(), "--ledger", ledger);
    await onServer(taskOf({ model: "gpt2" }), "--ledger", ledger);
    const lines = readdirSync(ledger)
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => readFileSync(join(ledger, name), "utf8").trim().split("\n"))
      .map((line) => JSON.parse(line));
    expect(lines.map(({ source, model }) => [source, model])).toEqual([
      ["client", "./m"],
      ["builtin", "gpt2"],
    ]);
    expect(lines[0].structure).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe("elsewhere", () => {
  test("a task file that has it is judged by it where the model is not there", async () => {
    const [, text] = LINE.exec(await sent())!;
    const file = join(folder, "task.yaml");
    writeFileSync(
      file,
      `resources: {accelerators: A10G:1}\nenvs:\n  NEURARCH_MODEL: ./m\n  NEURARCH_BATCH: "1"\n  NEURARCH_SIZING_FACTS: '${text}'\nrun: x\n`,
    );
    const args = ["judge", "--skypilot", file, "--json"];
    const there = await run(args, { cwd: "/" });
    expect([there.exit, JSON.parse(there.out).sizing.source]).toEqual([0, "client"]);
    expect(JSON.parse(there.out).messages.at(-1)).toMatch(MARKED);
    const here = await run(args, { cwd: project });
    expect([here.exit, JSON.parse(here.out).sizing.source]).toEqual([0, "builtin"]);
    const forbidden = await run([...args, "--no-client-sizing"], { cwd: "/" });
    expect(forbidden.exit).toBe(3);
    const people = await run(["judge", "--skypilot", file], { cwd: "/" });
    expect(people.out).toContain("judged by the size that the client sent");
  });

  test("REST: the server judges by it, unless its environment forbids it", async () => {
    const task = await sent();
    const body = JSON.stringify(
      JSON.stringify({
        task,
        skypilot_config: "{}\n",
        request_name: "launch",
        at_client_side: false,
        user: "",
      }),
    );
    for (const [value, decision, last] of [
      ["1", "warn", MARKED],
      ["0", "unjudged", /client_sizing = false/],
    ] as const) {
      const server = await serve([], {
        HOME: folder,
        XDG_CACHE_HOME: folder,
        NEURARCH_POLICY_CLIENT_SIZING: value,
      });
      const reply = await fetch(server.address, { method: "POST", body });
      // The request goes on byte for byte.
      expect([reply.status, JSON.parse(JSON.parse(await reply.text())).task]).toEqual([200, task]);
      await server.stop();
      const line = JSON.parse(
        server
          .log()
          .split("\n")
          .find((one) => one.includes('"route":"policy"'))!,
      );
      expect(line.decision).toBe(decision);
      expect(line.messages.at(-1)).toMatch(last);
    }
  });
});
