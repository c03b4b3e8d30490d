import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { summary } from "./errors.ts";
import { judged } from "./graph-rows.ts";

/** The page whose table `bun tests/sizing/graphs-page.ts` writes anew. */
export const PAGE = join(import.meta.dir, "../../docs/graphs.md");

const BEGIN = "| module | steps |";

/** Errors of every traced module over all its measured steps. */
export function graphsTable(): string {
  const lines = [`${BEGIN} median | most under | most over |`, "| --- | --- | --- | --- | --- |"];
  const signed = (x: number) => `${Math.abs(x) < 0.005 ? "" : x < 0 ? "-" : "+"}${Math.abs(x).toFixed(2)} %`;
  for (const name of [...new Set(judged.map(({ row }) => row.graph))].sort()) {
    const errors = judged.filter(({ row }) => row.graph === name).map(({ errorPercent }) => errorPercent);
    const { n, median, under, over } = summary(errors);
    lines.push(`| ${name} | ${n} | ${median.toFixed(2)} % | ${signed(under)} | ${signed(over)} |`);
  }
  return `${lines.join("\n")}\n`;
}

if (import.meta.main) {
  const page = readFileSync(PAGE, "utf8");
  const from = page.indexOf(BEGIN);
  const to = page.indexOf("\n\n", from);
  writeFileSync(PAGE, page.slice(0, from) + graphsTable() + page.slice(to + 1));
}
