import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { locate } from "../../src/sources/locate.ts";
import { COMMIT, given, type Hub, hub, status } from "./hub-servers.ts";
import { config, freshFolder, lay } from "./support.ts";

type Env = Record<string, string>;

async function found(model: string, server: Hub, env: Env = {}, timeoutMs: number | undefined = 5000) {
  const all = { HF_ENDPOINT: server.url, HF_HUB_CACHE: "/nowhere", HF_HOME: "/nowhere", ...env };
  const answer = await locate(model, { cwd: freshFolder(), env: all, hubTimeoutMs: timeoutMs });
  if (!answer.ok) return answer.error;
  const { source, revision, from, structure } = answer.value;
  return { source, revision, from, vocab: structure.decoder?.vocab, notes: structure.notes };
}

/** A hub with these models' files; everything else is not there. */
function holding(files: Record<string, string>): Hub {
  return hub((path) => {
    const [, name = "", file = ""] = /^\/(.+)\/resolve\/main\/(.+)$/.exec(path) ?? [];
    const text = files[`${name}/${file}`];
    if (text !== undefined) return given(text);
    const known = Object.keys(files).some((one) => one.startsWith(`${name}/`));
    return status(known ? 404 : 401, known ? "EntryNotFound" : undefined);
  });
}
const paths = (server: Hub) => server.seen.map(({ path }) => path.replace("/resolve/main", ""));
const adapterOf = (base: string) => JSON.stringify({ peft_type: "LORA", base_model_name_or_path: base });

describe("the hub", () => {
  test("comes last, and says that it was it", async () => {
    const server = holding({ "org/model/config.json": config(11) });
    const env = { XDG_CACHE_HOME: freshFolder() };
    expect(await found("org/model", server, env)).toMatchObject({
      source: "hub",
      revision: COMMIT,
      vocab: 11,
      from: "config.json of org/model on the hub",
    });
    expect(await found("org/model", server, env)).toMatchObject({
      source: "cache",
      revision: COMMIT,
      vocab: 11,
      from: "the config of org/model fetched 0 h ago",
    });
    expect(paths(server)).toEqual(["/org/model/config.json"]);
  });
  test("its answers are there offline and without a time for it", async () => {
    const server = holding({ "org/model/config.json": config(11) });
    const env = { XDG_CACHE_HOME: freshFolder() };
    await found("org/model", server, env);
    expect(await found("org/model", server, { ...env, HF_HUB_OFFLINE: "1" })).toMatchObject({ vocab: 11 });
    expect(await found("org/model", server, env, undefined)).toMatchObject({ vocab: 11 });
  });
  test("is not asked for what is on this machine", async () => {
    const server = holding({});
    const cache = freshFolder();
    lay(cache, {
      [`models--org--model/snapshots/${COMMIT}/config.json`]: config(22),
      "models--org--model/refs/main": COMMIT,
      "config.json": config(33),
    });
    expect(await found("org/model", server, { HF_HUB_CACHE: cache })).toMatchObject({ source: "hf-cache" });
    expect(await found("Qwen/Qwen3-8B", server)).toMatchObject({ source: "catalogue" });
    expect(await found(join(cache, "config.json"), server)).toMatchObject({ source: "path" });
    for (const name of ["./nothing", "/nothing/here", "what is this", "a/b/c"])
      expect(await found(name, server)).toMatchObject({ reason: "model-not-found" });
    expect(server.seen).toHaveLength(0);
  });
  test("is asked where the Hugging Face cache names a commit that it does not hold", async () => {
    const server = holding({ "org/model/config.json": config(44) });
    const cache = freshFolder();
    lay(cache, {
      [`models--org--model/snapshots/${"a".repeat(40)}/config.json`]: config(22),
      "models--org--model/refs/main": COMMIT,
    });
    expect(await found("org/model", server, { HF_HUB_CACHE: cache })).toMatchObject({
      source: "hub",
      vocab: 44,
    });
  });
  test("a page's address is taken for the id in it", async () => {
    const server = holding({ "org/model/config.json": config(11) });
    expect(await found("https://huggingface.co/org/model/tree/main", server)).toMatchObject({
      source: "hub",
    });
  });
  test("a config that is none is told as one", async () => {
    const server = holding({ "org/model/config.json": '{"model_type": "llama"}' });
    expect(await found("org/model", server)).toMatchObject({
      reason: "config-invalid",
      message: expect.stringContaining(
        "config.json of org/model on the hub cannot be used: the config has no",
      ),
    });
  });
  test("a failure says what may have been meant", async () => {
    const server = holding({});
    const answer = (await found("Qwen/Qwen3_8B", server)) as { message: string };
    expect(answer.message).toStartWith("No config was found for Qwen/Qwen3_8B: 127.0.0.1:");
    expect(answer.message).toEndWith(" Did you mean Qwen/Qwen3-8B?");
  });
  test("offline it is told with what else was looked at", async () => {
    const server = holding({});
    expect(await found("org/unheard-of-thing", server, { TRANSFORMERS_OFFLINE: "1" })).toEqual({
      reason: "model-not-found",
      message:
        "No config was found for org/unheard-of-thing: not in the Hugging Face cache (/nowhere); not in the catalogue; the hub is not asked while TRANSFORMERS_OFFLINE is set. Name a path to its config.json, put the model into the Hugging Face cache, or name a model of the catalogue.",
    });
    expect(server.seen).toHaveLength(0);
  });
  test("all its requests share one time", async () => {
    const server = hub(async () => {
      await Bun.sleep(250);
      return given(adapterOf("org/base"));
    });
    const startMs = performance.now();
    expect(await found("org/model", server, {}, 400)).toMatchObject({ reason: expect.any(String) });
    expect(performance.now() - startMs).toBeLessThan(1000);
  });
});

