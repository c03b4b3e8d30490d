import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { flagFacts } from "../../src/facts/flags.ts";
import { readFacts } from "../../src/facts/read.ts";
import { loadSettings } from "../../src/gate/load.ts";
import { parseAsked } from "../../src/gate/policy-apply.ts";
import { parseSiteFile } from "../../src/gate/site-file.ts";
import { ENTRY_FORM, readLine } from "../../src/ledger/read.ts";
import { answerJudge } from "../../src/serve/judge.ts";
import { validator } from "./support.ts";

/* What a reader accepts its schema accepts, and nothing else: documents that are nearly right, with one thing changed. */

/** Nearly always a value that is right: a document is as good as its worst part. */
const mostly = (right: readonly unknown[], wrong: readonly unknown[]) =>
  fc.oneof(
    { weight: 14, arbitrary: fc.constantFrom(...right) },
    { weight: 1, arbitrary: fc.constantFrom(...wrong) },
  );

async function same(
  schema: string,
  documents: fc.Arbitrary<unknown>,
  reads: (document: unknown) => Promise<boolean> | boolean,
  numRuns = 1000,
): Promise<void> {
  const validate = await validator(schema);
  const counts = { accepted: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(documents, async (document) => {
      const accepted = await reads(document);
      counts[accepted ? "accepted" : "refused"]++;
      expect([validate(document), document]).toEqual([accepted, document]);
    }),
    { numRuns },
  );
  // A test in which nothing is accepted, or all of it, proves nothing.
  expect(Math.min(counts.accepted, counts.refused)).toBeGreaterThan(numRuns / 50);
}

const refuses = async (read: () => unknown): Promise<boolean> => {
  try {
    await read();
    return true;
  } catch {
    return false;
  }
};
const settingsOf = (values: Record<string, string>) =>
  refuses(() => loadSettings({ values, switches: {} }, {}));

