import { readAccounting } from "../../../gate/accounting.ts";
import { readLedger } from "../../../gate/ledger-read.ts";
import { reconcile, reconcileTotals } from "../../../ledger/reconcile.ts";
import type { Adapter, Entry } from "../../../ledger/types.ts";
import { GateError } from "../../../lib/errors.ts";
import { jsonText } from "../../../render/json-line.ts";
import { humanReconcile, reconcileCsv, reconcileDocument } from "../../../render/reconcile.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../../flags.ts";
import { ledgerFolder, RANGE_FLAGS, rangeOf } from "../../ledger-flags.ts";

/** Whose verdicts a scheduler's jobs can be. */
const ADAPTERS: Readonly<Record<"sacct" | "sky", readonly Adapter[]>> = {
  sacct: ["slurm"],
  sky: ["skypilot", "serve"],
};
/** Seconds from a verdict to its job: sbatch submits at once, SkyPilot may start a controller first. */
const WITHIN_S = { sacct: 60, sky: 900 } as const;

export const command: Command = {
  name: "ledger reconcile",
  description: "Say what became of the jobs that were judged, from sacct or sky jobs queue",
  args: {
    folder: { type: "positional", required: false, description: "the ledger (`ledger` of the site file)" },
    sacct: {
      type: "boolean",
      description: "ask sacct, or take --from for its output (what is asked by default)",
    },
    sky: { type: "boolean", description: "ask sky jobs queue, or take --from for its output" },
    from: {
      type: "string",
      valueHint: "FILE|-",
      description: "output of `sacct -P` or `sky jobs queue -o json`",
    },
    ...RANGE_FLAGS,
    within: {
      type: "string",
      valueHint: "S",
      description: "most seconds from a verdict to its job's submit time (60; sky 900)",
    },
    "utc-offset": {
      type: "string",
      valueHint: "+HH:MM",
      description: "zone of the times in --from (+00:00); sacct itself is asked for UTC",
    },
    csv: { type: "boolean", description: "a row a verdict" },
    ...OUTPUT_FLAGS,
    config: SITE_FLAGS.config,
  },
  examples: [
    ["neurarch-gate ledger reconcile /var/log/neurarch --since 2026-11-01", "as someone who sees all jobs"],
    ["neurarch-gate ledger reconcile /var/log/neurarch --sky", "managed jobs of SkyPilot"],
  ],
  run,
};

async function run({ values, switches, words }: ParsedWords): Promise<CommandOutput> {
  const json = switches.json === true || values.output === "json";
  if (json && switches.csv === true) throw new GateError("usage", "--csv and --json exclude each other");
  if (switches.sacct === true && switches.sky === true)
    throw new GateError("usage", "--sacct and --sky exclude each other");
  const asked = switches.sky === true ? "sky" : switches.sacct === true ? "sacct" : null;
  const range = rangeOf(values);
  const withinS = withinOf(values.within);
  const utcOffsetS = offsetOf(values["utc-offset"]);
  const { folder } = await ledgerFolder(words[0], values);
  const all: Entry[] = [];
  readLedger(folder, (entry) => {
    if (range.holds(entry)) all.push(entry);
  });
  const first = all.map(({ time }) => time).sort()[0] ?? "";
  if (all.length === 0)
    throw new GateError(
      "input-invalid",
      `${folder} has no verdict of that time`,
      "Look at `neurarch-gate ledger`.",
    );
  const { source, jobs, unread } = await readAccounting({
    source: asked,
    from: values.from ?? null,
    sinceS: Date.parse(first) / 1000 - 60,
    utcOffsetS,
  });
  const entries = all.filter(({ adapter }) => ADAPTERS[source].includes(adapter));
  const rows = reconcile(entries, jobs, {
    withinS: withinS ?? WITHIN_S[source],
    repeats: source === "sky",
  });
  const told = {
    source,
    folder,
    since: range.since,
    until: range.until,
    user: range.user,
    rows,
    totals: reconcileTotals(rows),
    jobs: jobs.length,
    unreadRows: unread,
  };
  const out = json
    ? `${jsonText(reconcileDocument(told))}\n`
    : switches.csv === true
      ? reconcileCsv(told)
      : humanReconcile(told);
  return { out, exit: 0 };
}

function withinOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new GateError(
    "usage",
    `--within is \`${text}\`, not a number of seconds`,
    "Write `--within 60`, say.",
  );
}

function offsetOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(text) ?? [];
  if (sign === undefined || Number(hours) > 14 || Number(minutes) > 59)
    throw new GateError(
      "usage",
      `--utc-offset is \`${text}\`, not an offset`,
      "Write `--utc-offset +01:00`, say.",
    );
  return (Number(hours) * 3600 + Number(minutes) * 60) * (sign === "-" ? -1 : 1);
}
