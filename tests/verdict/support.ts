import type { JobFacts, Origin, Recipe } from "../../src/facts/types.ts";
import { buildCardTable } from "../../src/request/cards.ts";
import type { Candidate, CardTable, GpuRequest } from "../../src/request/types.ts";
import type { Moment, Sizing } from "../../src/sizing/types.ts";
import type { JobToJudge, JudgeSettings } from "../../src/verdict/types.ts";

const RECIPE: Recipe = {
  precision: "amp-bf16",
  optimizer: "adamw",
  attention: "sdpa",
  checkpointing: "none",
  quant: "none",
  loraRank: null,
  loraTargets: "attention",
  parallel: "sharded",
  offload: "none",
  gradAccum: 1,
  loss: "full",
  paddingMask: false,
};

type Values = {
  model?: string;
  batch?: number;
  seqLen?: number | null;
  hours?: number | null;
} & Partial<Recipe>;

/** Facts as a job that wrote exactly these keys. */
export function factsOf(values: Values = {}): JobFacts {
  const all = {
    model: "org/model",
    batch: 8,
    seqLen: null,
    hours: null,
    loraDropout: 0,
    ...RECIPE,
    ...values,
  };
  const facts = Object.entries(all).map(([key, value]) => {
    const from: Origin = { kind: key in values ? "flag" : "default", name: key };
    return [key, { value, from }];
  });
  return Object.fromEntries(facts) as JobFacts;
}

/** A sizing of the given lines in GB; one line `{fixed, per}` is what an external source gives. */
export function sizingOf(
  lines: { fixed: number; per?: number; name?: string; terms?: Moment["terms"] }[],
  over: Partial<Sizing> = {},
): Sizing {
  const floor = Math.max(...lines.map((line) => line.fixed));
  return {
    model: "org/model",
    family: "test",
    source: "cli",
    revision: null,
    structureFrom: null,
    params: 1e9,
    trainableParams: 1e9,
    activeParams: 1e9,
    recipe: RECIPE,
    seqLen: 2048,
    floorBytes: lines.length === 1 ? gbBytes(lines[0]!.fixed) : gbBytes(floor),
    stateBytes: gbBytes(lines[0]!.fixed),
    moments: lines.map((line) => ({
      name: line.name ?? "step",
      what: line.name ?? "the step",
      terms: line.terms ?? [],
      fixedBytes: gbBytes(line.fixed),
      perSampleBytes: gbBytes(line.per ?? 0),
    })),
    assumed: [],
    notes: [],
    ...over,
  };
}

/** The nearest whole byte. */
export function gbBytes(gb: number): number {
  return Math.round(gb * 1e9);
}

/** The built-in table, with a site's prices by card id or name. */
export function tableOf(prices: Record<string, number> | null = null): CardTable {
  return buildCardTable(prices === null ? {} : { prices });
}

export function settingsOf(over: Partial<JudgeSettings> = {}): JudgeSettings {
  return {
    table: tableOf(),
    headroom: 1.15,
    maxCostUsd: null,
    mutate: false,
    tasks: 1,
    useSpot: false,
    fallbackHours: null,
    rewriteCards: null,
    ...over,
  };
}

/** `A10G:4` or `H100:8x2` (two nodes) as a candidate. */
export function candidateOf(text: string, table = tableOf(), over: Partial<Candidate> = {}): Candidate {
  const [accelerator = "", rest = "1"] = text.split(":");
  const [count = "1", nodes = "1"] = rest.split("x");
  const found = table.find(accelerator);
  if (found === null) throw new Error(`no card ${accelerator} in the test table`);
  const label = `${accelerator}:${count}${nodes === "1" ? "" : ` x ${nodes} nodes`}`;
  return {
    accelerator,
    count: Number(count),
    nodes: Number(nodes),
    card: found,
    label,
    memoryForm: false,
    ...over,
  };
}

export function requestOf(candidates: GpuRequest["candidates"], choice?: GpuRequest["choice"]): GpuRequest {
  return { candidates, choice: choice ?? (candidates.length > 1 ? "any-of" : "one"), notes: [] };
}

export function jobOf(
  sizing: Sizing,
  values: Values = {},
  resize: JobToJudge["resize"] = () => null,
): JobToJudge {
  return { facts: factsOf(values), sizing, resize };
}