/** A value as TOML writes it. */
function toml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{ ${Object.entries(value)
      .map(([key, one]) => `${JSON.stringify(key)} = ${toml(one)}`)
      .join(", ")} }`;
  return JSON.stringify(value);
}

const CARDS = fc.dictionary(
  fc.constantFrom("H100", "A100-80", "T4"),
  fc.oneof(
    { weight: 3, arbitrary: mostly([80, 0.5, 24], [0, -1, "80", 1e9, true]) },
    {
      weight: 4,
      arbitrary: fc
        .record(
          {
            gb: mostly([80, 24.5], [0, "80"]),
            usd_per_hour: mostly([2.5, 0, null], [-1, 1e6, "2"]),
            names: mostly([["own-h100"], ["x1", "x2"]], [[], [""], "h100", [1]]),
            vendor: mostly(["cuda", "rocm"], ["nvidia", 1]),
            candidate: mostly([true, false], ["yes"]),
            slice: mostly([false], [0]),
            zzz: mostly([undefined], [1]),
          },
          { requiredKeys: [] },
        )
        .map((card) => JSON.parse(JSON.stringify(card))),
    },
  ),
  { maxKeys: 1 },
);
const PRICES = fc.dictionary(
  fc.constantFrom("H100", "A100-80GB", "T4", "$schema"),
  mostly([2.5, 0, 31], [-1, "2", null, 1e6]),
  { maxKeys: 3 },
);
const GPU_MAP = fc.dictionary(
  mostly(["a", "h100", "v100.32"], ["", " ", "a\u0007"]).map(String),
  mostly(["H100", "T4"], ["", 1, null, ["H100"]]),
  { maxKeys: 3 },
);
const PARTITIONS = fc.dictionary(fc.constantFrom("debug", "a b", ""), mostly(["a100", "h"], ["", 1, null]), {
  maxKeys: 3,
});

/** `$schema` is a text where it is given. */
const withoutOddSchemaKey = (map: Record<string, unknown>) => map.$schema === undefined;

describe("the files of a site", () => {
  test("cards", () => same("cards-file", CARDS, (cards) => settingsOf({ cards: JSON.stringify(cards) })));
  test("prices", () =>
    same("prices-file", PRICES.filter(withoutOddSchemaKey), (prices) =>
      settingsOf({ prices: JSON.stringify(prices) }),
    ));
  test("GPU map", () => same("gpu-map", GPU_MAP, (map) => settingsOf({ "gpu-map": JSON.stringify(map) })));
  test("partition map", () =>
    same("partition-map", PARTITIONS, (map) => settingsOf({ "partition-map": JSON.stringify(map) })));
  test("$schema is passed over in each", async () => {
    for (const flag of ["cards", "prices", "gpu-map", "partition-map"])
      expect(await settingsOf({ [flag]: '{"$schema": "x.json"}' })).toBe(true);
  });

  const SITE = fc.record(
    {
      mode: mostly(["warn", "reject"], ["strict", 1]),
      mutate: mostly([true, false], ["yes", 0]),
      fail_closed: mostly([true], [1]),
      max_cost_usd: mostly([500, 0.5], [0, -1, "500"]),
      headroom: mostly([1, 1.15, 10], [0.9, 11, "1.2"]),
      sizing: mostly(["auto", "builtin", "cli", "hosted"], ["local"]),
      cli: mostly(["neurarch"], ["", 1]),
      plan_url: mostly(["https://x.example/plan"], ["ftp://x", ""]),
      timeout_s: mostly([4, 0.5], [0, "4"]),
      cluster: mostly(["a", ""], [1]),
      policy_file: mostly(["/etc/p.yml"], ["p.yml", 1]),
      repo_policy: mostly(["honour", "tighten-only", "ignore"], ["honor"]),
      ledger: mostly(["/var/log/x", "unix:/run/x.sock", "https://x.example"], ["log", "unix:x"]),
      ledger_anonymous: mostly([true], ["true"]),
      ledger_token_file: mostly(["/etc/t", "~/t"], ["t"]),
      ledger_rotate_mb: mostly([10], [0, "10"]),
      annotate: mostly([false], [0]),
      default_gpu_type: mostly(["a100"], ["", 1]),
      hours_from_time: mostly([true], [1]),
      cards: fc.oneof(
        { weight: 9, arbitrary: CARDS },
        { weight: 1, arbitrary: fc.constantFrom<unknown>("cards.json", 1) },
      ),
      prices: PRICES.filter(withoutOddSchemaKey),
      gpu_map: fc.oneof(GPU_MAP, fc.constantFrom<unknown>("map.json", ["a"])),
      partition_map: PARTITIONS,
      defaults: fc.record(
        {
          precision: mostly(["bf16", "fp32"], ["fp8", 16]),
          optimizer: mostly(["sgd"], ["adam w"]),
          "grad-accum": mostly([4, "2"], [0, -1, "many", 1.5]),
          "padding-mask": mostly(["on", "off", true, false], ["perhaps", 7]),
          zzzzz: mostly([undefined], [1]),
          batch: mostly([undefined], [8]),
        },
        { requiredKeys: [] },
      ),
      zzzzzzzz: mostly([undefined], [1]),
    },
    { requiredKeys: [] },
  );
  /** At most four keys at once, or hardly a file would be right. */
  const FEW = fc.tuple(SITE, fc.array(fc.nat(), { minLength: 4, maxLength: 4 })).map(([site, picks]) => {
    const entries = Object.entries(
      // TOML has no null.
      JSON.parse(JSON.stringify(site, (_, one) => (one === null ? undefined : one))),
    );
    const kept = new Set(picks.map((pick) => pick % Math.max(entries.length, 1)));
    return Object.fromEntries(entries.filter((_, index) => kept.has(index)));
  });
  test("gate.toml", () =>
    same("gate", FEW, (site) =>
      refuses(async () => {
        const text = Object.entries(site as object)
          .map(([key, value]) => `${key} = ${toml(value)}\n`)
          .join("");
        const settings = await loadSettings({ values: {}, switches: {} }, parseSiteFile(text, "gate.toml"));
        readFacts(flagFacts({ model: "gpt2" }), {
          unknownKeys: "ignore",
          siteDefaults: settings.factDefaults,
        });
      }),
    ));
});

describe("messages", () => {
  const value = mostly(["x", 1, true, null], [["x"], { a: 1 }]);
  const REQUEST = fc
    .record(
      {
        slurm: mostly([undefined, "#!/bin/sh\n#SBATCH --gres=gpu:t4:1\n", null], [{ a: 1 }]),
        skypilot: mostly([undefined, undefined, "run: x\n"], [["run: x"]]),
        request: mostly([undefined, undefined, "H100:8"], [[1]]),
        nodes: mostly([undefined, undefined, undefined, null], ["2", {}]),
        "lora-rank": mostly([undefined, "16", 16, null], [["16"]]),
        zzzzzzz: mostly([undefined], [1]),
      },
      { requiredKeys: [] },
    )
    .map((one) => JSON.parse(JSON.stringify(one)));
  test("POST /v1/judge", async () => {
    const settings = await loadSettings({ values: { sizing: "builtin" }, switches: {} }, {});
    const judge = {
      settings,
      size: async () => ({ ok: false, error: { reason: "model-not-found", message: "none." } }) as never,
      policyOf: async () => null,
      recorder: null,
    };
    await same(
      "judge-request",
      REQUEST,
      async (body) => (await answerJudge(JSON.stringify(body), judge as never)).reply.status === 200,
    );
    await same(
      "judge-request",
      fc.constantFrom<unknown>([], "x", 1, null, { slurm: "#!/bin/sh\n" }),
      async (body) => (await answerJudge(JSON.stringify(body), judge as never)).reply.status === 200,
      60,
    );
  });

  test("policy apply", () =>
    same(
      "policy-findings",
      fc.record(
        {
          model: value,
          findings: fc.oneof(
            {
              weight: 9,
              arbitrary: fc.array(
                fc.record(
                  {
                    rule: mostly(["a/b"], [1, null]),
                    severity: mostly(["block", "warn"], ["error"]),
                    title: value,
                    ref: value,
                  },
                  { requiredKeys: ["rule", "severity"] },
                ),
                { maxLength: 2 },
              ),
            },
            { weight: 1, arbitrary: fc.constantFrom<unknown>(null, "x", [1], [{ rule: "a" }]) },
          ),
          facts: fc.array(
            fc.record(
              {
                cards: mostly([["H100"], [], null], ["H100", [1]]),
                estCostUsd: mostly([1, null], ["1"]),
                params: mostly([8e9, null], [true]),
              },
              { requiredKeys: [] },
            ),
            { maxLength: 2 },
          ),
        },
        { requiredKeys: [] },
      ),
      (asked) => refuses(() => parseAsked(JSON.stringify(asked))),
    ));

  test("a line of a ledger", () => {
    const whole: Record<string, unknown> = {
      v: 1,
      time: "2026-11-30T21:05:00.123Z",
      adapter: "slurm",
      user: "u",
      host: "h",
      cluster: null,
      model: "m",
      structure: null,
      request: "H100:8",
      card: "H100",
      count: 8,
      nodes: 1,
      tasks: 1,
      candidates: 1,
      requestGb: 640,
      needGb: 100.5,
      decision: "warn",
      stopped: false,
      rule: null,
      reason: "over-requested",
      fit: "over",
      waiver: null,
      usd: 1.5,
      overUsd: null,
      gpuHours: 8,
      source: "builtin",
      version: "0.1.0",
      id: "abcdefgh-1",
    };
    expect(Object.keys(whole).sort()).toEqual(Object.keys(ENTRY_FORM).sort());
    const odd = fc.constantFrom<unknown>(null, "", "x", -1, 3, 2.5, true, [], undefined, "refuse", "serve");
    const line = fc
      .tuple(fc.constantFrom(...Object.keys(whole), "later"), odd)
      .map(([key, value]) => JSON.parse(JSON.stringify({ ...whole, [key]: value })));
    return same("ledger-line", line, (one) => typeof readLine(JSON.stringify(one)) === "object");
  });
});
