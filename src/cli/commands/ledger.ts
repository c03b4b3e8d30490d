import { readLedger } from "../../gate/ledger-read.ts";
import { loadSettings } from "../../gate/load.ts";
import { workingDirectory } from "../../host/env.ts";
import { resolve } from "../../host/paths.ts";
import { ENTRY_FORM } from "../../ledger/read.ts";
import { Report } from "../../ledger/totals.ts";
import type { Entry } from "../../ledger/types.ts";
import { GateError } from "../../lib/errors.ts";
import { humanLedger, ledgerCsv, ledgerDocument, troubles } from "../../render/ledger.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../flags.ts";

export const command: Command = {
  name: "ledger",
  description: "Report the verdicts that --ledger recorded: refused, held back, over-requested, waived",
  args: {
    folder: { type: "positional", required: false, description: "the ledger (`ledger` of the site file)" },
    since: { type: "string", valueHint: "DAY", description: "verdicts of this day (UTC) and later" },
    csv: { type: "boolean", description: "a row a verdict, in the order of time" },
    ...OUTPUT_FLAGS,
    config: SITE_FLAGS.config,
  },
  examples: [
    ["neurarch-gate ledger /var/log/neurarch --since 2026-11-01", "what November came to"],
    ["neurarch-gate ledger /var/log/neurarch --csv > verdicts.csv", "for a spreadsheet"],
  ],
  run,
};

async function run({ values, switches, words }: ParsedWords): Promise<CommandOutput> {
  const json = switches.json === true || values.output === "json";
  if (json && switches.csv === true) throw new GateError("usage", "--csv and --json exclude each other");
  const since = dayOf(values.since);
  const named = words[0] ?? (await loadSettings({ values, switches: {} })).ledger;
  if (named === null)
    throw new GateError(
      "usage",
      "no ledger is named, and the site keeps none",
      "Name its folder: ledger PATH.",
    );
  const folder = resolve(workingDirectory(), named);
  const report = new Report();
  const entries: Entry[] = [];
  const reading = readLedger(folder, (entry) => {
    if (since !== null && entry.time < since) return;
    report.add(entry);
    if (switches.csv === true) entries.push(entry);
  });
  const told = { folder, since, report, ...reading };
  if (json) return { out: `${JSON.stringify(ledgerDocument(told))}\n`, exit: 0 };
  if (switches.csv !== true) return { out: humanLedger(told), exit: 0 };
  const err = troubles(told)
    .filter((line) => line !== "")
    .map((line) => `neurarch-gate ledger: ${line}\n`)
    .join("");
  return { out: ledgerCsv(entries, Object.keys(ENTRY_FORM) as (keyof Entry)[]), err, exit: 0 };
}

/** Throws `GateError("usage")` for what is no day. */
function dayOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const day = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : null;
  if (day === null || Number.isNaN(day.getTime()) || day.toISOString().slice(0, 10) !== text)
    throw new GateError("usage", `--since is \`${text}\`, not a day`, "Write `--since 2026-11-01`, say.");
  return text;
}
