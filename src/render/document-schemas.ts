import { RULE_IDS } from "../policy/rules.ts";
import { SEVERITIES } from "../policy/types.ts";
import type { Card } from "../request/types.ts";
import { FITS } from "../verdict/types.ts";
import type { Finding } from "./doctor.ts";
import type { JobReport, ReportTotals } from "./rightsize.ts";
import {
  COUNT,
  DIALECT,
  documentOf,
  FLAG,
  type JsonSchema,
  listOf,
  NUMBER,
  objectOf,
  oneOf,
  orNull,
  TEXT,
} from "./schema-parts.ts";

/* The schemas of the documents that commands print, but for verdicts and sizes. */

export const ERROR_SCHEMA = documentOf("error", "Why a command did not do what it was asked (--json)", {
  code: oneOf([
    "usage",
    "input-unreadable",
    "input-invalid",
    "config-invalid",
    "settings-invalid",
    "unreachable",
    "internal",
  ]),
  message: TEXT,
  hint: orNull(TEXT),
});

const CHECK: Readonly<Record<keyof Finding, JsonSchema>> = {
  check: TEXT,
  status: oneOf(["ok", "warn", "fail", "skipped"]),
  message: TEXT,
  fix: orNull(TEXT),
};

export const DOCTOR_SCHEMA = documentOf("doctor", "What doctor found (doctor --json)", {
  subject: TEXT,
  ok: FLAG,
  checks: listOf(objectOf(CHECK)),
});

export const SELF_TEST_SCHEMA = documentOf(
  "self-test",
  "What the executable found of itself (self-test --json)",
  {
    program: TEXT,
    ok: FLAG,
    checks: listOf(objectOf(CHECK)),
  },
);

const CARD: Readonly<Record<keyof Card | "name", JsonSchema>> = {
  id: TEXT,
  gb: NUMBER,
  usdPerHour: orNull(NUMBER),
  names: listOf(TEXT),
  vendor: oneOf(["cuda", "rocm", "hpu", "other"]),
  candidate: FLAG,
  slice: FLAG,
  source: objectOf({ capacity: TEXT, price: orNull(TEXT) }),
  name: TEXT,
};

export const CARD_TABLE_SCHEMA = documentOf("cards", "The card table in force (cards --json)", {
  priceSource: TEXT,
  cards: listOf(objectOf(CARD)),
});

const TOTALS: Readonly<Record<keyof ReportTotals, JsonSchema>> = {
  jobs: COUNT,
  tooSmall: COUNT,
  rightSized: COUNT,
  overRequested: COUNT,
  notJudged: COUNT,
  usdSavedPerHour: NUMBER,
  usdSaved: NUMBER,
};

const JOB: Readonly<Record<keyof JobReport | "unjudged", JsonSchema>> = {
  jobId: TEXT,
  peakGb: orNull(NUMBER),
  seqLen: orNull(NUMBER),
  params: orNull(NUMBER),
  reason: orNull(TEXT),
  unjudged: orNull(TEXT),
  model: orNull(TEXT),
  request: orNull(TEXT),
  requestGb: orNull(NUMBER),
  needGb: orNull(NUMBER),
  decision: oneOf(["allow", "warn", "refuse", "unjudged"]),
  fit: orNull(oneOf(FITS)),
  rule: orNull(oneOf(RULE_IDS)),
  smallest: orNull(objectOf({ accelerator: TEXT, count: COUNT })),
  usdSavedPerHour: orNull(NUMBER),
  usdSaved: orNull(NUMBER),
  assumed: listOf(TEXT),
};

export const RIGHTSIZE_SCHEMA = documentOf("rightsize", "A report over many jobs (rightsize --json)", {
  jobs: listOf(objectOf(JOB)),
  summary: objectOf(TOTALS),
  priceSource: TEXT,
  error: orNull(TEXT),
});

const DAY = { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}$" };
const GLOBS = orNull(listOf(TEXT));

export const POLICY_CHECK_SCHEMA = documentOf(
  "policy-check",
  "A policy file, checked (policy check --json)",
  {
    file: TEXT,
    today: DAY,
    applied: FLAG,
    problems: listOf(
      objectOf({
        severity: oneOf(["error", "warning"]),
        rule: orNull(oneOf(RULE_IDS)),
        message: TEXT,
        fix: orNull(TEXT),
        line: orNull(COUNT),
        column: orNull(COUNT),
      }),
    ),
    waivers: listOf(
      objectOf({
        rule: TEXT,
        owner: TEXT,
        reason: TEXT,
        created: orNull(DAY),
        expires: DAY,
        model: GLOBS,
        path: GLOBS,
        cluster: GLOBS,
        state: TEXT,
        line: COUNT,
      }),
    ),
    budget: orNull(
      objectOf({
        cards_allowed: orNull(listOf(TEXT)),
        max_cost_per_run_usd: orNull(NUMBER),
        max_params: orNull(NUMBER),
      }),
    ),
    rules: orNull({ type: "object", additionalProperties: oneOf(SEVERITIES) }),
  },
);

export const POLICY_RULES_SCHEMA = documentOf("policy-rules", "What rules mean (policy explain --json)", {
  rules: listOf(
    objectOf({
      rule: oneOf(RULE_IDS),
      severity: oneOf(SEVERITIES),
      waivable: FLAG,
      settable: FLAG,
      means: TEXT,
      fires: TEXT,
      effect: TEXT,
      waive: TEXT,
    }),
  ),
});

/** What `policy apply` reads. Whatever else a caller sends along is passed over. */
export const POLICY_FINDINGS_SCHEMA: JsonSchema = {
  $schema: DIALECT,
  title: "Findings that a policy file is applied to (policy apply, standard input)",
  type: "object",
  properties: {
    findings: orNull(
      listOf({
        type: "object",
        required: ["rule", "severity"],
        properties: { rule: TEXT, severity: oneOf(["block", "warn"]) },
      }),
    ),
    facts: orNull(
      listOf({
        type: "object",
        properties: {
          cards: orNull(listOf(TEXT)),
          estCostUsd: orNull(NUMBER),
          params: orNull(NUMBER),
        },
      }),
    ),
  },
};

/** What `policy apply --json` prints: keys without a value are left out, as the published packages read them. */
export const POLICY_APPLY_SCHEMA: JsonSchema = {
  $schema: DIALECT,
  title: "What a policy file decides of findings (policy apply --json)",
  ...objectOf({
    policy: TEXT,
    findings: listOf(
      objectOf(
        {
          checker: TEXT,
          rule: TEXT,
          gates: FLAG,
          effective: oneOf(["block", "warn", "off"]),
          ref: { type: "integer" },
          title: TEXT,
          fix: TEXT,
          waiver: objectOf({ owner: TEXT, expires: DAY, reason: TEXT }),
        },
        ["ref", "fix", "waiver"],
      ),
    ),
  }),
};
