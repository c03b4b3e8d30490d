import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { accuracyPage, PAGE } from "./accuracy-page.ts";
import { comparedRows } from "./accuracy-rows.ts";

const page = accuracyPage();

test("docs/accuracy.md is what `make accuracy` writes now", () => {
  expect(readFileSync(PAGE, "utf8"), "run `make accuracy` and commit the page").toBe(page);
});

test("every table of measured steps is on it, and every row is counted", () => {
  const rows = comparedRows();
  for (const file of ["peaks.jsonl", "extra.jsonl", "unseen.jsonl"]) {
    const sized = rows.filter((row) => row.file === file && row.error !== null).length;
    const left = rows.filter((row) => row.file === file && row.error === null).length;
    const count = String(sized).replace(/\B(?=(\d{3})+$)/g, ",");
    expect(page).toContain(`| \`${file}\` | ${count} | ${left} |`);
  }
});

test("no figure is missing or only noise", () => {
  expect(page).not.toMatch(/NaN|undefined|null|Infinity|-0\.0+ |\+0\.0+ /);
});

test("the anchors: measured figures as published, in both units", () => {
  expect(page).toContain("| 64.42 (60 GiB) |");
  expect(page).toMatch(/\| 11 \| Qwen-7B, .* \| 20\.10 \| \d+\.\d\d \| [+-]\d+\.\d % \|/);
  // accelerate's rule for 8,190,735,360 parameters: 8 bytes each in 16 bits, 16 in fp32.
  expect(page).toMatch(/\| Qwen3-8B, .* \| 65\.5 \(-77\.8 %\) \| 131\.1 \(-55\.6 %\) \|/);
  expect(page.match(/^- 1[5-6]?[a-d]?: /gm)?.length).toBe(6);
  for (const row of [17, 18, 19, 20, 21, 22])
    expect(page).toMatch(new RegExp(`^- ${row}: .* Not compared: `, "m"));
});
