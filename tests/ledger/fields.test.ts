import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { readLine } from "../../src/ledger/read.ts";
import type { Entry } from "../../src/ledger/types.ts";
import { run } from "../acceptance/run.ts";

let root = "";
let made = 0;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "gate-fields-"));
  writeFileSync(join(root, "prices.json"), '{"A10G": 1, "H100": 3, "H200": 4}');
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const MODEL = "#NEURARCH model=Qwen/Qwen3-8B batch=8 hours=2";
const slurm = (...lines: string[]) => ({ text: ["#!/bin/bash", ...lines, ""].join("\n"), flag: "--slurm" });
const sky = (...lines: string[]) => ({
  text: [
    ...lines,
    "envs:",
    "  NEURARCH_MODEL: Qwen/Qwen3-8B",
    "  NEURARCH_BATCH: '1'",
    "  NEURARCH_HOURS: '2'",
    "",
  ].join("\n"),
  flag: "--skypilot",
});
const A10G: Partial<Entry> = {
  card: "A10G",
  requestGb: 24,
  decision: "refuse",
  rule: "admission/request-does-not-fit",
  reason: "too-small",
};

/** What each form of a request leaves behind; GPU-hours and dollars are cards x nodes x hours x array tasks. */
const ROWS: readonly (readonly [string, { text: string; flag: string }, readonly Partial<Entry>[]])[] = [
  [
    "a Slurm array",
    slurm("#SBATCH --gres=gpu:a10g:1", "#SBATCH --array=0-9%2", MODEL),
    [{ ...A10G, count: 1, nodes: 1, tasks: 10, gpuHours: 20, usd: 20 }],
  ],
  [
    "an array of several nodes",
    slurm("#SBATCH --gres=gpu:a10g:2", "#SBATCH --nodes=3", "#SBATCH --array=1,5,7-9", MODEL),
    [{ card: "A10G", count: 2, nodes: 3, tasks: 5, gpuHours: 60, usd: 60 }],
  ],
  [
    "a heterogeneous job: a line a component",
    slurm("#SBATCH --gres=gpu:a10g:1", MODEL, "#SBATCH hetjob", "#SBATCH --gres=gpu:h100:8"),
    [
      { ...A10G, count: 1, nodes: 1, gpuHours: 2, usd: 2 },
      { card: "H100", count: 8, nodes: 1, gpuHours: 16, usd: 48 },
    ],
  ],
  [
    "a SkyPilot task on several nodes",
    sky("num_nodes: 2", "resources:", "  accelerators: A10G:4"),
    [{ card: "A10G", count: 4, nodes: 2, tasks: 1, gpuHours: 16, usd: 16 }],
  ],
  [
    "any_of: one line, of the candidate that the decision rests on",
    sky("resources:", "  any_of:", "    - accelerators: H200:8", "    - accelerators: A10G:1"),
    [{ ...A10G, count: 1, candidates: 2, gpuHours: 2, usd: 2 }],
  ],
  [
    "no hours, no dollars",
    slurm("#SBATCH --gres=gpu:a10g:1", "#NEURARCH model=Qwen/Qwen3-8B batch=8"),
    [{ ...A10G, gpuHours: null, usd: null }],
  ],
];

describe("what is recorded, and what the report makes of it", () => {
  for (const [name, { text, flag }, expected] of ROWS)
    test(name, async () => {
      const folder = join(root, String(++made));
      mkdirSync(folder);
      const path = join(root, `job-${made}`);
      writeFileSync(path, text);
      await run(
        ["judge", flag, path, "--ledger", folder, "--cluster", "grid", "--prices", join(root, "prices.json")],
        { env: { HF_HUB_OFFLINE: "1" } },
      );
      const entries = readdirSync(folder)
        .flatMap((file) => readFileSync(join(folder, file), "utf8").split("\n").slice(0, -1))
        .map((line) => readLine(line) as Entry);
      expect(entries.length).toBe(expected.length);
      entries.forEach((entry, index) => {
        expect(entry).toMatchObject({
          v: 1,
          time: expect.stringMatching(/^20\d\d-/),
          adapter: "judge",
          user: expect.any(String),
          host: hostname(),
          cluster: "grid",
          model: "Qwen/Qwen3-8B",
          structure: expect.stringMatching(/^[0-9a-f]{16}$/),
          request: expect.stringContaining(":"),
          needGb: expect.any(Number),
          source: "builtin",
          version: expect.any(String),
          id: expect.stringMatching(/^[0-9a-f]{24}$/),
          ...expected[index],
        } as Entry);
      });
      const csv = (await run(["ledger", folder, "--csv"])).out.trim().split("\r\n");
      expect(csv.length).toBe(entries.length + 1);
      for (const { gpuHours, usd } of entries)
        expect(
          csv.some((row) => row.includes(`,${usd ?? ""},`) && row.includes(`,${gpuHours ?? ""},builtin,`)),
        ).toBe(true);
      const report = JSON.parse((await run(["ledger", folder, "--json"])).out);
      for (const grouping of ["byDay", "byUser", "byModel", "byCard", "byRule"])
        expect(
          report[grouping].reduce((sum: number, group: { verdicts: number }) => sum + group.verdicts, 0),
        ).toBe(entries.length);
      const rows = (await run(["ledger", folder, "--csv", "--by", "card"])).out.trim().split("\r\n");
      expect(rows.length).toBe(1 + new Set(entries.map(({ card }) => card)).size);
    });

  test("by one table, one user and a span of days", async () => {
    const folder = join(root, "1");
    const human = (await run(["ledger", folder, "--by", "rule"])).out;
    expect(human).toContain("admission/request-does-not-fit");
    expect(human).not.toMatch(/^(?:day|user|model|card) /m);
    const today = new Date().toISOString().slice(0, 10);
    const verdicts = async (...words: string[]) =>
      JSON.parse((await run(["ledger", folder, "--json", ...words])).out).totals.verdicts;
    expect(await verdicts("--user", "nobody-of-this-name")).toBe(0);
    expect(await verdicts("--until", "2020-01-01")).toBe(0);
    expect(await verdicts("--since", "2020-01-01", "--until", today)).toBe(1);
    expect((await run(["ledger", folder, "--since", "2026-02-01", "--until", "2026-01-01"])).exit).toBe(2);
    expect((await run(["ledger", folder, "--by", "moon"])).exit).toBe(2);
  });
});
