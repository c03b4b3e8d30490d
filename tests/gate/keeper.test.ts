import { describe, expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { recipeOf } from "../../src/facts/recipe.ts";
import { Keeper } from "../../src/gate/keeper.ts";
import { loadSettings } from "../../src/gate/load.ts";
import { makeSizer } from "../../src/gate/size.ts";
import { sizeAnew } from "../../src/gate/size-anew.ts";
import { catalogueNames } from "../../src/model/catalogue.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { changesFor } from "../../src/verdict/alternatives.ts";
import { config, factsOf, freshFolder, lay } from "../sources/support.ts";

const SETTINGS = await loadSettings({ values: { sizing: "builtin" }, switches: {} });

const sizer = (place: { cwd: string; env: Record<string, string> }, keeper: Keeper) =>
  makeSizer(SETTINGS, { ...place, deadlineMs: 5000, keeper });

function places() {
  const home = freshFolder();
  return { home, place: { cwd: home, env: { HOME: home } }, folder: join(home, ".cache", "neurarch-gate") };
}

const withoutTerms = (sizing: Sizing) => ({
  ...sizing,
  moments: sizing.moments.map(({ terms, ...line }) => line),
});

describe("a size that is kept", () => {
  test("equals the one that was computed, other recipes included", async () => {
    const names = catalogueNames();
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...names),
        fc.constantFrom("bf16" as const, "amp-bf16" as const, "fp32" as const),
        fc.constantFrom(null, 8),
        fc.constantFrom("eager" as const, "sdpa" as const),
        async (model, precision, loraRank, attention) => {
          const { place } = places();
          const facts = factsOf({ model, precision, loraRank, attention, seqLen: 256 });
          const computed = await sizeAnew(facts, place);
          const first = new Keeper(place, "build");
          const noted = await sizer(place, first)(facts);
          expect(noted.ok).toBe(computed.ok);
          if (!computed.ok || !noted.ok) return;
          const changes = changesFor(recipeOf(facts), true).map((change) => change.recipe);
          for (const change of changes.slice(0, 4)) noted.value.resize(change);
          noted.value.perCard?.({ parallel: "zero2" }, 4);
          first.flush();
          const found = new Keeper(place, "build").find(facts);
          expect(found).not.toBeNull();
          expect(withoutTerms(found!.sizing)).toEqual(withoutTerms(computed.value.sizing));
          for (const change of changes) {
            for (const within of [undefined, { bytes: 24e9, samples: 8 }]) {
              const anew = computed.value.resize(change, within);
              const kept = found!.resize(change, within);
              expect(kept && withoutTerms(kept)).toEqual(anew && withoutTerms(anew));
            }
          }
          for (const cards of [4, 8]) {
            const anew = computed.value.perCard!({ parallel: "zero2" }, cards);
            const kept = found!.perCard!({ parallel: "zero2" }, cards);
            expect(kept && withoutTerms(kept)).toEqual(anew && withoutTerms(anew));
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  const MODEL = "Qwen/Qwen3-8B";
  const facts = factsOf({ model: MODEL, batch: 8 });

  async function kept() {
    const { place, folder, home } = places();
    const keeper = new Keeper(place, "build");
    const sized = await sizer(place, keeper)(facts);
    keeper.flush();
    const [name] = readdirSync(folder);
    return { place, home, sized, path: join(folder, name!) };
  }
  /** Rewrites what is kept as the keeper itself would have written it. */
  function rewrite(path: string, change: (text: string) => string) {
    const entry = JSON.parse(readFileSync(path, "utf8"));
    const text = change(JSON.stringify(entry.value));
    const sum = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    writeFileSync(path, JSON.stringify({ ...entry, sum, value: JSON.parse(text) }));
  }
  /** Makes the kept figures recognisable. */
  const mark = (path: string) =>
    rewrite(path, (text) => text.replace('"family":"qwen3"', '"family":"marked"'));
  const familyBy = (place: { cwd: string; env: Record<string, string> }, build = "build") =>
    new Keeper(place, build).find(facts)?.sizing.family ?? null;

  test("is what the next run reads", async () => {
    const { place, path } = await kept();
    mark(path);
    expect(familyBy(place)).toBe("marked");
  });

  const NOT_READ: [string, (made: Awaited<ReturnType<typeof kept>>) => void][] = [
    ["that others may write", ({ path }) => chmodSync(path, 0o666)],
    ["that was cut", ({ path }) => writeFileSync(path, readFileSync(path, "utf8").slice(0, 300))],
    ["of another shape", ({ path }) => rewrite(path, (text) => text.replace("handedOn", "handed"))],
    [
      "of a model that a folder now stands for",
      ({ home }) => lay(home, { [`${MODEL}/config.json`]: config(100) }),
    ],
    [
      "of a model that the Hugging Face cache now holds",
      ({ home }) =>
        lay(home, {
          ".cache/huggingface/hub/models--Qwen--Qwen3-8B/refs/main": "abc",
          ".cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/abc/config.json": config(100),
        }),
    ],
  ];
  test.each(NOT_READ)("%s is not read", async (_name, change) => {
    const made = await kept();
    mark(made.path);
    change(made);
    expect(familyBy(made.place)).toBeNull();
  });

  test("of another build is not read", async () => {
    const { place } = await kept();
    expect(familyBy(place, "next build")).toBeNull();
  });

  test("of a path follows the config's text", async () => {
    const { home, place } = places();
    lay(home, { "m/config.json": config(1000) });
    const facts = factsOf({ model: "./m" });
    const peakOf = async () => {
      const keeper = new Keeper(place, "build");
      const sized = await sizer(place, keeper)(facts);
      keeper.flush();
      return sized.ok ? peakBytes(sized.value.sizing, 1) : null;
    };
    const small = await peakOf();
    expect(await peakOf()).toBe(small);
    lay(home, { "m/config.json": config(50_000) });
    expect(await peakOf()).toBeGreaterThan(small!);
  });

  test("of an adapter is none: its base may change without it", async () => {
    const { home, place, folder } = places();
    lay(home, {
      "base/config.json": config(1000),
      "a/adapter_config.json": JSON.stringify({ base_model_name_or_path: join(home, "base") }),
    });
    const keeper = new Keeper(place, "build");
    expect((await sizer(place, keeper)(factsOf({ model: "./a" }))).ok).toBe(true);
    keeper.flush();
    expect(() => readdirSync(folder)).toThrow();
  });

  test("is one of the newest 400", async () => {
    const { place, folder } = await kept().then(({ place, path }) => ({ place, folder: join(path, "..") }));
    for (let index = 0; index < 450; index++) {
      const path = join(folder, `size-${index}.json`);
      writeFileSync(path, "{}");
      utimesSync(path, index, index);
    }
    const keeper = new Keeper(place, "build");
    await sizer(place, keeper)(factsOf({ model: MODEL, seqLen: 77 }));
    keeper.flush();
    const left = readdirSync(folder);
    expect(left.length).toBe(400);
    expect(left).not.toContain("size-0.json");
    expect(left).toContain("size-449.json");
  });
});
