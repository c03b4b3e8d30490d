import { BATCH_AXIS, GB_AXIS, type Plot, tickText } from "./plot.ts";
import { cut, wrap } from "./text.ts";

export interface PlotTextOptions {
  /** Columns of the whole plot; below 30 it is as wide as at 30. */
  readonly width: number;
  /** Signs of ASCII only, for terminals without braille patterns. */
  readonly ascii?: boolean;
}

const NARROWEST = 30;
const NARROWEST_AREA = 16;
/** `141 G...`: less says nothing of a card. */
const NARROWEST_LABEL = 8;
const WIDEST_AREA = 100;
const ROWS = 18;

/** How one set of characters draws: dots a cell, and the signs around the area. */
interface Pen {
  readonly across: number;
  readonly down: number;
  /** Every which dot of a capacity's line is set. */
  readonly sparse: number;
  /** The sign of a cell by the dots that are set in it. */
  sign(cell: Cell): string;
  readonly point: string;
  readonly side: string;
  readonly gbTick: string;
  readonly base: string;
  readonly batchTick: string;
  readonly corner: string;
}

/** A cell: its dots as bits by row and column, and what was drawn in it last. */
interface Cell {
  dots: number;
  last: Drawn | null;
}

type Drawn = "capacity" | "asked" | "curve" | "point";

/** Cells of two by four dots. Unicode numbers the lowest two dots last. */
const BRAILLE: Pen = {
  across: 2,
  down: 4,
  sparse: 4,
  sign: ({ dots, last }) =>
    last === null
      ? " "
      : last === "point"
        ? BRAILLE.point
        : String.fromCodePoint(
            0x2800 +
              [0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80].reduce(
                (sum, bit, at) => sum + (dots & (1 << at) ? bit : 0),
                0,
              ),
          ),
  point: "●",
  side: "│",
  gbTick: "┤",
  base: "─",
  batchTick: "┬",
  corner: "└",
};

const ASCII: Pen = {
  across: 1,
  down: 1,
  sparse: 1,
  sign: ({ last }) => (last === null ? " " : { capacity: "-", asked: ":", curve: "*", point: "O" }[last]),
  point: "O",
  side: "|",
  gbTick: "+",
  base: "-",
  batchTick: "+",
  corner: "+",
};

/** What a terminal shows of a plot. No colour. */
export function plotText(plot: Plot, options: PlotTextOptions): string {
  const pen = options.ascii === true ? ASCII : BRAILLE;
  const width = Math.max(options.width, NARROWEST);
  const rowOf = (gb: number) => Math.floor(dotRow(plot, gb, pen) / pen.down);
  const labels = labelsByRow(plot, rowOf);
  const tickTexts = new Map(plot.gbTicks.map((tick) => [rowOf(tick), tickText(tick)]));
  const gutter = Math.max(GB_AXIS.length, ...[...tickTexts.values()].map((text) => text.length)) + 2;
  const widest = Math.max(0, ...[...labels.values()].map((label) => label.length + 1));
  const room = Math.min(widest, Math.floor((width - gutter) * 0.4), width - gutter - NARROWEST_AREA);
  const right = room < NARROWEST_LABEL ? 0 : room;
  const area = Math.min(WIDEST_AREA, width - gutter - right);
  const rows = draw(plot, area, pen).map((cells, row) => {
    const tick = tickTexts.get(row);
    const label = labels.get(row);
    const told =
      label === undefined || right === 0 ? "" : ` ${label.length < right ? label : cut(label, right - 4)}`;
    const side = tick === undefined ? pen.side : pen.gbTick;
    return `${(tick ?? "").padStart(gutter - 2)} ${side}${cells.map(pen.sign).join("")}${told}`.trimEnd();
  });
  const base = new Array<string>(area).fill(pen.base);
  for (const tick of plot.batchTicks) base[columnOf(plot, tick, area)] = pen.batchTick;
  const margin = " ".repeat(gutter);
  const centred = gutter + Math.max(0, Math.floor((area - BATCH_AXIS.length) / 2));
  return `${[
    ...wrap(plot.title, width),
    ...indented(plot.legend, 2, width),
    "",
    GB_AXIS.padStart(gutter - 2),
    ...rows,
    `${" ".repeat(gutter - 1)}${pen.corner}${base.join("")}`,
    `${margin}${numbers(plot, area, width - gutter)}`,
    ...indented(BATCH_AXIS, centred, width),
    ...indented(`${pen.point} ${plot.told}`, 2, width),
    ...plot.notes.flatMap((text) => ["", ...wrap(text, width)]),
  ].join("\n")}\n`;
}

