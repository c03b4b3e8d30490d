import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GateError } from "../../src/lib/errors.ts";
import { nearest } from "../../src/lib/nearest.ts";
import { PRICE_SOURCE } from "../../src/request/card-data.ts";
import { buildCardTable, type CardSettings } from "../../src/request/cards.ts";

const table = buildCardTable();

test("the candidates are the priced eight", () => {
  const eight = table.cards.filter((card) => card.candidate);
  expect(eight.map((card) => [card.id, card.gb, card.usdPerHour, card.names[0]])).toEqual([
    ["T4", 16, 0.59, "T4"],
    ["L4", 24, 0.8, "L4"],
    ["A10G", 24, 1.1, "A10G"],
    ["A100-40", 40, 2.1, "A100"],
    ["L40S", 48, 1.95, "L40S"],
    ["A100-80", 80, 2.5, "A100-80GB"],
    ["H100", 80, 3.95, "H100"],
    ["H200", 141, 4.54, "H200"],
  ]);
  expect(table.priceSource).toBe(PRICE_SOURCE);
});

test("every card says where its capacity comes from, and every name finds a card of its own id", () => {
  for (const card of table.cards) {
    expect(card.source.capacity.length).toBeGreaterThan(5);
    expect(card.candidate).toBe(card.usdPerHour !== null);
    for (const name of [card.id, ...card.names]) {
      for (const spelled of [name, name.toLowerCase(), name.toUpperCase(), ` ${name} `]) {
        expect(`${spelled}: ${table.find(spelled)?.id}`).toBe(`${spelled}: ${card.id}`);
      }
    }
  }
});

