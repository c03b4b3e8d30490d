import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { AnyCandidate } from "../../src/request/types.ts";
import { judgeRequest } from "../../src/verdict/decide.ts";
import type { CardCount } from "../../src/verdict/types.ts";
import { candidateOf, jobOf, requestOf, settingsOf, sizingOf, tableOf } from "./support.ts";

/** One case that the published package decided. */
interface Row {
  sizing: { fixed_gb: number; per_sample_gb: number; seq_len: number };
  job: { model: string; batch: number; hours: number | null; lora_rank: number | null };
  request: { accelerator: string; count: number; num_nodes: number };
  settings: { mutate: boolean; max_cost_usd: number | null; prices: Record<string, number> | null };
  expect: {
    action: string;
    need_gb: number | null;
    est_cost_usd: number | null;
    rewrite_to: [string, number] | null;
    fit?: string;
    max_batch?: number | null;
    smallest_card?: string | null;
    smallest_request?: [string, number] | null;
    right_sized?: [string, number] | null;
  };
}

const rows: Row[] = readFileSync(`${import.meta.dir}/../fixtures/parity.jsonl`, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

/** Our verdict on a row, in the row's own words; numbers are compared to the last bit. */
function decided({ sizing, job, request, settings }: Row): Row["expect"] {
  const table = tableOf(settings.prices);
  const { accelerator, count, num_nodes: nodes } = request;
  const label = `${accelerator}:${count}`;
  const candidate: AnyCandidate =
    table.find(accelerator) === null
      ? { accelerator, count, nodes, label, reason: "card-unknown", message: "no capacity on file" }
      : candidateOf(`${accelerator}:${count}x${nodes}`, table);
  const verdict = judgeRequest(
    jobOf(sizingOf([{ fixed: sizing.fixed_gb, per: sizing.per_sample_gb }]), {
      batch: job.batch,
      hours: job.hours,
      loraRank: job.lora_rank,
    }),
    requestOf([candidate]),
    settingsOf({ table, mutate: settings.mutate, maxCostUsd: settings.max_cost_usd }),
  );
  const only = verdict.verdicts[0]!;
  if (only.kind === "unjudged") {
    return { action: "unknown", need_gb: null, est_cost_usd: null, rewrite_to: null };
  }
  return {
    action: verdict.decision,
    need_gb: only.needGb,
    est_cost_usd: only.cost?.usd ?? null,
    rewrite_to: pair(only.rewriteTo),
    fit: only.fit,
    max_batch: only.largestBatch,
    smallest_card: only.smallestCard?.accelerator ?? null,
    smallest_request: pair(only.smallestRequest),
    right_sized: pair(only.rightSized),
  };
}

function pair(value: CardCount | null): [string, number] | null {
  return value === null ? null : [value.accelerator, value.count];
}

test("every decided case of the published package comes out the same", () => {
  expect(rows.length).toBe(600);
  for (const [index, row] of rows.entries()) {
    const absent = row.expect.action === "unknown" ? {} : { smallest_request: null, right_sized: null };
    expect({ index, ...decided(row) }).toEqual({ index, ...absent, ...row.expect });
  }
});
