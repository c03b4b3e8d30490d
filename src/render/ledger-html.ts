import type { Group, Grouping } from "../ledger/totals.ts";
import { type LedgerTold, TITLES, troubles } from "./ledger.ts";
import { barsOf, escaped, heldBackByDay, MOST_DAYS, PARTS, verdictsByDay } from "./ledger-charts.ts";
import { counted, dollars, oneDecimal } from "./text.ts";

/** Rows of one table of the page; the JSON document has all. */
const MOST_ROWS = 500;

/** Colours that also differ in lightness, so that they can be told apart without red and green. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --ink: #1f2328; --quiet: #59636e; --back: #ffffff; --panel: #f4f6f8; --line: #d9dee3;
  --allow: #9cc9b0; --rewrite: #6ea8dc; --warn: #e8b84a; --told: #e08a6a; --stop: #b3261e; --unjudged: #b8bec5; --other: #9fb3c8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --quiet: #9aa4af; --back: #0f1318; --panel: #181e25; --line: #2c343d;
  --allow: #3f7d5b; --rewrite: #3d7ab8; --warn: #c7952a; --told: #c46a48; --stop: #f0564a; --unjudged: #5b646e; --other: #4d6379; } }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 24px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 32px 0 8px; }
p { margin: 4px 0; } .quiet { color: var(--quiet); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; margin: 20px 0; }
.tile { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 12px 14px; }
.tile b { display: block; font-size: 24px; font-weight: 650; } .tile span { color: var(--quiet); font-size: 13px; }
.legend span { margin-right: 16px; font-size: 13px; white-space: nowrap; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px; fill: var(--ink); } svg text.quiet { fill: var(--quiet); }
.grid { stroke: var(--line); stroke-width: 1; }
rect.allow { fill: var(--allow); } rect.rewrite { fill: var(--rewrite); } rect.warn { fill: var(--warn); } rect.told { fill: var(--told); }
rect.stop { fill: var(--stop); } rect.unjudged { fill: var(--unjudged); } rect.other { fill: var(--other); }
i.allow { background: var(--allow); } i.rewrite { background: var(--rewrite); } i.warn { background: var(--warn); } i.told { background: var(--told); }
i.stop { background: var(--stop); } i.unjudged { background: var(--unjudged); } i.other { background: var(--other); }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th, td { padding: 4px 8px; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; } summary { cursor: pointer; color: var(--quiet); font-size: 13px; margin-top: 6px; }
@media print { details { display: none; } }
`;

/** What a page is made of beside the report. */
export interface PageFrame {
  /** SHA-256 of `PAGE_STYLE` in base64: the only thing that the page's policy lets in. */
  readonly styleHash: string;
}

/**
 * The report as one page for a browser: nothing runs in it and nothing is loaded (its own policy forbids both), charts
 * are drawn in place, and it follows a dark scheme. Every number of the JSON document's totals stands in it unrounded,
 * as `data-value`.
 */
export function ledgerHtml(told: LedgerTold, { styleHash }: PageFrame): string {
  const { report, folder, files } = told;
  const days = report.by("day");
  const span =
    days.length === 0
      ? ""
      : days.length === 1
        ? `, ${days[0]!.key}`
        : `, ${days[0]!.key} to ${days.at(-1)!.key}`;
  const head = `${counted(report.totals.verdicts, "verdict")}${span}${filterWords(told)}, in ${folder} (${counted(files, "file")}). Amounts at list price; days in UTC.`;
  const body =
    report.totals.verdicts === 0
      ? ["<p>Nothing was recorded.</p>"]
      : [
          tiles(told),
          chart("Verdicts by day", legend(), verdictsByDay(days), table("day", days)),
          chart("Held back by day", earlier(days), heldBackByDay(days), ""),
          ...(["user", "model", "card", "rule"] as const).map((grouping) => {
            const groups = report.by(grouping);
            return chart(`By ${TITLES[grouping]}`, stoppedLegend(), barsOf(groups), table(grouping, groups));
          }),
        ];
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    "<title>GPU requests, judged before dispatch</title>",
    `<style>${PAGE_STYLE}</style>`,
    "</head>",
    "<body>",
    "<main>",
    "<h1>GPU requests, judged before dispatch</h1>",
    `<p class="quiet">${escaped(head)}</p>`,
    ...body,
    ...troubles(told)
      .filter((line) => line !== "")
      .map((line) => `<p class="quiet">${escaped(line)}</p>`),
    "</main>",
    "</body>",
    "</html>",
    "",
  ].join("\n");
}

