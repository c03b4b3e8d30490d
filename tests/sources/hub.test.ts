import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { fetchHubConfig } from "../../src/sources/hub.ts";
import { COMMIT, given, type Hub, hub, moved, status } from "./hub-servers.ts";
import { config, freshFolder, lay } from "./support.ts";

const TOKEN = "hf_aVerySecretTokenOfTheTest";
const NAME = "org/model";
const CONFIG = config(100);

type Env = Record<string, string>;

function fresh(server: Hub | string, more: Env = {}): Env {
  const HF_ENDPOINT = typeof server === "string" ? server : server.url;
  return { HF_ENDPOINT, XDG_CACHE_HOME: freshFolder(), HF_HOME: "/nonexistent", ...more };
}

async function fetched(env: Env, id = NAME, timeoutMs = 5000) {
  const answer = await fetchHubConfig(id, { env, timeoutMs });
  return answer.ok ? answer.value : answer.error;
}

const reply = (make: () => Response) => hub(make);
const INSTEAD = "name a path to its config.json, or put the model into the Hugging Face cache";

describe("what is asked", () => {
  test("one GET of the config at main, at the address without its slash", async () => {
    for (const slash of ["", "/", "//"]) {
      const server = reply(() => given(CONFIG));
      const answer = await fetched(fresh(`${server.url}${slash}`));
      expect(answer).toEqual({ text: CONFIG, revision: COMMIT, adapter: false });
      expect(server.seen.map(({ path }) => path)).toEqual(["/org/model/resolve/main/config.json"]);
      expect(server.seen[0]!.authorization).toBeNull();
    }
  });
  test("below the path of a mirror, a model without an organisation too", async () => {
    const server = reply(() => given(CONFIG));
    await fetched(fresh(`${server.url}/api/hf/`), "gpt3");
    expect(server.seen.map(({ path }) => path)).toEqual(["/api/hf/gpt3/resolve/main/config.json"]);
  });
  test("JSON with Python's NaN is a config; a byte-order mark is none of it", async () => {
    const server = reply(() => given(`\ufeff{"a": NaN, "hidden_size": 1}`));
    expect(await fetched(fresh(server))).toMatchObject({ revision: COMMIT });
  });
  test("a commit that is no name is no revision", async () => {
    const server = reply(() => given(CONFIG, { "x-repo-commit": "../../x y" }));
    expect(await fetched(fresh(server))).toMatchObject({ revision: null });
  });
});

describe("nothing is asked", () => {
  const offline: [string, Env, string][] = [
    ["HF_HUB_OFFLINE=1", { HF_HUB_OFFLINE: "1" }, "HF_HUB_OFFLINE"],
    ["HF_HUB_OFFLINE=true", { HF_HUB_OFFLINE: "true" }, "HF_HUB_OFFLINE"],
    ["HF_HUB_OFFLINE=Yes", { HF_HUB_OFFLINE: "Yes" }, "HF_HUB_OFFLINE"],
    ["TRANSFORMERS_OFFLINE=ON", { TRANSFORMERS_OFFLINE: "ON" }, "TRANSFORMERS_OFFLINE"],
    ["TRANSFORMERS_OFFLINE=1", { HF_HUB_OFFLINE: "0", TRANSFORMERS_OFFLINE: "1" }, "TRANSFORMERS_OFFLINE"],
  ];
  test.each(offline)("%s", async (_, env, name) => {
    const server = reply(() => given(CONFIG));
    expect(await fetched(fresh(server, env))).toEqual({
      reason: "model-not-found",
      message: `No config was found for org/model: the hub is not asked while ${name} is set.`,
      notAsked: `the hub is not asked while ${name} is set`,
    });
    expect(server.seen).toHaveLength(0);
  });
  test.each(["0", "", "off", "no", "2"])("but with HF_HUB_OFFLINE=%s it is", async (value) => {
    const server = reply(() => given(CONFIG));
    expect(await fetched(fresh(server, { HF_HUB_OFFLINE: value }))).toMatchObject({ text: CONFIG });
  });
  test.each([
    "a--b",
    "org/a..b",
    "org/model.git",
    "org/model-",
    `org/${"x".repeat(100)}`,
    "org/../x",
    "a/b?c",
  ])("the hub has no %s", async (id) => {
    const server = reply(() => given(CONFIG));
    expect(await fetched(fresh(server), id)).toMatchObject({ reason: "model-not-found" });
    expect(server.seen).toHaveLength(0);
  });
  test.each(["not an address", "ftp://host", "file:///etc/passwd", "mirror.example"])(
    "HF_ENDPOINT=%s is none",
    async (address) => {
      expect(await fetched(fresh(address))).toEqual({
        reason: "model-unreachable",
        message: "HF_ENDPOINT is not an address; write https:// and the hub's host, or unset it.",
      });
    },
  );
});

