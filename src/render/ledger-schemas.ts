import { type ReconcileTotals, SAID } from "../ledger/reconcile.ts";
import { GROUPINGS, type Totals } from "../ledger/totals.ts";
import { FATES } from "../lib/ran-job.ts";
import { RULE_IDS } from "../policy/rules.ts";
import { DECISIONS } from "../verdict/types.ts";
import {
  COUNT,
  documentOf,
  type JsonSchema,
  listOf,
  NUMBER,
  objectOf,
  oneOf,
  orNull,
  TEXT,
} from "./schema-parts.ts";

/* The schemas of what `ledger --json` and `ledger reconcile --json` print. */

function countsOf(names: readonly string[]): Record<string, JsonSchema> {
  return Object.fromEntries(names.map((name) => [name, COUNT]));
}

const TOTALS: Readonly<Record<keyof Totals, JsonSchema>> = {
  verdicts: COUNT,
  byDecision: objectOf(countsOf(DECISIONS)),
  stopped: COUNT,
  gpuHoursHeldBack: NUMBER,
  usdHeldBack: NUMBER,
  stoppedWithoutPrice: COUNT,
  overRequested: COUNT,
  overUsd: NUMBER,
  waiversUsed: COUNT,
};

const RANGE = { folder: TEXT, since: orNull(TEXT), until: orNull(TEXT), user: orNull(TEXT) };

export const LEDGER_SCHEMA = documentOf("ledger", "What recorded verdicts come to (ledger --json)", {
  ...RANGE,
  files: COUNT,
  unread: listOf(TEXT),
  corruptLines: COUNT,
  laterLines: COUNT,
  totals: objectOf(TOTALS),
  ...Object.fromEntries(
    Object.keys(GROUPINGS).map((name) => [
      `by${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      listOf(objectOf({ key: orNull(TEXT), ...TOTALS })),
    ]),
  ),
});

const FATE = orNull(oneOf(FATES));

const RECONCILE_TOTALS: Readonly<
  Record<Exclude<keyof ReconcileTotals, "bySaid" | "over"> | "byVerdict" | "overRequests", JsonSchema>
> = {
  verdicts: COUNT,
  matched: COUNT,
  stopped: COUNT,
  notFound: COUNT,
  repeated: COUNT,
  byVerdict: objectOf(Object.fromEntries(SAID.map((said) => [said, objectOf(countsOf(["jobs", ...FATES]))]))),
  overRequests: objectOf(countsOf(["real", "notReal", "notSaid"])),
};

export const RECONCILE_SCHEMA = documentOf(
  "reconcile",
  "What became of judged jobs (ledger reconcile --json)",
  {
    source: oneOf(["sacct", "sky"]),
    ...RANGE,
    jobs: COUNT,
    unreadRows: COUNT,
    totals: objectOf(RECONCILE_TOTALS),
    verdicts: listOf(
      objectOf({
        time: TEXT,
        id: orNull(TEXT),
        adapter: TEXT,
        user: orNull(TEXT),
        cluster: orNull(TEXT),
        model: orNull(TEXT),
        request: orNull(TEXT),
        needGb: orNull(NUMBER),
        requestGb: orNull(NUMBER),
        verdict: oneOf(SAID),
        rule: orNull(oneOf(RULE_IDS)),
        match: oneOf(["job", "repeat", "none", "stopped"]),
        jobId: orNull(TEXT),
        fate: FATE,
        told: orNull(TEXT),
        tasks: orNull(COUNT),
        tasksOutOfMemory: orNull(COUNT),
        usedGb: orNull(NUMBER),
        overRequest: orNull(oneOf(["real", "not-real", "not-said"])),
      }),
    ),
    limits: listOf(TEXT),
  },
);
