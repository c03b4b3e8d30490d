import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cacheFolder, readCache, rememberedMiss, writeCache } from "../../src/sources/cache.ts";
import { freshFolder } from "./support.ts";

// Under CI nothing is skipped: without root the change of owner fails, and says so.
const asRoot = process.env.CI === "true" || process.getuid?.() === 0;

function freshCache() {
  const env = { XDG_CACHE_HOME: freshFolder() };
  return { env, folder: join(env.XDG_CACHE_HOME, "neurarch-gate") };
}

/** The entry there with some of its fields changed. */
function change(path: string, fields: Record<string, unknown>): void {
  writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...fields }));
}

/** The one entry's path. */
function entryOf(folder: string): string {
  const names = readdirSync(folder);
  expect(names).toHaveLength(1);
  return join(folder, names[0]!);
}

describe("where it stands", () => {
  const rows: [string, Record<string, string>, string | null][] = [
    ["XDG_CACHE_HOME", { XDG_CACHE_HOME: "/x", HOME: "/h" }, "/x/neurarch-gate"],
    ["HOME", { HOME: "/h" }, "/h/.cache/neurarch-gate"],
    ["a relative XDG_CACHE_HOME is ignored", { XDG_CACHE_HOME: "x", HOME: "/h" }, "/h/.cache/neurarch-gate"],
    ["empty", { XDG_CACHE_HOME: "", HOME: "/h" }, "/h/.cache/neurarch-gate"],
    ["no home", {}, null],
  ];
  test.each(rows)("%s", (_, env, folder) => {
    expect(cacheFolder(env)).toBe(folder);
  });
});

describe("an entry", () => {
  test("is read as it was written", () => {
    const { env } = freshCache();
    expect(readCache(env, "sizing", "key")).toBeNull();
    expect(writeCache(env, "sizing", "key", { one: 1 })).toBe(true);
    expect(readCache(env, "sizing", "key")?.value).toEqual({ one: 1 });
    expect(readCache(env, "config", "key")).toBeNull();
    expect(readCache(env, "sizing", "other")).toBeNull();
  });
  test("is for our eyes only", () => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(entryOf(folder)).mode & 0o777).toBe(0o600);
  });
  test("replaces the one before, and leaves no other file", () => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    writeCache(env, "sizing", "key", 2);
    expect(readCache(env, "sizing", "key")?.value).toBe(2);
    entryOf(folder);
  });
  test("any key makes a file name", () => {
    const { env, folder } = freshCache();
    for (const key of ["../../etc/passwd", "a/b", "\0", "x".repeat(10_000)]) {
      expect(writeCache(env, "sizing", key, key)).toBe(true);
      expect(readCache(env, "sizing", key)?.value).toBe(key);
    }
    expect(readdirSync(folder)).toHaveLength(4);
  });
  test("too old is none", () => {
    const { env } = freshCache();
    writeCache(env, "sizing", "key", 1);
    expect(readCache(env, "sizing", "key", 0)).toBeNull();
    expect(readCache(env, "sizing", "key", 60_000)?.value).toBe(1);
  });
  test("from the future is none: a clock went back", () => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    change(entryOf(folder), { atMs: Date.now() + 60_000 });
    expect(readCache(env, "sizing", "key")).toBeNull();
  });
});

describe("an entry that is not to be trusted is none", () => {
  const rows: [string, (path: string) => void][] = [
    ["half written", (path) => writeFileSync(path, '{"format":1,"kind":"siz')],
    ["not JSON", (path) => writeFileSync(path, "\0\0\0")],
    ["empty", (path) => writeFileSync(path, "")],
    ["null", (path) => writeFileSync(path, "null")],
    ["another version's", (path) => change(path, { format: 1 })],
    ["another key's", (path) => change(path, { key: "other" })],
    ["another kind's", (path) => change(path, { kind: "config" })],
    ["without a time", (path) => change(path, { atMs: undefined })],
    ["with another value", (path) => change(path, { value: 1e30 })],
    ["without a sum", (path) => change(path, { sum: undefined })],
    ["writable by others", (path) => chmodSync(path, 0o666)],
    [
      "a link",
      (path) => {
        renameSync(path, `${path}.real`);
        symlinkSync(`${path}.real`, path);
      },
    ],
    ["too large", (path) => writeFileSync(path, " ".repeat(5_000_000))],
  ];
  test.each(rows)("%s", (_, spoil) => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    expect(readCache(env, "sizing", "key")?.value).toBe(1);
    spoil(entryOf(folder));
    expect(readCache(env, "sizing", "key")).toBeNull();
    expect(writeCache(env, "sizing", "key", 2)).toBe(true);
    expect(readCache(env, "sizing", "key")?.value).toBe(2);
  });
  test.if(asRoot)("of another user", async () => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    await Bun.$`chown 12345 ${entryOf(folder)}`.quiet();
    expect(readCache(env, "sizing", "key")).toBeNull();
  });
  test.if(asRoot)("in another user's folder nothing is written", async () => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    await Bun.$`chown 12345 ${folder}`.quiet();
    expect(writeCache(env, "sizing", "other", 1)).toBe(false);
  });
});

describe("no folder is made", () => {
  test("for a home that is not there", () => {
    const home = join(freshFolder(), "nobody");
    expect(writeCache({ HOME: home }, "sizing", "key", 1)).toBe(false);
    expect(existsSync(home)).toBe(false);
  });
  test.if(asRoot)("in another user's home, where a submit under sudo runs", async () => {
    const home = freshFolder();
    await Bun.$`chown 12345 ${home}`.quiet();
    expect(writeCache({ HOME: home }, "sizing", "key", 1)).toBe(false);
    expect(existsSync(join(home, ".cache"))).toBe(false);
  });
});

describe("no cache is no error", () => {
  test.each([
    ["no home", {}],
    ["a home that is a file", { HOME: "/etc/passwd" }],
    ["a home nobody may write", { XDG_CACHE_HOME: "/proc/1" }],
    ["a home that is not there", { HOME: "/proc/nowhere" }],
  ])("%s", (_, env) => {
    expect(writeCache(env, "sizing", "key", 1)).toBe(false);
    expect(readCache(env, "sizing", "key")).toBeNull();
  });
  test("a folder that others may write is not used", () => {
    const { env, folder } = freshCache();
    writeCache(env, "sizing", "key", 1);
    chmodSync(folder, 0o777);
    expect(writeCache(env, "sizing", "other", 1)).toBe(false);
  });
  test("a value too large is not kept", () => {
    const { env, folder } = freshCache();
    expect(writeCache(env, "sizing", "key", "x".repeat(5_000_000))).toBe(false);
    expect(existsSync(folder)).toBe(false);
  });
});

describe("a look-up that failed", () => {
  test("is remembered with its reason", () => {
    const { env } = freshCache();
    expect(rememberedMiss(env, "key")).toBeNull();
    writeCache(env, "miss", "key", { reason: "model-unreachable", message: "The hub did not answer." });
    expect(rememberedMiss(env, "key")).toEqual({
      reason: "model-unreachable",
      message: "The hub did not answer.",
    });
  });
  test("for a minute", () => {
    const { env, folder } = freshCache();
    writeCache(env, "miss", "key", { reason: "model-unreachable", message: "x" });
    const at = (atMs: number) => change(entryOf(folder), { atMs });
    at(Date.now() - 59_000);
    expect(rememberedMiss(env, "key")).not.toBeNull();
    at(Date.now() - 61_000);
    expect(rememberedMiss(env, "key")).toBeNull();
  });
});
