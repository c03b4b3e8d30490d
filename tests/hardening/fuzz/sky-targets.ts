import { readAccelerator } from "../../../src/request/skypilot.ts";
import { answerJudge } from "../../../src/serve/judge.ts";
import { answerPolicy } from "../../../src/serve/policy.ts";
import { readDotenv } from "../../../src/skypilot/dotenv.ts";
import { readJobsQueue } from "../../../src/skypilot/jobs-queue.ts";
import { Unreadable } from "../../../src/skypilot/problem.ts";
import { rewriteTask } from "../../../src/skypilot/rewrite.ts";
import { plainScalar, ScalarError } from "../../../src/skypilot/scalar.ts";
import { readRequestTask, readTasks } from "../../../src/skypilot/task.ts";
import { readYaml } from "../../../src/skypilot/yaml.ts";
import { SCRIPTS, TASKS } from "./corpus.ts";
import { mutated, ODD, type Random } from "./random.ts";
import { policyOf, SITES, size } from "./settings.ts";
import { hold, isOneLine, type Target, target } from "./target.ts";

const PIECES: readonly string[] = [
  ..."abc :-[]{}&*!|>'\"#%@`,?\n\t~<=.0189".split(""),
  "resources:",
  "\n  ",
  "\n    ",
  "accelerators: ",
  "any_of:\n  - ",
  "ordered:\n  - ",
  "envs: ",
  "secrets: ",
  "<<: *a",
  "&a ",
  "*a ",
  "A100:8",
  "{H100: 8, A100: 4}",
  "80GB+",
  "H100-80GB:0.5",
  "tpu-v5e-8",
  "---\n",
  "...\n",
  "!!str ",
  "!!binary ",
  "!!set ",
  "!x ",
  "? ",
  "num_nodes: ",
  "labels: ",
  "neurarch-model: gpt2",
  "NEURARCH_MODEL: Qwen/Qwen3-0.6B\n",
  "NEURARCH_BATCH: 8",
  "use_spot: true",
  "instance_type: x",
  "infra: lambda/us",
  "workdir: /tmp",
  "|\n  x",
  ">-\n",
  "'it''s'",
  '"\\u001b[31m"',
  "\\x41",
  "null",
  "1:30",
  "0o17",
  "1_000",
  "2024-01-01",
];

const task = (random: Random): string =>
  random.once(4) ? random.soup(PIECES, 60) : mutated(random, random.of(TASKS), PIECES);

const ACCELERATORS = [
  "H100",
  "A100",
  "A100-80GB",
  "L4",
  "T4",
  "tpu-v5e-8",
  ":",
  "8",
  "0.5",
  "{",
  "}",
  "[",
  "]",
  ",",
  "'",
  "80GB",
  "+",
  "MB",
  ".",
  "-",
  " ",
  "1e3",
  "nan",
];

function requestBody(random: Random): string {
  const request: Record<string, unknown> = {
    task: task(random),
    skypilot_config: "admin_policy: http://127.0.0.1/\n",
    request_name: random.of([
      "launch",
      "validate",
      "exec",
      "jobs.launch",
      "serve.up",
      "optimize",
      "launch_controller",
    ]),
    request_options: { cluster_name: "c", dryrun: true },
    at_client_side: random.once(2),
    user: "id: abc\nname: ada\n",
  };
  if (random.once(10))
    request[random.of(Object.keys(request))] = random.of<unknown>([null, 1, "", [], {}, ...ODD]);
  const once = JSON.stringify(request);
  const body = random.once(3) ? once : JSON.stringify(once);
  return random.once(10) ? mutated(random, body, PIECES) : body;
}

const VALUE = "$" + "{A}-$" + "{NOPE:-x}";
const DOTENV = `A="x\\ny"\nB='it\\'s'\nC=a b #c\nexport D=5\nE=${VALUE}\nbroken\n`;

const clean = (message: string) =>
  hold(isOneLine(message), `a message of more than one line: ${JSON.stringify(message)}`);