/** Name as a catalog, a driver or a site writes it, id and GB. */
const NAMES: [string, string | null, number?][] = [
  ["A100", "A100-40", 40],
  ["A100-40GB", "A100-40", 40],
  ["a100-80gb", "A100-80", 80],
  ["a100_80gb", "A100-80", 80],
  ["nvidia_a100-sxm4-80gb", "A100-80", 80],
  ["nvidia_a100-sxm4-40gb", "A100-40", 40],
  ["nvidia_a100_80gb_pcie", "A100-80", 80],
  ["NVIDIA A100-PCIE-40GB", "A100-40", 40],
  ["nvidia_a100-pcie-40gb", "A100-40", 40],
  ["a100-sxm-64gb", "A100-64GB", 64],
  ["nvidia_h100_80gb_hbm3", "H100", 80],
  ["nvidia_h100_pcie", "H100", 80],
  ["h100-80", "H100", 80],
  ["h100_sxm5_80gb", "H100", 80],
  ["H100-MEGA", "H100", 80],
  ["nvidia_h100_64gb_hbm2", "H100-64GB", 64],
  ["nvidia_h100_nvl", "H100-NVL", 94],
  ["h100nvl", "H100-NVL", 94],
  ["H100-NVL", "H100-NVL", 94],
  ["nvidia_h200", "H200", 141],
  ["nvidia_h200_nvl", "H200", 141],
  ["NVIDIA-H200-NVL", "H200", 141],
  ["h200-141gb", "H200", 141],
  ["nvidia_gh200_480gb", "GH200", 96],
  ["nvidia_gh200_120gb", "GH200", 96],
  ["nvidia_gh200_144g_hbm3e", "GH200-144", 144],
  ["nvidia_b200", "B200", 180],
  ["tesla_v100-sxm2-32gb", "V100-32", 32],
  ["tesla_v100-sxm2-16gb", "V100-16", 16],
  ["tesla_v100-pcie-16gb", "V100-16", 16],
  ["tesla_v100s-pcie-32gb", "V100-32", 32],
  ["v100", "V100-16", 16],
  ["v100-32", "V100-32", 32],
  ["tesla_t4", "T4", 16],
  ["T4g", "T4g", 16],
  ["nvidia_l4", "L4", 24],
  ["nvidia_l40s", "L40S", 48],
  ["nvidia_l40", "L40", 48],
  ["nvidia_a10", "A10G", 24],
  ["nvidia_a30", "A30", 24],
  ["nvidia_a40", "A40", 48],
  ["nvidia_a16", "A16", 16],
  ["nvidia_rtx_a6000", "A6000", 48],
  ["rtxa6000", "A6000", 48],
  ["nvidia_rtx_a5000", "A5000", 24],
  ["nvidia_rtx_6000_ada_generation", "RTX6000-Ada", 48],
  ["RTX6000Ada", "RTX6000-Ada", 48],
  ["nvidia_rtx_pro_6000_blackwell_server_edition", "RTXPRO6000", 96],
  ["quadro_rtx_6000", "Quadro-RTX6000", 24],
  ["RTX6000", "Quadro-RTX6000", 24],
  ["quadro_rtx_8000", "Quadro-RTX8000", 48],
  ["nvidia_geforce_rtx_3090", "RTX3090", 24],
  ["rtx_3090", "RTX3090", 24],
  ["nvidia_geforce_rtx_4090", "RTX4090", 24],
  ["nvidia_geforce_rtx_5090", "RTX5090", 32],
  ["geforce_rtx_2080_ti", "RTX2080Ti", 11],
  ["mi250x", "MI250X", 64],
  ["mi300a", "MI300A", 128],
  ["amd_instinct_mi300x_oam", "MI300X", 192],
  ["mi325x", "MI325X", 256],
  ["Gaudi2", "Gaudi2", 96],
  ["hl-225", "Gaudi2", 96],
  ["gaudi_3", "Gaudi3", 128],
  ["a100_3g.20gb", "A100-40-3g.20gb", 20],
  ["nvidia_a100_1g.5gb", "A100-40-1g.5gb", 5],
  ["nvidia_a100-sxm4-80gb_mig_3g.40gb", "A100-80-3g.40gb", 40],
  ["nvidia_h100_80gb_hbm3_4g.40gb", "H100-4g.40gb", 40],
  ["nvidia_a30_2g.12gb", "A30-2g.12gb", 12],
  ["h200-1g.18gb", "H200-1g.18gb", 18],
  ["1g.10gb", "MIG-1g.10gb", 10],
  ["1g.10gb+me", "MIG-1g.10gb", 10],
  ["mig-1g.5gb", "MIG-1g.5gb", 5],
  ["1c.3g.20gb", "MIG-3g.20gb", 20],
  ["a100-mig-1g-5gb", "A100-40-1g.5gb", 5],
  ["unheardof_7g.40gb", "MIG-7g.40gb", 40],
  ["rtx_6000", null],
  ["rtx_5000", null],
  ["volta", null],
  ["k2000", null],
  ["gpu", null],
  ["8xH100", null],
  ["h100-81", null],
  ["0g.5gb", null],
  ["1g.0gb", null],
  ["", null],
  ["a".repeat(10_000), null],
  ["constructor", null],
  ["__proto__", null],
];

describe("names", () => {
  for (const [name, id, gb] of NAMES) {
    test(JSON.stringify(name.slice(0, 60)), () => {
      const card = table.find(name);
      expect(card?.id ?? null).toBe(id);
      if (gb !== undefined) expect(card?.gb).toBe(gb);
      if (/\dg[.-]\d+gb/.test(name) && card !== null)
        expect([card.slice, card.candidate]).toEqual([true, false]);
    });
  }
});

describe("the nearest name", () => {
  const ROWS: [string, string | null][] = [
    ["8xH100", "H100:8"],
    ["H100x8", "H100:8"],
    ["8 x h100", "H100:8"],
    ["4*a100", "A100:4"],
    ["8xH10", "H100:8"],
    ["h1000", "H100"],
    ["h10", "H100"],
    ["A100-80G8", "A100-80GB"],
    ["MI300Z", "MI300A"],
    ["h200_foo", "H200"],
    ["zzzzz", null],
    ["", null],
  ];
  for (const [name, near] of ROWS) test(JSON.stringify(name), () => expect(table.nearest(name)).toBe(near));
  test("of a site with a GPU map is one of its types", () => {
    const mapped = buildCardTable({ gpuMap: { a100l: "A100-80", h100: "H100" } });
    expect(mapped.nearest("a100")).toBe("a100l");
    expect(mapped.nearest("2xh100")).toBe("h100:2");
    expect(mapped.nearest("l40s")).toBe(null);
  });
});

