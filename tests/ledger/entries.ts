import type { Entry } from "../../src/ledger/types.ts";

/** An entry of a refusal that was stopped, with what `more` says in its place. */
export function verdictEntry(more: Partial<Entry> = {}): Entry {
  return {
    v: 1,
    time: "2026-11-29T10:00:00.000Z",
    adapter: "slurm",
    user: "ada",
    host: "login1",
    cluster: "grid",
    model: "Qwen/Qwen3-8B",
    structure: "e869482343279878",
    request: "a10g:1",
    card: "A10G",
    count: 1,
    nodes: 1,
    tasks: 1,
    candidates: 1,
    requestGb: 24,
    needGb: 339.4,
    decision: "refuse",
    stopped: true,
    rule: "admission/request-does-not-fit",
    reason: "too-small",
    fit: "under",
    waiver: null,
    usd: 1100,
    overUsd: null,
    gpuHours: 1000,
    source: "builtin",
    version: "0.1.0",
    ...more,
  };
}
