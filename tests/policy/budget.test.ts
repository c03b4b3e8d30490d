import { describe, expect, test } from "bun:test";
import { applyPolicy } from "../../src/policy/apply.ts";
import type { Circumstances, RunFacts } from "../../src/policy/types.ts";
import { identity, on, policyOf, runOf, waiverFile } from "./support.ts";

interface Row {
  readonly budget: string;
  readonly run?: Partial<RunFacts>;
  readonly on?: Partial<Circumstances>;
  /** The rest of the file. */
  readonly file?: string;
}

/** `RULE EFFECTIVE: TITLE`, a line each. */
function outcome(row: Row): string[] {
  const policy = policyOf(`${row.file ?? "version: 1\n"}budget: ${row.budget}\n`);
  const found = applyPolicy(policy, { findings: [], runs: [runOf(row.run)] }, on(row.on), identity);
  for (const { gates, effective } of found) expect(gates).toBe(effective === "block");
  return found.map(({ rule, effective, title, waiver }) => {
    const by = waiver === null ? "" : ` (waived by ${waiver.owner})`;
    return `${rule.replace(/^.*\//, "")} ${effective}: ${title}${by}`;
  });
}

const cards = (card: string, list: string) => [
  `card-not-allowed block: ${card} is not an allowed card (${list})`,
];
const cost = (text: string, cap: string, word = "block: The run costs") => [
  `cost-per-run ${word} ${text} at list price, over the ${cap} that max_cost_per_run_usd allows`,
];
const params = (text: string, cap: string) => [
  `params block: Qwen/Qwen3-8B has ${text} parameters, over the ${cap} that max_params allows`,
];