describe("the token", () => {
  const home = freshFolder();
  lay(home, {
    token: "hf_home\n",
    "elsewhere/t": "hf_path\r\n",
    "empty/token": " \n",
    "bad/token": "two words",
  });
  const rows: [string, Env, string | null][] = [
    ["HF_TOKEN first", { HF_TOKEN: "hf_a", HUGGING_FACE_HUB_TOKEN: "hf_b", HF_HOME: home }, "Bearer hf_a"],
    ["its older name", { HUGGING_FACE_HUB_TOKEN: "hf_b", HF_HOME: home }, "Bearer hf_b"],
    ["HF_TOKEN_PATH", { HF_TOKEN_PATH: join(home, "elsewhere/t"), HF_HOME: home }, "Bearer hf_path"],
    ["the file in HF_HOME", { HF_HOME: home }, "Bearer hf_home"],
    ["an empty variable is none", { HF_TOKEN: " ", HF_HOME: home }, "Bearer hf_home"],
    ["blanks around it", { HF_TOKEN: " hf_a\n" }, "Bearer hf_a"],
    ["an empty file is none", { HF_HOME: join(home, "empty") }, null],
    ["what cannot stand in a header is none", { HF_HOME: join(home, "bad"), HF_TOKEN: "hf_\u00e9" }, null],
    ["none at all", {}, null],
    ["forbidden unless asked for", { HF_TOKEN: "hf_a", HF_HUB_DISABLE_IMPLICIT_TOKEN: "1" }, null],
    ["not through a proxy in the clear", { HF_TOKEN: "hf_a", http_proxy: "http://127.0.0.1:1" }, null],
  ];
  test.each(rows)("%s", async (_, env, authorization) => {
    const server = reply(() => given(CONFIG));
    expect(await fetched(fresh(server, env))).toMatchObject({ text: CONFIG });
    expect(server.seen.map((one) => one.authorization)).toEqual([authorization]);
  });
  test("does not go over HTTP to another machine", async () => {
    const server = hub(() => given(CONFIG), { host: "0.0.0.0" });
    const env = fresh(`http://0.0.0.0:${server.port}`, { HF_TOKEN: TOKEN });
    expect(await fetched(env)).toMatchObject({ text: CONFIG });
    expect(server.seen.map((one) => one.authorization)).toEqual([null]);
  });
  test("the address's own user and password stand in for one, and are not shown", async () => {
    const server = reply(() => status(403));
    const env = fresh(`http://us%20er:pass-word@127.0.0.1:${server.port}`);
    const answer = JSON.stringify(await fetched(env));
    expect(server.seen[0]!.authorization).toBe(`Basic ${btoa("us er:pass-word")}`);
    expect(answer).not.toContain("pass-word");
  });
});

