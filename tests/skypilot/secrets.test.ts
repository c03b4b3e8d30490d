import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../acceptance/run.ts";
import { type Server, serve } from "../serve/server.ts";
import { PLANTED, taskFile } from "./tasks.ts";

/** Values in every part of a task that nobody may tell on, through every decision and every way of being asked. */
const folder = mkdtempSync(join(tmpdir(), "neurarch-secrets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SURROUNDINGS = `file_mounts: {/data: ~/${PLANTED[2]}}
setup: echo ${PLANTED[3]}
workdir: /home/${PLANTED[4]}
_user_specified_yaml: "secrets: {TOKEN: ${PLANTED[0]}}"
`;
const asked = (accelerators: string, envs: Readonly<Record<string, string>> = {}) =>
  `${taskFile(accelerators, { envs })}${SURROUNDINGS}`;

/** Tasks by what becomes of them, with `--mutate`. */
const TASKS: Readonly<Record<string, string>> = {
  allow: asked("{L4: 1}"),
  warn: `${asked("{H200: 1}")}num_nodes: 2\n`,
  refuse: asked("{T4: 1}"),
  rewrite: asked("{A100-80GB: 8}"),
  unjudged: asked("{L4: 1}", { NEURARCH_MODEL: "nobody/nothing" }),
  unreadable: asked("{L4: 1}", { NEURARCH_BATCH: "eight" }),
  "from the hub": asked("{H200: 8}", { NEURARCH_MODEL: "org/small" }),
  "no model": asked("{L4: 1}", { NEURARCH_MODEL: "" }),
  "a field that is none": `${asked("{L4: 1}")}num_nodes: none\n`,
  "secrets that are none": `secrets: ${PLANTED[0]}\nresources: {accelerators: {L4: 1}}\nenvs: {NEURARCH_MODEL: gpt2}\n`,
  "a list of secrets": `secrets: [${PLANTED[0]}]\nresources: {accelerators: {L4: 1}}\nenvs: {NEURARCH_MODEL: gpt2}\n`,
  "a tagged secret": `secrets: {TOKEN: !!int ${PLANTED[0]}}\nresources: {accelerators: {L4: 1}}\n`,
  "a tagged variable": `envs: {TOKEN: !${PLANTED[1]} x}\nresources: {accelerators: {L4: 1}}\n`,
  "an alias that is none": `secrets: {TOKEN: *${PLANTED[0]}}\nresources: {accelerators: {L4: 1}}\n`,
  "a mount that is none": `file_mounts: {/data: [${PLANTED[2]}]}\nresources: {accelerators: {L4: 1}}\n`,
  "variables that are none": `envs: ${PLANTED[1]}\nresources: {accelerators: {L4: 1}}\n`,
  "text behind a text": `secrets: {TOKEN: "a" ${PLANTED[0]}}\n`,
  "text behind a block": `secrets:\n  TOKEN: "a"\n ${PLANTED[0]}\n`,
  "a word at the end": `run: x\n${PLANTED[0]}\n`,
  "a mapping in a line": `secrets: TOKEN: ${PLANTED[0]}: x\n`,
  "a tag of its own": `secrets: {TOKEN: !${PLANTED[0]}}\nresources: {accelerators: {L4: 1}}\n`,
  "an anchor twice": `secrets: {A: &${PLANTED[0]} x, B: &${PLANTED[0]} y}\n`,
  "a directive": `%${PLANTED[0]} x\n---\nrun: x\n`,
  "a script that is none": `setup: [${PLANTED[3]}]\nrun: {a: ${PLANTED[3]}}\n`,
  "a folder that is none": `workdir: [/home/${PLANTED[4]}]\nrun: x\n`,
  "a login that is none": `resources: {_docker_login_config: ${PLANTED[5]}}\nrun: x\n`,
  "no YAML": `secrets: {TOKEN: "${PLANTED[0]}\n`,
};

const requestOf = (task: string) => ({
  task,
  skypilot_config: `docker: {password: ${PLANTED[5]}}\n`,
  request_name: "launch",
  request_options: null,
  at_client_side: false,
  user: "id: abc\nname: ana\n",
});

const answers: string[] = [];
const decisions = new Set<string>();
let server: Server;
let metrics: string;

beforeAll(async () => {
  const hub = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      request.url.includes("org/small")
        ? new Response(readFileSync(join(import.meta.dir, "../fixtures/skypilot/small-config.json")))
        : new Response("", { status: 404 }),
  });
  for (const name of ["home", "cache", "ledger", "class"]) mkdirSync(join(folder, name));
  const env = {
    HOME: join(folder, "home"),
    XDG_CACHE_HOME: join(folder, "cache"),
    HF_ENDPOINT: `http://127.0.0.1:${hub.port}`,
    HF_HUB_OFFLINE: "0",
  };
  server = await serve(["--mutate", "--ledger", join(folder, "ledger")], env);
  const post = async (path: string, body: string) => {
    const reply = await fetch(`${server.address}${path}`, { method: "POST", body });
    const text = await reply.text();
    // An admitted request goes back with all that it holds; what is told is in the others.
    if (reply.status !== 200 || path !== "/policy") answers.push(text);
  };
  for (const task of Object.values(TASKS)) {
    const body = JSON.stringify(requestOf(task));
    await post("/policy", JSON.stringify(body));
    await post("/policy", body.slice(0, -5));
    await post("/v1/judge", JSON.stringify({ skypilot: task }));
    await post("/v1/judge", task);
    const { out, err } = await run(
      ["judge", "--admin-policy", "--mutate", "--ledger", join(folder, "class")],
      { env, stdin: body },
    );
    const { decision, messages } = JSON.parse(out);
    decisions.add(decision);
    answers.push(JSON.stringify(messages), err);
    const file = await run(["judge", "--skypilot", "-", "--json"], { env, stdin: task });
    answers.push(file.out, file.err);
  }
  metrics = await (await fetch(`${server.address}/metrics`)).text();
  await server.stop();
  hub.stop(true);
}, 60_000);

function filesBelow(name: string): string[] {
  return readdirSync(join(folder, name), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => `${one.name}\n${readFileSync(join(one.parentPath, one.name), "latin1")}`);
}

test("every decision was made", () => {
  expect([...decisions].sort()).toEqual(["allow", "refuse", "rewrite", "unjudged", "warn"]);
});

const PLACES: readonly (readonly [name: string, texts: () => readonly string[], least: number])[] = [
  ["what a user is told", () => answers, 20],
  ["the server's log", () => server.log().split("\n"), 20],
  ["the metrics", () => [metrics], 1],
  ["the server's ledger", () => filesBelow("ledger"), 1],
  ["the ledger of the class", () => filesBelow("class"), 1],
  ["the caches", () => filesBelow("cache"), 1],
];
for (const [name, texts, least] of PLACES)
  test(`nothing of a task is in ${name}`, () => {
    expect(texts().length).toBeGreaterThanOrEqual(least);
    for (const planted of PLANTED) expect(texts().filter((text) => text.includes(planted))).toEqual([]);
  });
