import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { writeCache } from "../../src/sources/cache.ts";
import { locate } from "../../src/sources/locate.ts";
import { config, freshFolder, lay } from "./support.ts";

const COMMIT = "a".repeat(40);
const OTHER = "b".repeat(40);

const GRAPH = {
  components: [
    { id: "a", type: "linear", name: "l", params: { inFeatures: 10, outFeatures: 5 } },
    { id: "b", type: "customModule", name: "c", params: { paramCount: 1000 } },
  ],
  connections: [],
};

type Env = Record<string, string>;

/** Where the model was found and how many rows its vocabulary has; or the reason and the message. */
async function found(model: string, cwd: string, env: Env = {}) {
  const answer = await locate(model, { cwd, env: { HOME: join(cwd, "nohome"), ...env } });
  if (!answer.ok) return { reason: answer.error.reason, message: answer.error.message };
  const { source, revision, from, structure } = answer.value;
  const { family, params, notes } = structure;
  return { source, revision, from, vocab: structure.decoder?.vocab, family, params, notes };
}

describe("a path", () => {
  const cwd = freshFolder();
  const home = freshFolder();
  lay(cwd, {
    "config.json": config(100),
    "model/config.json": config(200),
    "org/name/config.json": config(300),
    "other.json": config(400),
    "empty/readme.txt": "",
    "gpt2/checkpoint.txt": "",
    "bad/config.json": "{",
    "pointer/config.json": "version https://git-lfs.github.com/spec/v1",
    "adapter/adapter_config.json": JSON.stringify({ base_model_name_or_path: "../model", peft_type: "LORA" }),
    "adapter2/adapter_config.json": JSON.stringify({ base_model_name_or_path: "./model" }),
    "adapter3/adapter_config.json": JSON.stringify({ base_model_name_or_path: "./adapter2" }),
    "adapter4/adapter_config.json": "{}",
    "net.neurarch.json": JSON.stringify({ model: GRAPH }),
    "wrapped.json": JSON.stringify({ model: GRAPH }),
    "other-graph.json": JSON.stringify(GRAPH),
    "net/only.neurarch.json": JSON.stringify({ graph: GRAPH }),
    "nets/a.neurarch.json": JSON.stringify(GRAPH),
    "nets/b.neurarch.json": JSON.stringify(GRAPH),
    "graphs/net.neurarch.json": "{}",
  });
  lay(home, { "model/config.json": config(500) });

  const rows: [string, string, object][] = [
    ["a config.json", join(cwd, "config.json"), { source: "path", vocab: 100, revision: null }],
    ["one named from the working directory", "config.json", { source: "path", vocab: 100 }],
    ["a folder", "./model", { source: "path", vocab: 200, from: join(cwd, "model/config.json") }],
    ["a folder with a slash", "model/", { source: "path", vocab: 200 }],
    ["a folder that looks like a hub id", "org/name", { source: "path", vocab: 300 }],
    ["a file of another name", "other.json", { source: "path", vocab: 400 }],
    ["below home", "~/model", { source: "path", vocab: 500 }],
    ["the working directory itself", ".", { source: "path", vocab: 100 }],
    ["blanks around it", "  ./model \n", { source: "path", vocab: 200 }],
    ["an adapter's folder", "./adapter2", { source: "path", vocab: 200 }],
    [
      "a folder without a config",
      "./empty",
      {
        reason: "model-not-found",
        message: `${cwd}/empty holds no config.json. Name the folder or the file of the model's config.`,
      },
    ],
    [
      "a file that is not there",
      "./nothing.json",
      { reason: "model-not-found", message: `${cwd}/nothing.json does not exist.` },
    ],
    [
      "a folder that is not there",
      "/nowhere/at/all",
      { reason: "model-not-found", message: "/nowhere/at/all does not exist." },
    ],
    [
      "not JSON",
      "bad",
      {
        reason: "config-invalid",
        message: `${cwd}/bad/config.json cannot be used: the config is not valid JSON. Check that it is the model's own config.json and not a web page or a pointer to large storage.`,
      },
    ],
    ["a large-storage pointer", "pointer", { reason: "config-invalid" }],
    [
      "an adapter of an adapter",
      "./adapter3",
      {
        reason: "config-invalid",
        message: "./adapter2 is an adapter whose base model is not named. Name the base model instead.",
      },
    ],
    ["an adapter without a base", "./adapter4", { reason: "config-invalid" }],
    [
      "a graph",
      "net.neurarch.json",
      { source: "path", from: `${cwd}/net.neurarch.json`, family: "graph", params: 1055 },
    ],
    [
      "a folder with one graph",
      "./net",
      { source: "path", from: `${cwd}/net/only.neurarch.json`, params: 1055 },
    ],
    [
      "a folder with several graphs",
      "./nets",
      { reason: "model-not-found", message: `${cwd}/nets holds 2 graphs; name one of them.` },
    ],
    [
      "a wrapped graph under another name",
      "./wrapped.json",
      { source: "path", family: "graph", params: 1055 },
    ],
    ["a graph under another name", "./other-graph.json", { source: "path", family: "graph", params: 1055 }],
    [
      "a folder with a graph",
      "./graphs",
      {
        reason: "config-invalid",
        message: `${cwd}/graphs/net.neurarch.json cannot be used: the graph has no list of \`components\`. Trace the module again, or correct the file.`,
      },
    ],
    ["a device", "/dev/null", { reason: "model-not-found", message: "/dev/null is not a regular file." }],
  ];
  test.each(rows)("%s", async (_, model, expected) => {
    expect(await found(model, cwd, { HOME: home })).toMatchObject(expected);
  });
  test("a folder of the working directory without a config does not hide the model of that name", async () => {
    expect(await found("gpt2", cwd)).toMatchObject({ source: "catalogue" });
  });
  test("the adapter is told", async () => {
    const answer = await locate("./adapter2", { cwd, env: {} });
    expect(answer.ok && answer.value.model).toBe("./adapter2");
    expect(answer.ok && answer.value.structure.notes.join()).toContain(
      "./adapter2 is an adapter; its base ./model is sized",
    );
  });
  test("a FIFO or an endless file blocks nothing", async () => {
    expect(await found("/dev/zero", cwd)).toMatchObject({ reason: "model-not-found" });
  });
});

