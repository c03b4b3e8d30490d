import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { recipeOf } from "../../src/facts/recipe.ts";
import {
  ATTENTIONS,
  CHECKPOINTINGS,
  LOSSES,
  OFFLOADS,
  OPTIMIZERS,
  PARALLELS,
  PRECISIONS,
  QUANTS,
} from "../../src/facts/types.ts";
import { sizeAnew } from "../../src/gate/size-anew.ts";
import { digest } from "../../src/host/private-files.ts";
import { catalogueNames } from "../../src/model/catalogue.ts";
import { MAX_SENT_CHARS, sentText } from "../../src/sizing/sent.ts";
import { readSent } from "../../src/sizing/sent-read.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { factsOf, freshFolder } from "../sources/support.ts";

const cwd = freshFolder();
const place = { cwd, env: { HOME: cwd } };

async function sizedAs(facts: ReturnType<typeof factsOf>) {
  const sized = await sizeAnew(facts, place);
  return sized.ok ? sized.value : null;
}

/** All that a verdict rests on. */
const figures = ({ stateBytes, floorBytes, moments, seqLen, recipe, params }: Sizing) => ({
  stateBytes,
  floorBytes,
  seqLen,
  recipe,
  params,
  moments: moments.map(({ name, fixedBytes, perSampleBytes, terms }) => ({
    name,
    fixedBytes,
    perSampleBytes,
    optimizer: terms.find((term) => term.name === "optimizer")?.fixedBytes ?? 0,
  })),
});

const RECIPES = fc.record({
  precision: fc.constantFrom(...PRECISIONS),
  optimizer: fc.constantFrom(...OPTIMIZERS),
  attention: fc.constantFrom(...ATTENTIONS),
  checkpointing: fc.constantFrom(...CHECKPOINTINGS),
  quant: fc.constantFrom(...QUANTS),
  loraRank: fc.constantFrom(null, 16),
  loraDropout: fc.constantFrom(0, 0.05),
  parallel: fc.constantFrom(...PARALLELS),
  offload: fc.constantFrom(...OFFLOADS),
  loss: fc.constantFrom(...LOSSES),
  gradAccum: fc.constantFrom(1, 4),
});

describe("a size that is sent", () => {
  test("is read as it was, whatever model and recipe it is of", async () => {
    let sent = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...catalogueNames()),
        RECIPES,
        fc.constantFrom(128, 2048, 8192),
        async (model, recipe, seqLen) => {
          const facts = factsOf({ model, seqLen, ...recipe });
          const sized = await sizedAs(facts);
          if (sized === null) return;
          const asked = recipeOf(facts);
          const each = sized.perCard?.({}, 4) ?? null;
          const onCards = new Map(each === null ? [] : [[4, each]]);
          const text = sentText({ sizing: sized.sizing, asked, onCards }, digest)!;
          expect(text).toMatch(/^[\x21-\x7e]+$/);
          const read = readSent(text, digest);
          if (!read.ok) throw new Error(`${read.error}: ${text}`);
          expect(figures(read.value.sizing)).toEqual(figures(sized.sizing));
          expect(read.value.asked).toEqual(asked);
          expect([...read.value.onCards].map(([cards, one]) => [cards, figures(one)])).toEqual(
            [...onCards].map(([cards, one]) => [cards, figures(one)]),
          );
          expect(read.value.sizing.source).toBe("client");
          sent++;
        },
      ),
      { numRuns: 150 },
    );
    expect(sent).toBeGreaterThan(40);
  }, 60_000);

  test("says both recipes where a model does not take what was asked", async () => {
    const facts = factsOf({ model: "albert-xlarge-v2", seqLen: 128, checkpointing: "full" });
    const { sizing } = (await sizedAs(facts))!;
    expect(sizing.recipe.checkpointing).toBe("none");
    const read = readSent(sentText({ sizing, asked: recipeOf(facts), onCards: new Map() }, digest)!, digest);
    expect(read.ok && [read.value.asked.checkpointing, read.value.sizing.recipe.checkpointing]).toEqual([
      "full",
      "none",
    ]);
  });

  test("has no path and no note in it", async () => {
    const sized = (await sizedAs(factsOf({ model: "gpt2", seqLen: 128 })))!;
    const sizing = {
      ...sized.sizing,
      structureFrom: "/home/someone/planted",
      notes: ["planted"],
      cautions: ["planted"],
    };
    expect(sentText({ sizing, asked: sizing.recipe, onCards: new Map() }, digest)).not.toContain("planted");
  });

  test("of an external source is none", async () => {
    const { sizing } = (await sizedAs(factsOf({ model: "gpt2", seqLen: 128 })))!;
    const of = (change: Partial<Sizing>) =>
      sentText({ sizing: { ...sizing, ...change }, asked: sizing.recipe, onCards: new Map() }, digest);
    expect(of({ source: "cli" })).toBeNull();
    expect(of({ model: "x".repeat(2000) })).toBeNull();
    expect(of({ moments: Array(39).fill({ ...sizing.moments[0]!, name: "m".repeat(300) }) })).toBeNull();
    expect(of({})).not.toBeNull();
  });
});