describe("nearest words", () => {
  const known = ["batch", "seq-len", "lora-rank", "lora-targets"];
  const ROWS: [string, string | null][] = [
    ["batchsize", "batch"],
    ["bacth", "batch"],
    ["seqlen", "seq-len"],
    ["SEQ_LEN", "seq-len"],
    ["lora", null],
    ["lora-target", "lora-targets"],
    ["xyz", null],
    ["b", null],
    ["x".repeat(100_000), null],
  ];
  for (const [word, near] of ROWS) test(word.slice(0, 20), () => expect(nearest(word, known)).toBe(near));
  test("a known word is its own nearest", () => {
    fc.assert(fc.property(fc.constantFrom(...known), (word) => nearest(word, known) === word));
  });
});

describe("a site's prices, cards and types", () => {
  test("prices by id, by any name, without case; the others keep theirs", () => {
    const priced = buildCardTable({ prices: { "A100-80GB": 9, h100: 1, "a100_3g.20gb": 0.5 } });
    expect(priced.find("A100-80")?.usdPerHour).toBe(9);
    expect(priced.find("A100-80")?.source.price).toBe("the site's prices");
    expect(priced.find("nvidia_h100_pcie")?.usdPerHour).toBe(1);
    expect(priced.find("nvidia_a100_3g.20gb")?.usdPerHour).toBe(0.5);
    expect(priced.find("T4")?.usdPerHour).toBe(0.59);
    expect(priced.cards.find((card) => card.id === "A100-80")?.usdPerHour).toBe(9);
    expect(priced.priceSource).toBe(`the site's prices over ${PRICE_SOURCE}`);
  });
  test("a card file adds candidates and changes known ones", () => {
    const site = buildCardTable({
      cards: {
        "H100-96": { gb: 96, usd_per_hour: 3, names: ["h100_96gb"] },
        MI300X: { usd_per_hour: 2 },
        A40: {},
        h100: { names: ["hopper"] },
      },
    });
    expect(site.find("H100_96GB")).toMatchObject({
      id: "H100-96",
      gb: 96,
      usdPerHour: 3,
      candidate: true,
      vendor: "cuda",
    });
    expect(site.find("mi300x")).toMatchObject({
      id: "MI300X",
      gb: 192,
      usdPerHour: 2,
      candidate: true,
      vendor: "rocm",
    });
    expect(site.find("a40")).toMatchObject({ id: "A40", gb: 48, usdPerHour: null, candidate: true });
    expect(site.find("hopper")).toMatchObject({ id: "H100", gb: 80, usdPerHour: 3.95 });
    expect(table.find("mi300x")?.candidate).toBe(false);
  });
  test("a memory alone, and a list of cards", () => {
    expect(buildCardTable({ cards: { X1: 12 } }).find("x1")).toMatchObject({
      id: "X1",
      gb: 12,
      candidate: true,
    });
    expect(
      buildCardTable({ cards: [{ id: "X1", gb: 12, vendor: "other", candidate: false }] }).find("X1"),
    ).toMatchObject({ vendor: "other", candidate: false });
  });
  test("a site's name goes before a built-in one", () => {
    expect(buildCardTable({ cards: { Ours: { gb: 64, names: ["a100"] } } }).find("A100")?.id).toBe("Ours");
    expect(buildCardTable({ cards: { T4: { names: ["h100"] } } }).find("H100")?.id).toBe("T4");
  });
  test("with a GPU map only its types are known, and cards are named its way", () => {
    const mapped = buildCardTable({
      gpuMap: { a100: "A100-80", ampere: "A100-80", mi: "mi250x", small: "1g.10gb" },
      prices: { a100: 2 },
    });
    expect(mapped.cards.map((card) => card.id)).toEqual(["A100-80", "MI250X", "MIG-1g.10gb"]);
    expect(mapped.cards.every((card) => card.candidate)).toBe(true);
    expect(mapped.find("A100")).toMatchObject({ id: "A100-80", usdPerHour: 2 });
    expect(mapped.nameOf(mapped.find("ampere")!)).toBe("a100");
    expect(mapped.find("small")).toMatchObject({ gb: 10, slice: true });
    expect(mapped.find("h100")).toBe(null);
    expect(mapped.find("A100-80")).toBe(null);
  });
  test("an absent or empty file changes nothing", () => {
    const same = buildCardTable({ cards: null, prices: {}, gpuMap: null });
    expect(same.cards).toEqual(table.cards);
    expect(buildCardTable({ gpuMap: {} }).find("h100")?.id).toBe("H100");
  });

  const WRONG: [string, CardSettings, string, string][] = [
    ["prices are no object", { prices: 3 }, "price file", "Write"],
    ["a price is text", { prices: { H100: "3" } }, "`H100`", "Write a number"],
    ["a price is negative", { prices: { H100: -1 } }, "`H100`", "Write a number"],
    ["a price is for no card", { prices: { H10O: 1 } }, "`H10O`", "Did you mean `H100`?"],
    ["a map is a list", { gpuMap: ["a100"] }, "GPU map", "Write"],
    ["a map names no card", { gpuMap: { a10: "A1OG" } }, "`a10`", "Did you mean `A10G`?"],
    ["a map holds a number", { gpuMap: { a100: 40 } }, "`a100`", "Write"],
    ["a map has an empty type", { gpuMap: { " ": "A100" } }, "GPU map", "Write"],
    ["a new card has no memory", { cards: { X: {} } }, "`X`", "gb"],
    ["a card's memory is text", { cards: { X: { gb: "80" } } }, "`gb`", "Write"],
    ["a card's memory is 0", { cards: { X: { gb: 0 } } }, "`gb`", "Write"],
    ["a card's memory is infinite", { cards: { X: { gb: Number.POSITIVE_INFINITY } } }, "`gb`", "Write"],
    [
      "a card has an unknown key",
      { cards: { X: { gb: 80, nams: ["x"] } } },
      "`nams`",
      "Did you mean `names`?",
    ],
    ["a card's names are text", { cards: { X: { gb: 80, names: "x" } } }, "`names`", "Write"],
    ["a card's vendor is unknown", { cards: { X: { gb: 80, vendor: "nvidia" } } }, "`vendor`", "Write"],
    ["a card's slice is text", { cards: { X: { gb: 80, slice: "yes" } } }, "`slice`", "Write"],
    ["a listed card has no id", { cards: [{ gb: 80 }] }, "entry 1", "Write"],
    ["cards are text", { cards: "x" }, "card file", "Write"],
  ];
  for (const [name, settings, message, hint] of WRONG) {
    test(`refused: ${name}`, () => {
      try {
        buildCardTable(settings);
        throw new Error("was accepted");
      } catch (error) {
        expect(error).toBeInstanceOf(GateError);
        expect((error as GateError).code).toBe("settings-invalid");
        expect((error as GateError).message).toContain(message);
        expect((error as GateError).hint).toContain(hint);
      }
    });
  }
});

test("looking names up never throws, and a found card has a positive memory", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[a-z0-9_.+-]{0,30}$/)),
      (name) => {
        const card = table.find(name);
        const near = table.nearest(name);
        return (card === null || card.gb > 0) && (near === null || near.length > 0);
      },
    ),
    { numRuns: 500 },
  );
});

test("a slice has the memory its name says, whatever it is cut from", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("", "a100_", "nvidia_h100_80gb_hbm3_", "NVIDIA H200 ", "foo-"),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 999 }),
      fc.constantFrom("", "+me", "+gfx", ".me"),
      (card, slices, gb, extra) => {
        expect(table.find(`${card}${slices}g.${gb}gb${extra}`)).toMatchObject({
          gb,
          slice: true,
          candidate: false,
        });
      },
    ),
  );
});
