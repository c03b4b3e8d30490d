import { escapedMarkup } from "./markup.ts";
import { BATCH_AXIS, GB_AXIS, type Plot, tickText } from "./plot.ts";
import { cut, wrap } from "./text.ts";

const WIDTH = 800;
const LEFT = 64;
const RIGHT = 610;
const TOP = 84;
const BOTTOM = 404;
/** Below this distance two lines of text touch. */
const LINE = 15;
const NOTE_COLUMNS = 112;
const LABEL_COLUMNS = 23;

/** Written out for both schemes: viewers that know no custom properties draw the light one. */
const STYLE = `
  text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .back { fill: #ffffff; }
  .grid { stroke: #e4e8ec; stroke-width: 1; }
  .axis { stroke: #59636e; stroke-width: 1; }
  .level { stroke: #b35900; stroke-width: 1.2; stroke-dasharray: 2 4; }
  .leader { stroke: #b35900; stroke-width: 1; fill: none; opacity: 0.6; }
  .card { fill: #8f4700; }
  .curve { stroke: #0b5fcc; stroke-width: 2.5; fill: none; stroke-linejoin: round; stroke-linecap: round; }
  .asked { stroke: #0b5fcc; stroke-width: 1.2; stroke-dasharray: 5 4; }
  .point { fill: #0b5fcc; stroke: #ffffff; stroke-width: 2; }
  .told { font-weight: 600; stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; paint-order: stroke; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .quiet { fill: #9aa4af; }
    .back { fill: #0f1318; }
    .grid { stroke: #262c34; }
    .axis { stroke: #9aa4af; }
    .level, .leader { stroke: #f0a35c; }
    .card { fill: #f5b87f; }
    .curve, .asked { stroke: #6cb0ff; }
    .point { fill: #6cb0ff; stroke: #0f1318; }
    .told { stroke: #0f1318; }
  }
`;

/** The plot as one SVG document: text stays text, nothing is loaded and nothing runs; it follows a dark scheme. */
export function plotSvg(plot: Plot): string {
  const x = (batch: number) =>
    round(LEFT + ((batch - plot.batches[0]) / (plot.batches[1] - plot.batches[0])) * (RIGHT - LEFT));
  const y = (gb: number) => round(BOTTOM - (gb / plot.topGb) * (BOTTOM - TOP));
  const notes = plot.notes.flatMap((note) => wrap(note, NOTE_COLUMNS));
  const height = BOTTOM + 62 + notes.length * LINE;
  const levels = plot.levels.map(({ gb }) => y(gb));
  const labels = spread(levels);
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="plot-title plot-desc">`,
    `<title id="plot-title">${escapedMarkup(plot.title)}</title>`,
    `<desc id="plot-desc">${escapedMarkup([plot.legend, `Marked: ${plot.told}.`, ...plot.notes].join(" "))}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="back" width="${WIDTH}" height="${height}"/>`,
    text(cut(plot.title, 90), { x: 20, y: 30, className: "title" }),
    text(plot.legend, { x: 20, y: 50, className: "quiet" }),
    text(GB_AXIS, { x: LEFT - 8, y: TOP - 12, className: "quiet", anchor: "end" }),
    ...plot.gbTicks.flatMap((tick) => [
      line("grid", [LEFT, y(tick)], [RIGHT, y(tick)]),
      text(tickText(tick), { x: LEFT - 8, y: y(tick) + 4, className: "quiet", anchor: "end" }),
    ]),
    ...apart(plot.batchTicks.map((tick) => ({ at: x(tick), told: tickText(tick) }))).flatMap(
      ({ at, told }) => [
        line("axis", [at, BOTTOM], [at, BOTTOM + 5]),
        text(told, { x: at, y: BOTTOM + 19, className: "quiet", anchor: "middle" }),
      ],
    ),
    line("axis", [LEFT, TOP], [LEFT, BOTTOM]),
    line("axis", [LEFT, BOTTOM], [RIGHT, BOTTOM]),
    text(BATCH_AXIS, { x: (LEFT + RIGHT) / 2, y: BOTTOM + 40, className: "quiet", anchor: "middle" }),
    ...plot.levels.flatMap(({ label }, index) => [
      line("level", [LEFT, levels[index]!], [RIGHT, levels[index]!]),
      `<polyline class="leader" points="${RIGHT + 2},${levels[index]} ${RIGHT + 12},${labels[index]} ${RIGHT + 16},${labels[index]}"/>`,
      text(cut(label, LABEL_COLUMNS), {
        x: RIGHT + 20,
        y: round(labels[index]! + 4),
        className: "card",
        hint: label,
      }),
    ]),
    line("asked", [x(plot.asked.batch), y(plot.asked.gb)], [x(plot.asked.batch), BOTTOM]),
    `<polyline class="curve" points="${plot.curve.map((point) => `${x(point.batch)},${y(point.gb)}`).join(" ")}"/>`,
    `<circle class="point" cx="${x(plot.asked.batch)}" cy="${y(plot.asked.gb)}" r="6"/>`,
    askedText(plot, x(plot.asked.batch), y(plot.asked.gb)),
    ...notes.map((note, index) => text(note, { x: 20, y: BOTTOM + 66 + index * LINE, className: "quiet" })),
    "</svg>",
  ];
  return `${lines.join("\n")}\n`;
}

/** The asked batch's words, on the side of its point where there is room, above the curve on the left of it. */
function askedText(plot: Plot, x: number, y: number): string {
  const onLeft = x > (LEFT + RIGHT) / 2;
  return text(plot.told, {
    x: onLeft ? x - 10 : Math.max(x, LEFT) + 12,
    y: onLeft ? Math.max(y - 8, TOP - 12) : Math.min(y + 20, BOTTOM - 6),
    className: "told",
    anchor: onLeft ? "end" : "start",
  });
}

/** Heights of labels near `wanted` (from the lowest line up), moved apart where they would touch. */
function spread(wanted: readonly number[]): number[] {
  const step = Math.min(LINE, (BOTTOM - TOP) / Math.max(1, wanted.length - 1));
  const placed: number[] = [];
  for (const y of wanted) placed.push(Math.min(y, (placed.at(-1) ?? BOTTOM + step) - step));
  // Those pushed out at the top come back down, and press on the ones below them.
  for (let index = placed.length - 1, least = TOP - 4; index >= 0; index--, least += step) {
    if (placed[index]! >= least) break;
    placed[index] = least;
  }
  return placed.map(round);
}

/** Ticks whose numbers do not touch; the first stays. */
function apart(ticks: readonly { readonly at: number; readonly told: string }[]) {
  let end = Number.NEGATIVE_INFINITY;
  return ticks.filter(({ at, told }) => {
    const half = told.length * 3.5 + 4;
    if (at - half < end) return false;
    end = at + half;
    return true;
  });
}

interface Placed {
  readonly x: number;
  readonly y: number;
  readonly className: string;
  readonly anchor?: "middle" | "end" | "start";
  /** The whole of what was cut. */
  readonly hint?: string;
}

function text(words: string, { x, y, className, anchor, hint }: Placed): string {
  const more = hint === undefined || hint === words ? "" : `<title>${escapedMarkup(hint)}</title>`;
  const at = anchor === undefined || anchor === "start" ? "" : ` text-anchor="${anchor}"`;
  return `<text class="${className}" x="${x}" y="${y}"${at}>${escapedMarkup(words)}${more}</text>`;
}

function line(
  className: string,
  [x1, y1]: readonly [number, number],
  [x2, y2]: readonly [number, number],
): string {
  return `<line class="${className}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
}

function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}
