import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Plot, plotOf, tickText } from "../../src/render/plot.ts";
import { plotSvg } from "../../src/render/plot-svg.ts";
import { plotText } from "../../src/render/plot-text.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import type { CardTable } from "../../src/request/types.ts";
import { peakBytes } from "../../src/sizing/peak.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { sizingOf } from "../verdict/support.ts";

const floorAndLoss = sizingOf([
  { name: "optimizer-step", fixed: 30 },
  { name: "loss", fixed: 22, per: 4 },
]);

const NO_CARD: CardTable = { ...buildCardTable({}), cards: [] };

const drawn = (sizing: Sizing, batch: number, table: CardTable = buildCardTable({}), headroom = 1.15): Plot =>
  plotOf({ sizing, batch, headroom, table });

describe("what is drawn", () => {
  test("the curve is the need, and turns where another moment takes over", () => {
    const { curve, asked } = drawn(floorAndLoss, 8, buildCardTable({}), 1.5);
    expect(curve.map(({ batch, gb }) => [batch, Number(gb.toFixed(6))])).toEqual([
      [1, 45],
      [2, 45],
      [19, 147],
    ]);
    expect(asked).toEqual({ batch: 8, gb: (22 + 8 * 4) * 1.5 });
  });

  // The largest card of the built-in table holds 141 GB.
  const ranges: readonly (readonly [string, Sizing, number, number])[] = [
    ["to the batch that outgrows the largest card", sizingOf([{ fixed: 10, per: 1 }]), 4, 113],
    ["to the asked batch beyond it", sizingOf([{ fixed: 10, per: 1 }]), 500, 500],
    ["of a model that no card holds", sizingOf([{ fixed: 500, per: 1 }]), 1, 4],
    ["of a size that no batch changes", sizingOf([{ fixed: 10 }]), 1, 4],
  ];
  for (const [name, sizing, batch, last] of ranges) {
    test(`the batches go ${name}`, () => expect(drawn(sizing, batch).batches).toEqual([1, last]));
  }

  test("a batch that fills the largest card to the byte does not outgrow it", () => {
    expect(drawn(sizingOf([{ fixed: 13, per: 16 }]), 1, buildCardTable({}), 1).batches).toEqual([1, 9]);
  });

  test("cards of one capacity are one line; those that are only judged when asked for are none", () => {
    expect(drawn(floorAndLoss, 1).levels).toEqual([
      { gb: 16, label: "16 GB T4" },
      { gb: 24, label: "24 GB L4, A10G" },
      { gb: 40, label: "40 GB A100" },
      { gb: 48, label: "48 GB L40S" },
      { gb: 80, label: "80 GB A100-80GB, H100" },
      { gb: 141, label: "141 GB H200" },
    ]);
  });

  test("a site's cards are drawn under the site's names", () => {
    const table = buildCardTable({ gpuMap: { big: "H200", half: "H100-NVL" } });
    expect(drawn(floorAndLoss, 1, table).levels.map(({ label }) => label)).toEqual([
      "94 GB half",
      "141 GB big",
    ]);
  });

  test("what was assumed and what will fail is told with it", () => {
    const sizing = {
      ...floorAndLoss,
      assumed: ["No\nbias."],
      notes: ["A note."],
      cautions: ["It will not run."],
    };
    expect(drawn(sizing, 1).notes).toEqual(["Assumed: No bias.", "It will not run."]);
  });

  const numbers: readonly (readonly [number, string])[] = [
    [0, "0"],
    [0.05, "0.05"],
    [12.5, "12.5"],
    [8000, "8,000"],
    [1_000_000, "1,000,000"],
  ];
  for (const [value, told] of numbers) test(`the tick ${told}`, () => expect(tickText(value)).toBe(told));
});

describe("in a terminal", () => {
  const cases: readonly (readonly [string, Plot, number, boolean])[] = [
    ["a floor and a slope", drawn(floorAndLoss, 8), 100, false],
    ["the same in ASCII", drawn(floorAndLoss, 8), 80, true],
    ["the narrowest", drawn({ ...floorAndLoss, assumed: ["Activations are llama's."] }, 8), 30, false],
    ["more than every card holds", drawn(sizingOf([{ fixed: 900, per: 50 }]), 64), 80, false],
    ["without a card", drawn(floorAndLoss, 2, NO_CARD), 60, true],
  ];
  for (const [name, plot, width, ascii] of cases) {
    test(name, () => expect(`\n${plotText(plot, { width, ascii })}`).toMatchSnapshot());
  }

  const points = fc.record({
    lines: fc.array(
      fc.record({
        fixed: fc.double({ min: 0.001, max: 3000, noNaN: true }),
        per: fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 500, noNaN: true })),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    batch: fc.integer({ min: 1, max: 100_000 }),
    width: fc.integer({ min: 1, max: 240 }),
    ascii: fc.boolean(),
  });

  test("every line fits the width, the asked batch and every capacity are in the picture", () => {
    fc.assert(
      fc.property(points, ({ lines, batch, width, ascii }) => {
        const sizing = sizingOf(lines);
        const plot = drawn(sizing, batch);
        const text = plotText(plot, { width, ascii });
        const rows = text.split("\n");
        for (const row of rows) expect(Array.from(row).length).toBeLessThanOrEqual(Math.max(width, 30));
        const area = rows.filter((row) => /^[\d,. ]* [│┤|+]/.test(row));
        expect(area.length).toBeGreaterThanOrEqual(18);
        expect(area.join("").split(ascii ? "O" : "●").length).toBe(2);
        if (ascii) expect(text).toMatch(/^[\n -~]*$/);
        // What the axes hold: the asked batch, its need, every capacity and the curve to its end.
        const [first, last] = plot.batches;
        expect(batch >= first && batch <= last).toBe(true);
        for (const { gb } of [plot.asked, ...plot.levels, ...plot.curve]) expect(gb).toBeLessThan(plot.topGb);
        expect(plot.batchTicks.length).toBeLessThan(12);
        expect(plot.gbTicks.length).toBeGreaterThan(1);
        // The largest capacity is passed within the axis, wherever any batch passes it.
        const outgrows = lines.some(({ per }) => per > 0);
        if (outgrows) expect((peakBytes(sizing, last) * 1.15) / 1e9).toBeGreaterThan(141 * (1 - 1e-9));
      }),
      { numRuns: 200, includeErrorInReport: true },
    );
  });

  test("the broken line is the need at every batch, not only where it turns", () => {
    fc.assert(
      fc.property(points, ({ lines, batch }) => {
        const sizing = sizingOf(lines);
        const { curve, batches } = drawn(sizing, batch);
        for (const share of [0.01, 0.2, 0.5, 0.77, 0.99]) {
          const at = 1 + share * (batches[1] - 1);
          const after = curve.findIndex((point) => point.batch >= at);
          const [from, to] = [curve[after - 1]!, curve[after]!];
          const told = from.gb + ((at - from.batch) / (to.batch - from.batch)) * (to.gb - from.gb);
          const need = (peakBytes(sizing, at) * 1.15) / 1e9;
          expect(Math.abs(told - need)).toBeLessThanOrEqual(need * 1e-6);
        }
      }),
      { numRuns: 100 },
    );
  });
});