describe("a size that nobody sent", () => {
  const honest = async () => {
    const sized = (await sizedAs(factsOf({ model: "gpt2", seqLen: 128 })))!;
    return sentText({ sizing: sized.sizing, asked: sized.sizing.recipe, onCards: new Map() }, digest)!;
  };
  /** As someone writes it who knows how the parts are tied together. */
  const tied = (text: string, change: (document: Record<string, unknown>) => void): string => {
    const { sum: _, ...document } = JSON.parse(text);
    change(document);
    return JSON.stringify({ ...document, sum: digest(JSON.stringify(document)).slice(0, 16) });
  };

  const ROWS: readonly (readonly [string, (text: string) => string, RegExp])[] = [
    ["an empty text", () => "", /not the JSON/],
    ["no JSON", () => "{", /not the JSON/],
    ["a list", () => "[]", /not the JSON/],
    ["a number", () => "7", /not the JSON/],
    ["another version", (text) => text.replace('"v":1', '"v":2'), /another version/],
    ["a figure changed by hand", (text) => text.replace('"seqLen":128', '"seqLen":256'), /belong together/],
    ["another structure", (text) => tied(text, (one) => (one.structure = "x")), /no digest/],
    [
      "another structure's digest alone",
      (text) => text.replace(/"structure":"[0-9a-f]+"/, '"structure":"0123456789abcdef"'),
      /belong together/,
    ],
    ["a key of its own", (text) => tied(text, (one) => (one.command = "x")), /other keys/],
    ["__proto__", (text) => text.replace('{"v":1', '{"__proto__":{"v":1},"v":1'), /other keys/],
    ["a key missing", (text) => tied(text, (one) => delete one.floor), /other keys/],
    ["a size below zero", (text) => tied(text, (one) => (one.floor = -1)), /`floor` is out of bounds/],
    ["a size as text", (text) => tied(text, (one) => (one.floor = "1")), /`floor` is out of bounds/],
    ["a size beyond all", (text) => tied(text, (one) => (one.state = 1e300)), /`state` is out of bounds/],
    ["no moments", (text) => tied(text, (one) => (one.moments = [])), /`moments` are empty/],
    [
      "moments without end",
      (text) => tied(text, (one) => (one.moments = Array(60).fill(["a", 1, 1, 1]))),
      /too many/,
    ],
    ["a moment of a sentence", (text) => tied(text, (one) => (one.moments = [["a b", 1, 1, 1]])), /no names/],
    ["a moment of two", (text) => tied(text, (one) => (one.moments = [["a", 1]])), /four parts/],
    [
      "a recipe unknown",
      (text) => tied(text, (one) => ((one.sized as Record<string, unknown>).loss = "none")),
      /not known/,
    ],
    [
      "a recipe with more to it",
      (text) => tied(text, (one) => ((one.recipe as Record<string, unknown>).x = 1)),
      /`recipe` has other keys/,
    ],
    [
      "no parameters",
      (text) => tied(text, (one) => (one.params = [null, 1, 1])),
      /`params` is out of bounds/,
    ],
    [
      "sizes that its parameters do not fit in",
      (text) =>
        tied(text, (one) => {
          one.state = 1;
          one.floor = 1;
          one.moments = [["loss", 1, 1, 0]];
        }),
      /smaller than its parameters allow/,
    ],
    [
      "one card of one",
      (text) => tied(text, (one) => (one.cards = [[1, { state: 1, floor: 1, moments: [["a", 1, 1, 1]] }]])),
      /`cards` is out of bounds/,
    ],
    [
      "a model of nothing",
      (text) => tied(text, (one) => (one.params = [0, 0, 0])),
      /`params` is out of bounds/,
    ],
    [
      "a share that its parameters do not fit in",
      (text) => tied(text, (one) => (one.cards = [[2, { state: 1, floor: 1, moments: [["a", 1, 1, 1]] }]])),
      /smaller than its parameters allow/,
    ],
    ["too long a text", (text) => text + " ".repeat(MAX_SENT_CHARS), /more than 8192 characters/],
  ];
  for (const [name, change, why] of ROWS) {
    test(name, async () => {
      const text = change(await honest());
      const read = readSent(text, digest);
      expect(read.ok).toBe(false);
      if (!read.ok) expect(read.error).toMatch(why);
    });
  }

  test("any text at all is read or refused in a few words of ours", async () => {
    const text = await honest();
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ maxLength: 300 }),
          fc.json(),
          fc.tuple(fc.nat(text.length), fc.string({ maxLength: 4 })).map(([at, put]) => {
            return text.slice(0, at) + put + text.slice(at + put.length);
          }),
        ),
        (any) => {
          const read = readSent(any, digest);
          if (!read.ok) expect(read.error).toMatch(/^its? [\x20-\x7e]{1,80}$/);
          else expect(JSON.parse(any)).toEqual(JSON.parse(text));
        },
      ),
      { numRuns: 500 },
    );
  });
});
