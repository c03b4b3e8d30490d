import type { JsonSchema } from "../../render/schema-parts.ts";

/** Schemas by name, each loaded only when it is asked for. */
type Schemas = Readonly<Record<string, () => Promise<JsonSchema>>>;

const documents = () => import("../../render/document-schemas.ts");
const verdicts = () => import("../../render/verdict-schema.ts");
const site = () => import("./site.ts");
const campaign = async (name: "campaign" | "clusters" | "resources" | "run") =>
  (await import("../../bridge/campaign/json-schema.ts")).campaignSchema(name);

/** Files that people write. */
const FILES: Schemas = {
  policy: async () => (await import("../../policy/schema.ts")).POLICY_SCHEMA,
  gate: async () => (await site()).siteSchema(),
  "cards-file": async () => (await site()).CARDS_FILE_SCHEMA,
  "prices-file": async () => (await site()).PRICES_FILE_SCHEMA,
  "gpu-map": async () => (await site()).GPU_MAP_SCHEMA,
  "partition-map": async () => (await site()).PARTITION_MAP_SCHEMA,
  "rightsize-row": async () => (await import("./judge-request.ts")).RIGHTSIZE_ROW_SCHEMA,
};

/** Messages that programs send and read. */
const MESSAGES: Schemas = {
  verdict: async () => (await verdicts()).VERDICT_SCHEMA,
  sizing: async () => (await verdicts()).SIZING_SCHEMA,
  error: async () => (await documents()).ERROR_SCHEMA,
  "judge-request": async () => (await import("./judge-request.ts")).JUDGE_REQUEST_SCHEMA,
  rightsize: async () => (await documents()).RIGHTSIZE_SCHEMA,
  cards: async () => (await documents()).CARD_TABLE_SCHEMA,
  doctor: async () => (await documents()).DOCTOR_SCHEMA,
  "self-test": async () => (await documents()).SELF_TEST_SCHEMA,
  "policy-check": async () => (await documents()).POLICY_CHECK_SCHEMA,
  "policy-rules": async () => (await documents()).POLICY_RULES_SCHEMA,
  "policy-findings": async () => (await documents()).POLICY_FINDINGS_SCHEMA,
  "policy-apply": async () => (await documents()).POLICY_APPLY_SCHEMA,
  ledger: async () => (await import("../../render/ledger-schemas.ts")).LEDGER_SCHEMA,
  reconcile: async () => (await import("../../render/ledger-schemas.ts")).RECONCILE_SCHEMA,
  "ledger-line": async () => (await import("../../ledger/schema.ts")).LEDGER_LINE_SCHEMA,
};

/** Files of the bridge. */
const BRIDGE: Schemas = {
  campaign: () => campaign("campaign"),
  clusters: () => campaign("clusters"),
  resources: () => campaign("resources"),
  run: () => campaign("run"),
};

/** Every schema by name. */
export const SCHEMAS: Schemas = { ...FILES, ...MESSAGES, ...BRIDGE };