describe("redirects", () => {
  test("on the same host keep the token and the commit of the first answer", async () => {
    const server = hub((path) =>
      path.startsWith("/api/") ? given(CONFIG, { "x-repo-commit": "other" }) : moved("/api/resolve-cache/x"),
    );
    expect(await fetched(fresh(server, { HF_TOKEN: TOKEN }))).toMatchObject({ revision: COMMIT });
    expect(server.seen.map((one) => one.authorization)).toEqual([`Bearer ${TOKEN}`, `Bearer ${TOKEN}`]);
  });
  test("to another host lose the token, and do not win it back", async () => {
    const first: Hub = hub((path) => (path === "/again" ? given(CONFIG) : moved(`${second.url}/store`)));
    const second: Hub = hub(() => moved(`${first.url}/again`, 302));
    expect(await fetched(fresh(first, { HF_TOKEN: TOKEN }))).toMatchObject({
      text: CONFIG,
      revision: COMMIT,
    });
    expect(first.seen.map((one) => one.authorization)).toEqual([`Bearer ${TOKEN}`, null]);
    expect(second.seen).toHaveLength(1);
    expect(JSON.stringify(second.seen)).not.toContain(TOKEN);
  });
  test("without end are ended", async () => {
    const server = reply(() => moved("/round"));
    expect(await fetched(fresh(server))).toMatchObject({ reason: "model-unreachable" });
    expect(server.seen).toHaveLength(6);
  });
  test.each(["file:///etc/passwd", "ftp://127.0.0.1/x", "http://"])("to %s are not followed", async (to) => {
    const server = reply(() => moved(to));
    expect(await fetched(fresh(server))).toEqual({
      reason: "model-unreachable",
      message: `The config of org/model could not be fetched: 127.0.0.1:${server.port} redirects to an address that is not safe to follow; check HF_ENDPOINT, or ${INSTEAD}.`,
    });
  });
});

describe("a status", () => {
  const rows: [string, () => Response, Env, string, string][] = [
    [
      "401 without a token",
      () => status(401),
      {},
      "model-not-found",
      "HOST does not tell whether it is missing, private or gated; check the name, set HF_TOKEN if it is yours or gated, or ",
    ],
    [
      "401 with one",
      () => status(401),
      { HF_TOKEN: TOKEN },
      "model-unreachable",
      "HOST does not accept the token of HF_TOKEN; renew it, or unset it for a public model.",
    ],
    [
      "401 that says gated",
      () => status(401, "GatedRepo"),
      {},
      "model-unreachable",
      "it is gated: accept its terms on HOST and set HF_TOKEN",
    ],
    [
      "403",
      () => status(403, "GatedRepo"),
      { HF_TOKEN: TOKEN },
      "model-unreachable",
      "HOST does not let the token of HF_TOKEN read it; accept its terms there, or use a token with the right to read it.",
    ],
    [
      "404 of a model",
      () => status(404, "RepoNotFound"),
      { HF_TOKEN: TOKEN },
      "model-not-found",
      "HOST has no org/model, or not for the token in use",
    ],
    [
      "404 of a config",
      () => status(404, "EntryNotFound"),
      {},
      "model-not-found",
      "org/model has no config.json on HOST (a GGUF or a bare weights repository?)",
    ],
    [
      "404 without a word",
      () => status(404),
      {},
      "model-not-found",
      "HOST has no config.json of org/model; check the name",
    ],
    ["410", () => status(410), {}, "model-not-found", "HOST answered 410"],
    ["429", () => status(429), {}, "model-unreachable", "too many requests from here (429); set HF_TOKEN"],
    ["500", () => status(500), {}, "model-unreachable", "HOST is out of order (500)"],
    ["503", () => status(503), {}, "model-unreachable", "HOST is out of order (503)"],
    ["204", () => new Response(null, { status: 204 }), {}, "model-not-found", "HOST answered 204"],
  ];
  test.each(rows)("%s", async (_, make, env, reason, words) => {
    const server = reply(make);
    const answer = await fetched(fresh(server, env));
    expect(answer).toMatchObject({ reason });
    const { message } = answer as { message: string };
    expect(message).toContain(words.replaceAll("HOST", `127.0.0.1:${server.port}`));
    expect(message).toMatch(/^[^\p{C}]+\.$/u);
    expect(message).not.toContain(TOKEN);
  });
});