export const SKY_TARGETS: readonly Target[] = [
  target({
    name: "sky-yaml",
    share: 4,
    input: task,
    check(text) {
      for (const strict of [true, false]) {
        try {
          readYaml(text, strict);
        } catch (error) {
          if (!(error instanceof Unreadable)) throw error;
        }
      }
    },
  }),
  target({
    name: "sky-task",
    input: task,
    check(text) {
      for (const read of [readTasks(text), readRequestTask(text)]) if (!read.ok) clean(read.error.message);
    },
  }),
  target({
    name: "sky-accelerators",
    input: (random) => random.soup(ACCELERATORS, 8),
    check(text) {
      readAccelerator(text);
      // A whole task around it costs twenty times as much.
      if (text.length % 4 !== 0) return;
      const read = readTasks(`resources:\n  accelerators: ${text}\nenvs: {NEURARCH_MODEL: gpt2}\n`);
      if (!read.ok) return clean(read.error.message);
      for (const { candidates } of read.value.tasks) hold(candidates.length > 0, "a task without candidates");
    },
  }),
  target({
    name: "sky-scalars",
    input: (random) =>
      random.soup(
        [
          ..."0123456789.+-_:eExXoObB~ \tnNyYaAfF",
          "null",
          "true",
          "off",
          ".inf",
          ".nan",
          "2001-12-14t21:59:43.10-05:00",
        ],
        10,
      ),
    check(text) {
      try {
        plainScalar(text);
      } catch (error) {
        if (!(error instanceof ScalarError)) throw error;
      }
    },
  }),
  target({
    name: "sky-dotenv",
    input: (random) =>
      mutated(random, DOTENV, ["$" + "{A}", "'", '"', "\\", "=", "\n", "#", "export ", ...ODD]),
    check(text) {
      readDotenv(text, { A: "1" });
      if (text.length % 4 !== 0) return;
      const read = readTasks("envs: {B: 1}\n", { envFiles: [text], environment: { A: "1" } });
      if (!read.ok) clean(read.error.message);
    },
  }),
  target({
    name: "sky-rewrite",
    share: 4,
    input: (random) => ({
      text: task(random),
      drop: random.once(3),
      to: random.of(["L4", "H100", "A100-80GB"]),
      count: random.int(8) + 1,
    }),
    check({ text, drop, to, count }) {
      const read = readTasks(text);
      if (!read.ok || read.value.tasks.length === 0) return;
      const many = read.value.tasks[0]!.candidates.length;
      const change =
        drop && many > 1
          ? { drop: [0], replace: [] }
          : { drop: [], replace: [{ candidate: many - 1, accelerator: to, count }] };
      const once = rewriteTask(text, 0, change);
      if (!once.ok) return clean(once.error.message);
      const again = readTasks(once.value);
      hold(again.ok, `the rewritten task cannot be read: ${JSON.stringify(once.value)}`);
      if (!again.ok || drop) return;
      const asked = again.value.tasks[0]!.candidates.map(
        ({ accelerator }) => `${accelerator?.name}:${accelerator?.count}`,
      );
      hold(
        asked.includes(`${to}:${count}`),
        `the rewritten task asks for ${asked}: ${JSON.stringify(once.value)}`,
      );
      hold(
        JSON.stringify(again.value.tasks[0]!.envs) === JSON.stringify(read.value.tasks[0]!.envs),
        "a rewrite changed the variables",
      );
    },
  }),
  target({
    name: "policy-request",
    share: 4,
    input: (random) => ({ body: requestBody(random), site: random.int(SITES.length) }),
    async check({ body, site }) {
      const settings = SITES[site]!;
      const judge = { settings, size, policyOf };
      const answered = await answerPolicy(body, judge);
      const { status, body: text } = answered.reply;
      hold(status === 200 || status === 400, `status ${status}`);
      for (const message of answered.messages) clean(message);
      if (answered.decision !== "rewrite") return;
      // A rewrite is the end of it: asked again, nothing more is changed, and nothing is refused.
      const first = JSON.parse(text) as unknown;
      const reply = (typeof first === "string" ? JSON.parse(first) : first) as { task: string };
      const once = JSON.parse(body) as unknown;
      const request = (typeof once === "string" ? JSON.parse(once) : once) as Record<string, unknown>;
      if (request.request_name === "exec") return;
      const again = await answerPolicy(JSON.stringify({ ...request, task: reply.task }), judge);
      hold(
        again.decision !== "rewrite" && again.reply.status === 200,
        `a rewrite that is ${again.decision} again: ${JSON.stringify(reply.task)}`,
      );
    },
  }),
  target({
    name: "judge-request",
    share: 4,
    input: (random) => {
      const body: Record<string, unknown> = random.of([
        () => ({
          model: "gpt2",
          batch: random.int(4),
          request: random.soup(ACCELERATORS, 4),
          nodes: random.of([1, "2", "0", "x"]),
        }),
        () => ({ skypilot: task(random), "seq-len": 512 }),
        () => ({
          slurm: mutated(random, random.of(SCRIPTS), PIECES),
          precision: random.of(["bf16", "fp32", "x"]),
        }),
      ])();
      const text = JSON.stringify(body);
      return random.once(5) ? mutated(random, text, ['"', "{", "}", ":", ",", "model", "[", ...ODD]) : text;
    },
    async check(body) {
      const { reply } = await answerJudge(body, { settings: SITES[0]!, size, policyOf });
      hold(
        reply.status === 200 || reply.status === 400,
        `status ${reply.status}: ${reply.body.slice(0, 500)}`,
      );
      JSON.parse(reply.body);
    },
  }),
  target({
    name: "sky-jobs-queue",
    input: (random) =>
      mutated(
        random,
        random.of([
          '[{"job_id": 1, "job_name": "t", "status": "SUCCEEDED", "submitted_at": 1700000000.5, "resources": "1x(H100:8)", "user_name": "ada"}]',
          "ID  TASK  NAME  REQUESTED  SUBMITTED  STATUS\n1   -     t     1x[H100:8] 1 hr ago   FAILED\n",
        ]),
        ['"', "[", "{", "null", "-1", "1e400", ...ODD],
      ),
    check(text) {
      readJobsQueue(text);
    },
  }),
];
