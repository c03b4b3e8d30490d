import type { Group } from "../ledger/totals.ts";
import { escapedMarkup } from "./markup.ts";
import { cut, dollars, oneDecimal, printable } from "./text.ts";

/** Days of a chart: the last ones. */
export const MOST_DAYS = 92;
/** Bars of a chart; the rest are one bar together. */
const MOST_BARS = 12;
const WIDTH = 800;
const DAYS_HEIGHT = 230;
const TOP = 16;
const BASE = 190;
const LEFT = 56;
const ROW = 26;
const KEY_WIDTH = 230;
const KEY_CHARACTERS = 34;
const BAR_WIDTH = 340;

/** As the content of an element or of a quoted attribute; what steers a terminal or a reader's eye goes. */
export function escaped(words: string): string {
  return escapedMarkup(printable(words)).replaceAll('"', "&quot;").replaceAll("'", "&#39;");
}

/** The parts of a column, from the bottom up: class of the style sheet, words of the legend, share of a group. */
export const PARTS = [
  ["allow", "allowed", ({ byDecision }: Group) => byDecision.allow],
  ["rewrite", "rewritten", ({ byDecision }: Group) => byDecision.rewrite],
  ["warn", "warned", ({ byDecision }: Group) => byDecision.warn],
  ["told", "refused, let run", ({ byDecision, stopped }: Group) => Math.max(0, byDecision.refuse - stopped)],
  ["stop", "refused before dispatch", ({ stopped }: Group) => stopped],
  ["unjudged", "not judged", ({ byDecision }: Group) => byDecision.unjudged],
] as const satisfies readonly (readonly [string, string, (group: Group) => number])[];

/** Days without a verdict between two with one are drawn as well: a gap is news. Keys are days, in order. */
export function everyDay(groups: readonly Group[]): readonly (Group | { readonly key: string })[] {
  const byKey = new Map(groups.map((group) => [group.key, group]));
  const last = Date.parse(`${groups.at(-1)?.key}T00:00:00Z`);
  const first = Math.max(Date.parse(`${groups[0]?.key}T00:00:00Z`), last - (MOST_DAYS - 1) * 86_400_000);
  const days: (Group | { readonly key: string })[] = [];
  for (let at = first; at <= last; at += 86_400_000) {
    const key = new Date(at).toISOString().slice(0, 10);
    days.push(byKey.get(key) ?? { key });
  }
  return days;
}

/** Columns of verdicts by day, stacked by what became of them. */
export function verdictsByDay(groups: readonly Group[]): string {
  const days = everyDay(groups);
  const sums = days.map((day) => ("verdicts" in day ? day.verdicts : 0));
  return columns(days, Math.max(1, ...sums), String, (day) =>
    PARTS.map(([className, words, of]) => ({
      className,
      amount: of(day),
      told: `${day.key}: ${of(day)} ${words}`,
    })),
  );
}

/** Columns of dollars that were held back by day; in GPU-hours where nothing has a price. */
export function heldBackByDay(groups: readonly Group[]): string {
  const inUsd = groups.some(({ usdHeldBack }) => usdHeldBack > 0);
  const amount = (day: Group) => (inUsd ? day.usdHeldBack : day.gpuHoursHeldBack);
  const told = (value: number) => (inUsd ? dollars(value) : `${oneDecimal(value)} GPU-hours`);
  const days = everyDay(groups);
  const top = Math.max(...days.map((day) => ("verdicts" in day ? amount(day) : 0)));
  return columns(
    days,
    top > 0 ? top : 1,
    (value) => (inUsd ? short(value, "$") : short(value, "")),
    (day) => [{ className: "stop", amount: amount(day), told: `${day.key}: ${told(amount(day))}` }],
  );
}

interface Part {
  readonly className: string;
  readonly amount: number;
  readonly told: string;
}