interface Element {
  readonly tag: string;
  readonly at: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Elements in document order, as a real XML parser reads them; throws where the document is not well-formed. */
function parsed(svg: string): Element[] {
  const program = `
import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps([{"tag": e.tag.split("}")[-1], "at": e.attrib, "text": e.text or ""} for e in root.iter()]))`;
  const ran = Bun.spawnSync(["python3", "-c", program], { stdin: new TextEncoder().encode(svg) });
  if (ran.exitCode !== 0) throw new Error(ran.stderr.toString());
  return JSON.parse(ran.stdout.toString());
}

describe("as SVG", () => {
  test("the whole document", () => expect(`\n${plotSvg(drawn(floorAndLoss, 8))}`).toMatchSnapshot());

  const hostile = `<script>alert("&")</script>\u0000\u001b[31m\uffff\u202e${"x".repeat(300)}`;
  const documents: readonly (readonly [string, Plot])[] = [
    ["a floor and a slope", drawn(floorAndLoss, 8)],
    ["far beyond every card", drawn(sizingOf([{ fixed: 900, per: 50 }]), 4000)],
    ["no card", drawn(floorAndLoss, 2, NO_CARD)],
    ["a hostile name", drawn({ ...floorAndLoss, model: hostile, assumed: [hostile] }, 3)],
    [
      "thirty capacities",
      drawn(
        floorAndLoss,
        3,
        buildCardTable({
          cards: Object.fromEntries(
            Array.from({ length: 30 }, (_, n) => [`card<${n}>`, { gb: 10 + n / 10 }]),
          ),
        } as Parameters<typeof buildCardTable>[0]),
      ),
    ],
  ];
  for (const [name, plot] of documents) {
    // Parsed once, and not before a test runs.
    let read: Element[] | null = null;
    const elements = () => {
      read ??= parsed(plotSvg(plot));
      return read;
    };

    test(`${name}: only shapes and text, nothing loaded, nothing run`, () => {
      const allowed = ["svg", "title", "desc", "style", "rect", "text", "line", "polyline", "circle"];
      for (const { tag, at } of elements()) {
        expect(allowed).toContain(tag);
        for (const key of Object.keys(at)) expect(key).not.toMatch(/^on|href|^src$/);
      }
      expect(elements().find(({ tag }) => tag === "style")?.text).not.toMatch(/url\(|@import/);
    });

    test(`${name}: all of it inside the view, labels apart from each other`, () => {
      const all = elements();
      const [, , width = 0, height = 0] = all[0]!.at.viewBox!.split(" ").map(Number);
      const inside = (x: number, y: number) => {
        expect(x >= 0 && x <= width && y >= 0 && y <= height, `${x}, ${y}`).toBe(true);
      };
      for (const { at } of all) {
        for (const [x, y] of [
          ["x", "y"],
          ["x1", "y1"],
          ["x2", "y2"],
          ["cx", "cy"],
        ] as const) {
          if (at[x] !== undefined) inside(Number(at[x]), Number(at[y] ?? 0));
        }
        for (const point of at.points?.split(" ") ?? []) {
          const [x = Number.NaN, y = Number.NaN] = point.split(",").map(Number);
          inside(x, y);
        }
      }
      const cards = all.filter(({ at }) => at.class === "card").map(({ at }) => Number(at.y));
      expect(cards.length).toBe(plot.levels.length);
      for (let at = 1; at < cards.length; at++) expect(cards[at - 1]! - cards[at]!).toBeGreaterThan(8);
    });
  }

  test("it says what the terminal says", () => {
    const plot = drawn({ ...floorAndLoss, assumed: ["Activations are llama's."] }, 8);
    const words = parsed(plotSvg(plot)).map(({ text }) => text);
    const told = [
      plot.title,
      plot.legend,
      plot.told,
      ...plot.levels.map(({ label }) => label),
      ...plot.notes,
    ];
    for (const text of told) expect(words).toContain(text);
    for (const tick of plot.gbTicks) expect(words).toContain(tickText(tick));
  });
});
