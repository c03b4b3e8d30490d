import { capacityGb, GB, grouped } from "../lib/units.ts";
import type { CardTable } from "../request/types.ts";
import { bytesAt, peakBytes } from "../sizing/peak.ts";
import type { Sizing } from "../sizing/types.ts";
import { samplesOf } from "./human.ts";
import { cut, oneDecimal, printable } from "./text.ts";

/** What a plot is drawn from. */
export interface Plotted {
  readonly sizing: Sizing;
  /** The asked batch: samples per step, over all cards that share the job. */
  readonly batch: number;
  readonly headroom: number;
  readonly table: CardTable;
}

/** A batch and the memory it needs there. */
export interface PlotPoint {
  readonly batch: number;
  readonly gb: number;
}

/** Cards of one capacity: a horizontal line and its name. */
export interface PlotLevel {
  readonly gb: number;
  readonly label: string;
}

/** One plot in the units of its axes; how it is drawn is the business of `plot-text` and `plot-svg`. */
export interface Plot {
  readonly title: string;
  /** What the curve and the lines are, in words. */
  readonly legend: string;
  /** The asked batch in words, with need and peak. */
  readonly told: string;
  /** Sentences that belong to the figures: what was assumed, and that a run would fail. */
  readonly notes: readonly string[];
  /** First and last batch of the horizontal axis. */
  readonly batches: readonly [number, number];
  /** The upper end of the vertical axis, which starts at zero. */
  readonly topGb: number;
  readonly batchTicks: readonly number[];
  readonly gbTicks: readonly number[];
  /** The need as a broken line, with a point wherever another moment takes over. */
  readonly curve: readonly PlotPoint[];
  readonly asked: PlotPoint;
  /** From the smallest capacity to the largest. */
  readonly levels: readonly PlotLevel[];
}

/** Titles of the two axes. */
export const BATCH_AXIS = "batch (samples a step, on all cards together)";
export const GB_AXIS = "GB";

/** Room above the highest thing drawn, as a share of it. */
const AIR = 0.03;

/** Even where every card is passed at once, a curve needs some batches to be seen. */
const FEWEST_BATCHES = 4;

/**
 * The plot of the need (peak x headroom) by batch, against the capacity of each card that is compared and suggested.
 * The batches end where both the asked one and the one that outgrows the largest card are on it.
 */
export function plotOf({ sizing, batch, headroom, table }: Plotted): Plot {
  const need = (samples: number) => (peakBytes(sizing, samples) * headroom) / GB;
  const levels = levelsOf(table);
  const largestGb = levels.at(-1)?.gb ?? 0;
  const last = Math.max(FEWEST_BATCHES, batch, firstAbove(sizing, (largestGb * GB) / headroom));
  const curve = kinks(sizing, last).map((samples) => ({ batch: samples, gb: need(samples) }));
  const topGb = Math.max(need(last), need(1), largestGb) * (1 + AIR);
  const asked = { batch, gb: need(batch) };
  return {
    title: `${cut(sizing.model)}: memory by batch, ${samplesOf(sizing)}`,
    legend:
      `Curve: need = peak x ${headroom} headroom.` +
      (levels.length === 0 ? "" : " Level lines: what one card holds."),
    told:
      `batch ${batch} needs ${oneDecimal(asked.gb)} GB ` +
      `(peak ${oneDecimal(peakBytes(sizing, batch) / GB)} GB x ${headroom})`,
    notes: [...sizing.assumed.map((text) => `Assumed: ${text}`), ...(sizing.cautions ?? [])].map(printable),
    batches: [1, last],
    topGb,
    batchTicks: ticks(1, last, 8, true),
    gbTicks: ticks(0, topGb, 5, false),
    curve,
    asked,
    levels,
  };
}

/** The cards that are compared and suggested, those of one capacity together. */
function levelsOf(table: CardTable): PlotLevel[] {
  const names = new Map<number, string[]>();
  for (const card of table.cards) {
    if (card.candidate) names.set(card.gb, [...(names.get(card.gb) ?? []), printable(table.nameOf(card))]);
  }
  return [...names]
    .sort(([a], [b]) => a - b)
    .map(([gb, cards]) => ({ gb, label: `${capacityGb(gb)} ${cards.join(", ")}` }));
}

/** The first batch whose peak is above `bytes`; 1 where no batch is, since it then does not stretch the axis. */
function firstAbove(sizing: Sizing, bytes: number): number {
  let first = Number.POSITIVE_INFINITY;
  for (const { fixedBytes, perSampleBytes } of sizing.moments) {
    if (fixedBytes + perSampleBytes > bytes) return 1;
    if (perSampleBytes > 0) first = Math.min(first, Math.floor((bytes - fixedBytes) / perSampleBytes) + 1);
  }
  return Number.isFinite(first) ? first : 1;
}

/** The batches from 1 to `last` at which the curve turns, ends included. */
function kinks(sizing: Sizing, last: number): number[] {
  const found = [1, last];
  sizing.moments.forEach((one, index) => {
    for (const other of sizing.moments.slice(index + 1)) {
      const at = (one.fixedBytes - other.fixedBytes) / (other.perSampleBytes - one.perSampleBytes);
      if (at > 1 && at < last && bytesAt(one, at) >= peakBytes(sizing, at) * (1 - 1e-12)) found.push(at);
    }
  });
  return [...new Set(found)].sort((a, b) => a - b);
}

/** Round numbers from `from` to `to`, about `wanted` of them; `whole` ones where asked for, and then `from` itself. */
function ticks(from: number, to: number, wanted: number, whole: boolean): number[] {
  const rough = (to - from) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(whole ? 1 : 0, [1, 2, 5, 10].find((factor) => factor * power >= rough)! * power);
  const values = whole ? [from] : [];
  for (let count = Math.ceil(from / step); count * step <= to; count++) {
    const value = Number((count * step).toPrecision(12));
    if (!values.includes(value)) values.push(value);
  }
  return values;
}

/** A tick's number: whole where it is, else with the decimals it needs. */
export function tickText(value: number): string {
  return Number.isInteger(value) ? grouped(value) : String(Number(value.toPrecision(6)));
}