describe("the Hugging Face cache", () => {
  /** A cache as `hf download` leaves it, with links into `blobs`. */
  function hub(files: Record<string, string>, root = freshFolder()): string {
    lay(
      root,
      Object.fromEntries(Object.entries(files).map(([name, text]) => [`models--org--model/${name}`, text])),
    );
    return root;
  }
  const one = { [`snapshots/${COMMIT}/config.json`]: config(11) };
  const two = { ...one, [`snapshots/${OTHER}/config.json`]: config(22) };

  test("at the commit that refs/main names", async () => {
    const cache = hub({ ...two, "refs/main": OTHER });
    expect(await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({
      source: "hf-cache",
      revision: OTHER,
      vocab: 22,
      from: "config.json of org/model in the Hugging Face cache",
    });
  });
  test("through links into blobs", async () => {
    const cache = hub({ "blobs/abc": config(33), "refs/main": COMMIT });
    mkdirSync(join(cache, `models--org--model/snapshots/${COMMIT}`), { recursive: true });
    symlinkSync("../../blobs/abc", join(cache, `models--org--model/snapshots/${COMMIT}/config.json`));
    expect(await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({ vocab: 33 });
  });
  test("a ref that ends in a line end", async () => {
    const cache = hub({ ...two, "refs/main": `${OTHER}\n` });
    expect(await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({ vocab: 22 });
  });
  test("without refs the newest snapshot, which is told", async () => {
    const cache = hub(two);
    utimesSync(join(cache, `models--org--model/snapshots/${OTHER}`), 1000, 1000);
    const answer = await found("org/model", freshFolder(), { HF_HUB_CACHE: cache });
    expect(answer).toMatchObject({ revision: COMMIT, vocab: 11 });
    expect(answer.notes?.join()).toContain(
      "the Hugging Face cache has no refs/main; its newest snapshot aaaaaaaaaaaa is used",
    );
  });
  test("a hand-made snapshot called main comes before others", async () => {
    const cache = hub({ ...two, "snapshots/main/config.json": config(44) });
    utimesSync(join(cache, "models--org--model/snapshots/main"), 1000, 1000);
    const answer = await found("org/model", freshFolder(), { HF_HUB_CACHE: cache });
    expect(answer).toMatchObject({ revision: "main", vocab: 44 });
    expect(answer.notes?.join()).not.toContain("newest");
  });
  test("a ref to an absent commit is a miss, not a stale answer", async () => {
    const cache = hub({ ...one, "refs/main": OTHER });
    const answer = await found("org/model", freshFolder(), { HF_HUB_CACHE: cache });
    expect(answer.reason).toBe("model-not-found");
    expect(answer.message).toContain("names revision bbbbbbbbbbbb and does not hold it");
  });
  test("a ref that is a path leads nowhere", async () => {
    const cache = hub({ ...one, "refs/main": "../../../etc" });
    expect((await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).message).toContain(
      "refs/main in the Hugging Face cache names no commit",
    );
  });
  test("what is known not to exist is told", async () => {
    const cache = hub({
      "refs/main": COMMIT,
      [`snapshots/${COMMIT}/model.gguf`]: "",
      [`.no_exist/${COMMIT}/config.json`]: "",
    });
    expect((await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).message).toContain(
      "org/model has no config.json on the hub",
    );
  });
  test("a broken link is a miss", async () => {
    const cache = hub({ "refs/main": COMMIT, [`snapshots/${COMMIT}/readme`]: "" });
    symlinkSync("../../blobs/gone", join(cache, `models--org--model/snapshots/${COMMIT}/config.json`));
    expect(await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({
      reason: "model-not-found",
    });
  });
  test("an adapter's base is followed once", async () => {
    const cache = hub({
      "refs/main": COMMIT,
      [`snapshots/${COMMIT}/adapter_config.json`]: '{"base_model_name_or_path": "Qwen/Qwen3-8B"}',
    });
    const answer = await found("org/model", freshFolder(), { HF_HUB_CACHE: cache });
    expect(answer).toMatchObject({ source: "catalogue" });
    expect(answer.notes?.join()).toContain("its base Qwen/Qwen3-8B is sized");
  });
  test("a model without an organisation", async () => {
    const cache = freshFolder();
    lay(cache, {
      [`models--gpt2/snapshots/${COMMIT}/config.json`]: config(55),
      "models--gpt2/refs/main": COMMIT,
    });
    expect(await found("gpt2", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({
      source: "hf-cache",
      vocab: 55,
    });
  });
  test("a broken copy does not hide what the catalogue knows; alone it is told", async () => {
    const cache = freshFolder();
    lay(cache, {
      [`models--Qwen--Qwen3-8B/snapshots/${COMMIT}/config.json`]: "{",
      "models--Qwen--Qwen3-8B/refs/main": COMMIT,
      [`models--org--model/snapshots/${COMMIT}/config.json`]:
        '{"model_type": "llama", "hidden_size": -1, "num_hidden_layers": 2}',
      "models--org--model/refs/main": COMMIT,
    });
    expect(await found("Qwen/Qwen3-8B", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({
      source: "catalogue",
    });
    expect(await found("org/model", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({
      reason: "config-invalid",
      message:
        "config.json of org/model in the Hugging Face cache cannot be used: `hidden_size` is -1, not a whole number from 1 to 10000000. Check that it is the model's own config.json.",
    });
  });

  describe("stands where the variables say", () => {
    const root = freshFolder();
    hub({ ...one, "refs/main": COMMIT }, join(root, "direct"));
    hub({ ...one, "refs/main": COMMIT }, join(root, "hfhome/hub"));
    hub({ ...one, "refs/main": COMMIT }, join(root, "xdg/huggingface/hub"));
    hub({ ...one, "refs/main": COMMIT }, join(root, "home/.cache/huggingface/hub"));
    const rows: [string, Env, boolean][] = [
      ["HF_HUB_CACHE", { HF_HUB_CACHE: join(root, "direct") }, true],
      ["its older name", { HUGGINGFACE_HUB_CACHE: join(root, "direct") }, true],
      [
        "HF_HUB_CACHE over its older name",
        { HF_HUB_CACHE: join(root, "direct"), HUGGINGFACE_HUB_CACHE: "/nowhere" },
        true,
      ],
      ["HF_HOME", { HF_HOME: join(root, "hfhome") }, true],
      ["HF_HUB_CACHE over HF_HOME", { HF_HUB_CACHE: "/nowhere", HF_HOME: join(root, "hfhome") }, false],
      ["XDG_CACHE_HOME", { XDG_CACHE_HOME: join(root, "xdg") }, true],
      ["HOME", { HOME: join(root, "home") }, true],
      ["a tilde", { HOME: join(root, "home"), HF_HUB_CACHE: "~/.cache/huggingface/hub" }, true],
      ["an empty variable is none", { HOME: join(root, "home"), HF_HUB_CACHE: "", HF_HOME: "" }, true],
      ["nothing at all", { HOME: "" }, false],
    ];
    test.each(rows)("%s", async (_, env, there) => {
      expect((await found("org/model", freshFolder(), env)).source === "hf-cache").toBe(there);
    });
  });
});

describe("the catalogue", () => {
  test.each([
    ["an id", "Qwen/Qwen3-8B", 8_190_735_360],
    ["another case", "qwen/qwen3-8b", 8_190_735_360],
    ["its page's address", "https://huggingface.co/Qwen/Qwen3-8B", 8_190_735_360],
    ["a page below it", "huggingface.co/Qwen/Qwen3-8B/tree/main", 8_190_735_360],
    ["a copy", "NousResearch/Llama-2-7b-hf", 6_738_415_616],
  ])("%s", async (_, model, params) => {
    const answer = await locate(model, { cwd: freshFolder(), env: {} });
    expect(answer).toMatchObject({
      ok: true,
      value: {
        model,
        source: "catalogue",
        from: "the catalogue inside neurarch-gate",
        structure: { params },
      },
    });
  });
  test("comes after the Hugging Face cache", async () => {
    const cache = freshFolder();
    lay(cache, {
      [`models--Qwen--Qwen3-8B/snapshots/${COMMIT}/config.json`]: config(77),
      "models--Qwen--Qwen3-8B/refs/main": COMMIT,
    });
    expect(await found("Qwen/Qwen3-8B", freshFolder(), { HF_HUB_CACHE: cache })).toMatchObject({ vocab: 77 });
  });
});

describe("our own cache of hub answers", () => {
  test("comes after the catalogue", async () => {
    const env = { XDG_CACHE_HOME: freshFolder() };
    writeCache(env, "config", "org/model", { text: config(88), revision: COMMIT });
    writeCache(env, "config", "Qwen/Qwen3-8B", { text: config(99), revision: COMMIT });
    expect(await found("org/model", freshFolder(), env)).toMatchObject({
      source: "cache",
      vocab: 88,
      revision: COMMIT,
    });
    expect(await found("Qwen/Qwen3-8B", freshFolder(), env)).toMatchObject({ source: "catalogue" });
  });
});

describe("a model that is nowhere", () => {
  const help =
    "Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue.";
  const rows: [string, string, string][] = [
    [
      "says where it was looked for",
      "org/unheard-of-thing",
      `No config was found for org/unheard-of-thing: not in the Hugging Face cache (/nowhere); not in the catalogue. ${help}`,
    ],
    [
      "says what may have been meant",
      "Qwen/Qwen3_8B",
      `No config was found for Qwen/Qwen3_8B: not in the Hugging Face cache (/nowhere); not in the catalogue. Did you mean Qwen/Qwen3-8B? ${help}`,
    ],
    [
      "is no id",
      "what is this",
      `No config was found for what is this: what is this is neither a path nor a Hugging Face id. ${help}`,
    ],
    ["has no name", "", `No config was found for the model: no model is named. ${help}`],
  ];
  test.each(rows)("%s", async (_, model, message) => {
    expect(await found(model, freshFolder(), { HF_HUB_CACHE: "/nowhere" })).toEqual({
      reason: "model-not-found",
      message,
    });
  });
  test("is answered in one line whatever it is called", async () => {
    for (const model of [
      "a\nb\u001b[31m",
      "x".repeat(100_000),
      "\0",
      "../../etc/passwd",
      "a/b/c",
      "\u0024{BASE_MODEL}",
      "\ud800",
      "//",
      "~",
    ]) {
      const { message } = await found(model, freshFolder(), { HF_HUB_CACHE: "/nowhere" });
      expect(message).toMatch(/^[^\p{C}\u2028\u2029]{1,1000}$/u);
    }
  });
});