const ROWS: readonly (readonly [name: string, row: Row, expected: readonly string[]])[] = [
  ["an empty budget", { budget: "" }, []],
  ["an allowed card", { budget: "{cards_allowed: [H100]}" }, []],
  ["another card", { budget: "{cards_allowed: [A10G]}" }, cards("H100", "A10G")],
  ["one name, no list", { budget: "{cards_allowed: H100}" }, []],
  ["in small letters", { budget: "{cards_allowed: [h100]}" }, []],
  ["another name of the card", { budget: "{cards_allowed: [A100-80]}", run: { cards: ["A100-80GB"] } }, []],
  ["the driver's name of it", { budget: "{cards_allowed: [nvidia-h100-80gb-hbm3]}" }, []],
  ["A10 is A10G", { budget: "{cards_allowed: [A10]}", run: { cards: ["a10g"] } }, []],
  [
    "the other A100 is another card",
    { budget: "{cards_allowed: [A100]}", run: { cards: ["A100-80GB"] } },
    cards("A100-80GB", "A100"),
  ],
  ["a card nobody knows, listed", { budget: "{cards_allowed: [B999]}", run: { cards: ["b999"] } }, []],
  [
    "a card nobody knows, not listed",
    { budget: "{cards_allowed: [H100]}", run: { cards: ["B999"] } },
    cards("B999", "H100"),
  ],
  [
    "two cards, one allowed",
    { budget: "{cards_allowed: [H100, L4]}", run: { cards: ["L4", "T4"] } },
    cards("T4", "H100, L4"),
  ],
  ["no card", { budget: "{cards_allowed: [H100]}", run: { cards: [] } }, []],
  ["a cost at the limit", { budget: "{max_cost_per_run_usd: 100}", run: { costUsd: 100 } }, []],
  [
    "a cost above it",
    { budget: "{max_cost_per_run_usd: 100}", run: { costUsd: 100.01 } },
    cost("$100.01", "$100.00"),
  ],
  ["a cost that is not known", { budget: "{max_cost_per_run_usd: 100}" }, []],
  [
    "an upper bound is a warning",
    { budget: "{max_cost_per_run_usd: 1}", run: { costUsd: 2, upperBound: true } },
    cost("$2.00", "$1.00", "warn: The run may cost up to"),
  ],
  [
    "nothing may cost",
    { budget: "{max_cost_per_run_usd: 0}", run: { costUsd: 0.5 } },
    cost("$0.50", "$0.00"),
  ],
  ["parameters at the limit", { budget: "{max_params: 8190735360}" }, []],
  ["parameters above it", { budget: "{max_params: 7B}" }, params("8.2B", "7B")],
  [
    "parameters just above it",
    { budget: "{max_params: 8.19B}", run: { params: 8_190_735_360 } },
    params("8190735360", "8.2B"),
  ],
  ["thousands", { budget: "{max_params: 500K}", run: { params: 600_000 } }, params("600K", "500K")],
  ["millions in small letters", { budget: "{max_params: 350m}", run: { params: 1e9 } }, params("1B", "350M")],
  ["digits in groups", { budget: "{max_params: 7_000_000_000}" }, params("8.2B", "7B")],
  ["parameters that are not known", { budget: "{max_params: 7B}", run: { params: null } }, []],
  [
    "all lines at once",
    { budget: "{cards_allowed: [T4], max_cost_per_run_usd: 1, max_params: 7B}", run: { costUsd: 2 } },
    [...cards("H100", "T4"), ...cost("$2.00", "$1.00"), ...params("8.2B", "7B")],
  ],
  [
    "set to warn",
    { budget: "{cards_allowed: [T4]}", file: "version: 1\nrules: {budget/card-not-allowed: warn}\n" },
    ["card-not-allowed warn: H100 is not an allowed card (T4)"],
  ],
  [
    "set to off",
    { budget: "{cards_allowed: [T4]}", file: "version: 1\nrules: {budget/card-not-allowed: off}\n" },
    ["card-not-allowed off: H100 is not an allowed card (T4)"],
  ],
  [
    "an upper bound set to block",
    {
      budget: "{max_cost_per_run_usd: 1}",
      run: { costUsd: 2, upperBound: true },
      file: "version: 1\nrules: {budget/cost-per-run: block}\n",
    },
    cost("$2.00", "$1.00", "block: The run may cost up to"),
  ],
  [
    "waived",
    { budget: "{cards_allowed: [T4]}", file: waiverFile({ rule: "budget/card-not-allowed" }) },
    ["card-not-allowed warn: H100 is not an allowed card (T4) (waived by @ops)"],
  ],
  [
    "waived for another model",
    { budget: "{cards_allowed: [T4]}", file: waiverFile({ rule: "budget/card-not-allowed", model: "a/*" }) },
    cards("H100", "T4"),
  ],
  [
    "a waiver of the memory waives no budget",
    { budget: "{cards_allowed: [T4]}", file: waiverFile() },
    cards("H100", "T4"),
  ],
  [
    "tighten-only: it counts",
    { budget: "{cards_allowed: [T4]}", on: { repoPolicy: "tighten-only" } },
    cards("H100", "T4"),
  ],
  [
    "tighten-only: and the file may waive its own",
    {
      budget: "{cards_allowed: [T4]}",
      on: { repoPolicy: "tighten-only" },
      file: waiverFile({ rule: "budget/card-not-allowed" }),
    },
    ["card-not-allowed warn: H100 is not an allowed card (T4) (waived by @ops)"],
  ],
  [
    "ignore: it does not count",
    { budget: "{cards_allowed: [T4], max_params: 1}", on: { repoPolicy: "ignore" } },
    [],
  ],
];

describe("budget lines", () => {
  for (const [name, row, expected] of ROWS) test(name, () => expect(outcome(row)).toEqual([...expected]));
});

test("the fix names the cards that are allowed", () => {
  const policy = policyOf("version: 1\nbudget: {cards_allowed: [a100, L4]}\n");
  const [found] = applyPolicy(policy, { findings: [], runs: [runOf({ ref: 3 })] }, on(), identity);
  expect(found).toMatchObject({ checker: "budget", ref: 3, fix: "Request one of a100, L4.", waiver: null });
});