describe("an answer that is no config", () => {
  const bomb = gzipSync(new Uint8Array(50_000_000).fill(32));
  const rows: [string, () => Response, string][] = [
    [
      "a sign-in page",
      () => given("<html>sign in</html>", { "content-type": "text/html" }),
      "something that is not JSON",
    ],
    ["null", () => given("null"), "something that is not JSON"],
    ["more than 4 MB", () => given(`{"a": "${"x".repeat(5_000_000)}"}`), "more than a config.json holds"],
    [
      "4 MB that come to 50",
      () => given(bomb as unknown as string, { "content-encoding": "gzip" }),
      "more than a config.json holds",
    ],
    ["nothing", () => given(""), "something that is not JSON"],
  ];
  test.each(rows)("%s", async (_, make, words) => {
    const server = reply(make);
    expect(await fetched(fresh(server))).toMatchObject({
      reason: "model-unreachable",
      message: expect.stringContaining(words),
    });
  });
});

describe("no answer", () => {
  test("a closed port answers at once", async () => {
    const startMs = performance.now();
    expect(await fetched(fresh("http://127.0.0.1:1"))).toEqual({
      reason: "model-unreachable",
      message: `The config of org/model could not be fetched: 127.0.0.1:1 refused the connection; set HF_HUB_OFFLINE=1 where it cannot be reached, or ${INSTEAD}.`,
    });
    expect(performance.now() - startMs).toBeLessThan(1000);
  });
  test("a host that is none", async () => {
    const { message } = (await fetched(fresh("https://no-such-host.invalid"))) as { message: string };
    expect(message).toMatch(/no-such-host\.invalid (is not a known host here|did not answer)/);
  });
  test("a certificate that nobody trusts", async () => {
    const server = hub(() => given(CONFIG), { tls: true });
    const { message } = (await fetched(fresh(server, { HF_TOKEN: TOKEN }))) as { message: string };
    expect(message).toContain("shows a certificate that is not trusted here");
    expect(server.seen).toHaveLength(0);
  });
  const slow: [string, () => Response | Promise<Response>][] = [
    ["no answer within the time", () => new Promise(() => undefined)],
    ["a body that drips", () => new Response(dripping(), { headers: { "x-repo-commit": COMMIT } })],
  ];
  test.each(slow)("%s", async (_, make) => {
    const server = hub(make);
    const startMs = performance.now();
    expect(await fetched(fresh(server), NAME, 300)).toMatchObject({
      reason: "model-unreachable",
      message: expect.stringContaining("did not answer within 0.3 s"),
    });
    expect(performance.now() - startMs).toBeLessThan(1500);
  });
  test("redirects share the time", async () => {
    const server = hub(async () => {
      await Bun.sleep(150);
      return moved("/next");
    });
    const startMs = performance.now();
    expect(await fetched(fresh(server), NAME, 400)).toMatchObject({ reason: "model-unreachable" });
    expect(performance.now() - startMs).toBeLessThan(1500);
  });
});

function dripping(): ReadableStream {
  return new ReadableStream({
    async pull(controller) {
      await Bun.sleep(50);
      controller.enqueue(new TextEncoder().encode(" "));
    },
  });
}

describe("an adapter's repository", () => {
  test("is told by its adapter_config.json, with one more request", async () => {
    const adapter = JSON.stringify({ base_model_name_or_path: "org/base" });
    const server = hub((path) =>
      path.endsWith("/adapter_config.json") ? given(adapter) : status(404, "EntryNotFound"),
    );
    expect(await fetched(fresh(server))).toEqual({ text: adapter, revision: COMMIT, adapter: true });
    expect(server.seen.map(({ path }) => path)).toEqual([
      "/org/model/resolve/main/config.json",
      "/org/model/resolve/main/adapter_config.json",
    ]);
  });
  test("is not looked for where the model is not there", async () => {
    const server = reply(() => status(404, "RepoNotFound"));
    await fetched(fresh(server));
    expect(server.seen).toHaveLength(1);
  });
});