describe("an adapter", () => {
  test("on the hub is sized as its base, wherever that is", async () => {
    for (const [base, files] of [
      ["Qwen/Qwen3-8B", {}],
      ["org/base", { "org/base/config.json": config(55) }],
    ] as const) {
      const server = holding({ "org/adapter/adapter_config.json": adapterOf(base), ...files });
      const answer = (await found("org/adapter", server)) as { notes: readonly string[]; source: string };
      expect(answer.source).toBe(base === "org/base" ? "hub" : "catalogue");
      expect(answer.notes).toContain(`org/adapter is an adapter; its base ${base} is sized`);
      expect(paths(server).slice(0, 2)).toEqual([
        "/org/adapter/config.json",
        "/org/adapter/adapter_config.json",
      ]);
    }
  });
  test("on the hub is known again without asking", async () => {
    const server = holding({
      "org/adapter/adapter_config.json": adapterOf("org/base"),
      "org/base/config.json": config(55),
    });
    const env = { XDG_CACHE_HOME: freshFolder() };
    await found("org/adapter", server, env);
    const asked = server.seen.length;
    expect(await found("org/adapter", server, env)).toMatchObject({ source: "cache", vocab: 55 });
    expect(server.seen).toHaveLength(asked);
  });
  test("on this machine has its base fetched", async () => {
    const server = holding({ "org/base/config.json": config(66) });
    const cwd = freshFolder();
    lay(cwd, { "adapter_config.json": adapterOf("org/base") });
    expect(await found(cwd, server)).toMatchObject({ source: "hub", vocab: 66 });
  });
  test("of an adapter is none", async () => {
    const server = holding({
      "org/one/adapter_config.json": adapterOf("org/two"),
      "org/two/adapter_config.json": adapterOf("org/one"),
    });
    expect(await found("org/one", server)).toMatchObject({ reason: "config-invalid" });
    expect(server.seen).toHaveLength(4);
  });
  const elsewhere = ["/etc", "../base", "~/base", "./config.json", "/data/models/llama"];
  test.each(elsewhere)("on the hub whose base is the path %s is not followed", async (base) => {
    const server = holding({ "org/adapter/adapter_config.json": adapterOf(base) });
    expect(await found("org/adapter", server)).toEqual({
      reason: "config-invalid",
      message: `org/adapter is an adapter whose base model, ${base}, is a path on another machine. Name the base model instead.`,
    });
  });
  test("without a base says so", async () => {
    const server = holding({ "org/adapter/adapter_config.json": "{}" });
    expect(await found("org/adapter", server)).toMatchObject({
      reason: "config-invalid",
      message: "org/adapter is an adapter whose base model is not named. Name the base model instead.",
    });
  });
});