function indented(text: string, indent: number, width: number): string[] {
  return wrap(text, width - indent).map((line) => " ".repeat(indent) + line);
}

/** Rows of cells from the top: capacities, the asked batch and the curve, the later over the earlier. */
function draw(plot: Plot, area: number, pen: Pen): Cell[][] {
  const cells = Array.from({ length: ROWS }, () =>
    Array.from({ length: area }, (): Cell => ({ dots: 0, last: null })),
  );
  const columns = area * pen.across;
  const lines = ROWS * pen.down;
  const dot = (x: number, y: number, drawn: Drawn) => {
    const cell = cells[Math.floor(y / pen.down)]?.[Math.floor(x / pen.across)];
    if (cell === undefined) return;
    cell.dots |= 1 << ((y % pen.down) * pen.across + (x % pen.across));
    cell.last = drawn;
  };
  for (const { gb } of plot.levels) {
    for (let x = 0; x < columns; x += pen.sparse) dot(x, dotRow(plot, gb, pen), "capacity");
  }
  const asked = { x: columnOf(plot, plot.asked.batch, columns), y: dotRow(plot, plot.asked.gb, pen) };
  for (let y = asked.y; y < lines; y += 2) dot(asked.x, y, "asked");
  let before: number | null = null;
  for (let x = 0; x < columns; x++) {
    const y = dotRow(plot, gbAt(plot, batchAt(plot, x, columns)), pen);
    dot(x, y, "curve");
    // A steep curve stays one line.
    for (let at = y + 1; before !== null && at < before; at++) dot(x, at, "curve");
    before = y;
  }
  dot(asked.x, asked.y, "point");
  return cells;
}

/** The row of dots, from the top, on which an amount stands. */
function dotRow(plot: Plot, gb: number, pen: Pen): number {
  return Math.round((1 - gb / plot.topGb) * (ROWS * pen.down - 1));
}

function columnOf({ batches: [first, last] }: Plot, batch: number, columns: number): number {
  return Math.round(((batch - first) / (last - first)) * (columns - 1));
}

function batchAt({ batches: [first, last] }: Plot, column: number, columns: number): number {
  return first + (column / (columns - 1)) * (last - first);
}

/** The broken line's height at a batch. */
function gbAt({ curve }: Plot, batch: number): number {
  const at = curve.findIndex((point) => point.batch >= batch);
  const after = at === -1 ? curve.length - 1 : Math.max(1, at);
  const [from, to] = [curve[after - 1]!, curve[after]!];
  return from.gb + ((batch - from.batch) / (to.batch - from.batch)) * (to.gb - from.gb);
}

/** Capacities' names by row; several on one row stand together, so that none is put beside a line not its own. */
function labelsByRow(plot: Plot, rowOf: (gb: number) => number): Map<number, string> {
  const labels = new Map<number, string>();
  for (const { gb, label } of plot.levels) {
    const row = rowOf(gb);
    const there = labels.get(row);
    labels.set(row, there === undefined ? label : `${label}; ${there}`);
  }
  return labels;
}

/** The horizontal axis' numbers, each under its tick; one that would touch its neighbour is left out. */
function numbers(plot: Plot, area: number, room: number): string {
  let line = "";
  for (const tick of plot.batchTicks) {
    const text = tickText(tick);
    const centred = columnOf(plot, tick, area) - Math.floor((text.length - 1) / 2);
    const at = Math.max(0, Math.min(centred, room - text.length));
    if (line !== "" && at < line.length + 1) continue;
    line = line.padEnd(at) + text;
  }
  return line;
}