function columns(
  days: readonly (Group | { readonly key: string })[],
  top: number,
  tick: (value: number) => string,
  partsOf: (day: Group) => readonly Part[],
): string {
  const step = (WIDTH - LEFT - 8) / days.length;
  const width = Math.min(48, step * 0.8);
  const rise = (amount: number) => (amount / top) * (BASE - TOP);
  const marks = days.flatMap((day, index) => {
    if (!("verdicts" in day)) return [];
    let y = BASE;
    return partsOf(day).flatMap(({ className, amount, told }) => {
      if (amount <= 0) return [];
      const height = Math.max(1, rise(amount));
      y -= height;
      const x = LEFT + index * step + (step - width) / 2;
      return [
        `<rect class="${className}" x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}"><title>${escaped(told)}</title></rect>`,
      ];
    });
  });
  const every = Math.ceil(days.length / 8);
  const names = days.flatMap(({ key }, index) =>
    index % every === 0
      ? [text(key?.slice(5) ?? "", LEFT + (index + 0.5) * step, BASE + 18, "quiet", "middle")]
      : [],
  );
  const ticks = [...new Set([0, top / 2, top])].flatMap((value) => [
    `<line class="grid" x1="${LEFT}" y1="${px(BASE - rise(value))}" x2="${WIDTH}" y2="${px(BASE - rise(value))}"/>`,
    text(tick(value), LEFT - 8, BASE - rise(value) + 4, "quiet", "end"),
  ]);
  return svg(DAYS_HEIGHT, [...ticks, ...marks, ...names]);
}

/** Bars of verdicts by user, model, card or rule, with the share that was stopped, and what that held back. */
export function barsOf(groups: readonly Group[]): string {
  const shown = groups.length > MOST_BARS ? groups.slice(0, MOST_BARS - 1) : groups;
  const rest = groups.slice(shown.length);
  const sum = (of: (group: Group) => number) => rest.reduce((total, group) => total + of(group), 0);
  const rows = [
    ...shown.map((group) => ({ ...group, name: group.key ?? "(none)" })),
    ...(rest.length === 0
      ? []
      : [
          {
            name: `${rest.length} more`,
            verdicts: sum(({ verdicts }) => verdicts),
            stopped: sum(({ stopped }) => stopped),
            usdHeldBack: sum(({ usdHeldBack }) => usdHeldBack),
            gpuHoursHeldBack: sum(({ gpuHoursHeldBack }) => gpuHoursHeldBack),
          },
        ]),
  ];
  const most = Math.max(1, ...rows.map(({ verdicts }) => verdicts));
  const width = (count: number) => (count / most) * BAR_WIDTH;
  const marks = rows.flatMap(({ name, verdicts, stopped, usdHeldBack, gpuHoursHeldBack }, index) => {
    const y = index * ROW + 4;
    const held =
      stopped === 0
        ? ""
        : `, ${stopped} stopped: ${oneDecimal(gpuHoursHeldBack)} GPU-hours, ${dollars(usdHeldBack)}`;
    const rect = (className: string, x: number, count: number) =>
      count === 0
        ? ""
        : `<rect class="${className}" x="${px(x)}" y="${y}" width="${px(Math.max(1, width(count)))}" height="18"/>`;
    return [
      text(cut(name, KEY_CHARACTERS), KEY_WIDTH - 10, y + 13, "key", "end", name),
      rect("stop", KEY_WIDTH, stopped),
      rect("other", KEY_WIDTH + width(stopped), verdicts - stopped),
      text(`${verdicts}${held}`, KEY_WIDTH + width(verdicts) + 8, y + 13, "quiet", "start"),
    ];
  });
  return svg(rows.length * ROW + 8, marks, 1000);
}

function svg(height: number, marks: readonly string[], width = WIDTH): string {
  return `<svg viewBox="0 0 ${width} ${height}" role="img">\n${marks.filter((mark) => mark !== "").join("\n")}\n</svg>`;
}

function text(words: string, x: number, y: number, className: string, anchor: string, hint = words): string {
  const title = hint === words && words.length <= KEY_CHARACTERS ? "" : `<title>${escaped(hint)}</title>`;
  return `<text class="${className}" x="${px(x)}" y="${px(y)}" text-anchor="${anchor}">${escaped(words)}${title}</text>`;
}

function px(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}

function short(value: number, sign: string): string {
  if (value >= 1e6) return `${sign}${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${sign}${Math.round(value / 1e3)}k`;
  return `${sign}${value < 10 && value > 0 ? value.toFixed(1) : Math.round(value)}`;
}