function filterWords({ user }: LedgerTold): string {
  return user == null ? "" : ` of ${user}`;
}

function tiles({ report: { totals } }: LedgerTold): string {
  const { stoppedWithoutPrice, byDecision } = totals;
  const unpriced = stoppedWithoutPrice === 0 ? "" : ` (${stoppedWithoutPrice} with no hours or price)`;
  const rows: (readonly [string, number, string, string])[] = [
    ["verdicts", totals.verdicts, String(totals.verdicts), "requests judged"],
    ["stopped", totals.stopped, String(totals.stopped), "refused before dispatch"],
    ["usdHeldBack", totals.usdHeldBack, dollars(totals.usdHeldBack), `held back at list price${unpriced}`],
    ["gpuHoursHeldBack", totals.gpuHoursHeldBack, oneDecimal(totals.gpuHoursHeldBack), "GPU-hours held back"],
    ["overRequested", totals.overRequested, String(totals.overRequested), "over-requests"],
    ["overUsd", totals.overUsd, dollars(totals.overUsd), "beyond what holds these jobs"],
    ["waiversUsed", totals.waiversUsed, String(totals.waiversUsed), "waivers used"],
    ["warned", byDecision.warn, String(byDecision.warn), "warned and let run"],
  ];
  const tile = ([name, value, text, words]: (typeof rows)[number]) =>
    `<div class="tile"><b data-total="${name}" data-value="${value}">${escaped(text)}</b><span>${escaped(words)}</span></div>`;
  return `<div class="tiles">\n${rows.map(tile).join("\n")}\n</div>`;
}

function legend(): string {
  return PARTS.map(([className, words]) => `<span><i class="${className}"></i>${words}</span>`).join("");
}

function stoppedLegend(): string {
  return '<span><i class="stop"></i>refused before dispatch</span><span><i class="other"></i>all others</span>';
}

function earlier(days: readonly Group[]): string {
  return days.length <= MOST_DAYS ? "" : `<span class="quiet">The last ${MOST_DAYS} days</span>`;
}

function chart(title: string, legendText: string, drawing: string, rows: string): string {
  const key = legendText === "" ? "" : `<p class="legend">${legendText}</p>\n`;
  return `<section>\n<h2>${title}</h2>\n${key}${drawing}\n${rows}</section>`;
}

const HEAD = [
  "verdicts",
  "stopped",
  "GPU-hours held back",
  "held back",
  "over-requests",
  "beyond need",
  "waivers",
];

function table(grouping: Grouping, groups: readonly Group[]): string {
  const shown = grouping === "day" ? groups.slice(-MOST_ROWS) : groups.slice(0, MOST_ROWS);
  const left = groups.length - shown.length;
  const row = (cells: readonly string[], tag: "th" | "td") =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join("")}</tr>`;
  const body = shown.map((group) =>
    row(
      [
        group.key ?? "(none)",
        String(group.verdicts),
        String(group.stopped),
        oneDecimal(group.gpuHoursHeldBack),
        dollars(group.usdHeldBack),
        String(group.overRequested),
        dollars(group.overUsd),
        String(group.waiversUsed),
      ],
      "td",
    ),
  );
  const more = left === 0 ? "" : `<p class="quiet">${left} more in the JSON document.</p>`;
  return `<details><summary>Numbers</summary>\n<table>\n${row([TITLES[grouping], ...HEAD], "th")}\n${body.join("\n")}\n</table>${more}</details>\n`;
}