describe("what is remembered", () => {
  /** The files of our cache, each made `ageMs` old. */
  function age(env: Env, ageMs: number): void {
    const folder = join(env.XDG_CACHE_HOME!, "neurarch-gate");
    for (const name of readdirSync(folder)) {
      const entry = JSON.parse(readFileSync(join(folder, name), "utf8"));
      writeFileSync(join(folder, name), JSON.stringify({ ...entry, atMs: entry.atMs - ageMs }));
    }
  }

  test("a config, for our eyes only", async () => {
    const server = reply(() => given(CONFIG));
    const env = fresh(server);
    const first = await fetched(env);
    expect(await fetched(env)).toEqual(first);
    expect(server.seen).toHaveLength(1);
    const folder = join(env.XDG_CACHE_HOME!, "neurarch-gate");
    expect(readdirSync(folder)).toHaveLength(1);
    expect(statSync(join(folder, readdirSync(folder)[0]!)).mode & 0o777).toBe(0o600);
  });
  test("per hub: a mirror's config is not the public one's", async () => {
    const one = reply(() => given(CONFIG));
    const other = reply(() => given(config(200)));
    const env = fresh(one);
    await fetched(env);
    expect(await fetched({ ...env, HF_ENDPOINT: other.url })).toMatchObject({ text: config(200) });
  });
  const failures: [string, () => Response][] = [
    ["404", () => status(404, "RepoNotFound")],
    ["500", () => status(500)],
    ["a page", () => given("<html>")],
  ];
  test.each(failures)("a failure, for a minute: %s", async (_, make) => {
    const server = reply(make);
    const env = fresh(server);
    const first = await fetched(env);
    expect(await fetched(env)).toEqual(first);
    expect(server.seen).toHaveLength(1);
    age(env, 59_000);
    await fetched(env);
    expect(server.seen).toHaveLength(1);
    age(env, 1_500);
    await fetched(env);
    expect(server.seen).toHaveLength(2);
  });
  test("not when another token is set", async () => {
    const server = hub((_, seen) => (seen.authorization === "Bearer hf_new" ? given(CONFIG) : status(401)));
    const env = fresh(server, { HF_TOKEN: "hf_old" });
    expect(await fetched(env)).toMatchObject({ reason: "model-unreachable" });
    expect(await fetched({ ...env, HF_TOKEN: "hf_new" })).toMatchObject({ text: CONFIG });
  });
  test("a silent hub is silent for every model; with more time it is asked again", async () => {
    const server = hub(() => new Promise(() => undefined));
    const env = fresh(server);
    await fetched(env, NAME, 200);
    const startMs = performance.now();
    expect(await fetched(env, "org/other", 250)).toMatchObject({ reason: "model-unreachable" });
    expect(performance.now() - startMs).toBeLessThan(100);
    expect(server.seen).toHaveLength(1);
    await fetched(env, NAME, 500);
    expect(server.seen).toHaveLength(2);
  });
  test("where nothing can be kept a process waits once at least", async () => {
    const server = hub(() => new Promise(() => undefined));
    const env = { HF_ENDPOINT: server.url };
    for (const id of ["org/a", "org/b", "org/c"]) await fetched(env, id, 200);
    expect(server.seen).toHaveLength(1);
  });
  test("nothing of the token", async () => {
    for (const make of [() => given(CONFIG), () => status(401), () => status(403), () => given("<html>")]) {
      const server = reply(make);
      const env = fresh(server, { HF_TOKEN: TOKEN });
      const answer = JSON.stringify(await fetched(env));
      expect(server.seen[0]!.authorization).toBe(`Bearer ${TOKEN}`);
      const folder = join(env.XDG_CACHE_HOME!, "neurarch-gate");
      const kept = readdirSync(folder).map((name) => name + readFileSync(join(folder, name), "utf8"));
      expect(kept.length).toBeGreaterThan(0);
      expect(`${answer}${kept.join()}`).not.toContain(TOKEN);
      expect(`${answer}${kept.join()}`).not.toContain(TOKEN.slice(3, 15));
    }
  });
});
