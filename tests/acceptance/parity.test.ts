import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DECIDED, type Decided } from "./decided.ts";
import { run } from "./run.ts";

/** Every twelfth row: 50 of the 600. */
const CHOSEN = DECIDED.map((row, index) => [index, row] as const).filter(([index]) => index % 12 === 0);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gate-parity-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A sizing CLI as the published packages call it, which answers with the row's own line. */
function cliOf(row: Decided, index: number): string {
  const path = join(folder, `cli-${index}`);
  const { fixed_gb, per_sample_gb, seq_len } = row.sizing;
  const peaks = [1, 2].map((batch) => ({
    jobId: `b${batch}`,
    peakGb: fixed_gb + per_sample_gb * batch,
    seqLen: seq_len,
    params: 1e9,
  }));
  writeFileSync(
    path,
    `#!/bin/sh\n[ "$1" = rightsize ] && [ "$3" = --json ] || exit 9\ncat <<'J'\n${JSON.stringify({ jobs: peaks })}\nJ\n`,
  );
  chmodSync(path, 0o755);
  return path;
}

describe("decided verdicts through judge --sizing cli", () => {
  for (const [index, row] of CHOSEN) {
    const { accelerator, count, num_nodes } = row.request;
    test(`row ${index + 1}: ${accelerator}:${count} x ${num_nodes}, ${row.expect.action}`, async () => {
      const args = [
        "judge",
        "--json",
        "--sizing",
        "cli",
        "--cli",
        cliOf(row, index),
        "--model",
        row.job.model,
      ];
      args.push(
        "--request",
        `${accelerator}:${count}`,
        "--nodes",
        String(num_nodes),
        "--batch",
        String(row.job.batch),
      );
      args.push("--attention", row.job.attention);
      if (row.job.seq_len !== null) args.push("--seq-len", String(row.job.seq_len));
      if (row.job.lora_rank !== null) args.push("--lora-rank", String(row.job.lora_rank));
      if (row.job.hours !== null) args.push("--hours", String(row.job.hours));
      if (row.settings.mutate) args.push("--mutate");
      if (row.settings.max_cost_usd !== null) args.push("--max-cost-usd", String(row.settings.max_cost_usd));
      if (row.settings.prices !== null) {
        const prices = join(folder, `prices-${index}.json`);
        writeFileSync(prices, JSON.stringify(row.settings.prices));
        args.push("--prices", prices);
      }
      const { out, exit } = await run(args);
      const [verdict] = JSON.parse(out).verdicts;
      const { expect: wanted } = row;
      const decision = wanted.action === "unknown" ? "unjudged" : wanted.action;
      expect(verdict.decision).toBe(decision);
      expect(exit).toBe(decision === "refuse" ? 1 : decision === "unjudged" ? 3 : 0);
      if (wanted.need_gb === null) return;
      expect(verdict.needGb).toBeCloseTo(wanted.need_gb, 6);
      expect(verdict.fit).toBe(wanted.fit);
      expect(verdict.largestBatch).toBe(wanted.max_batch ?? null);
      const pair = (one: { accelerator: string; count: number } | null) =>
        one === null ? null : [one.accelerator, one.count];
      expect(verdict.smallestCard).toBe(wanted.smallest_card ?? null);
      expect(pair(verdict.rewriteTo)).toEqual(wanted.rewrite_to);
      if (wanted.smallest_request !== undefined)
        expect(pair(verdict.smallestRequest)).toEqual(wanted.smallest_request);
      if (wanted.right_sized !== undefined) expect(pair(verdict.rightSized)).toEqual(wanted.right_sized);
      if (wanted.est_cost_usd === null) expect(verdict.costUsd).toBeNull();
      else expect(verdict.costUsd).toBeCloseTo(wanted.est_cost_usd, 6);
    });
  }
});
