import { readLedger } from "../../gate/ledger-read.ts";
import { sha256Base64 } from "../../host/private-files.ts";
import { writeText } from "../../host/write.ts";
import { ENTRY_FORM } from "../../ledger/read.ts";
import { GROUPINGS, type Grouping, Report } from "../../ledger/totals.ts";
import type { Entry } from "../../ledger/types.ts";
import { GateError } from "../../lib/errors.ts";
import { jsonText } from "../../render/json-line.ts";
import { groupsCsv, humanLedger, ledgerCsv, ledgerDocument, troubles } from "../../render/ledger.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { OUTPUT_FLAGS, QUIET_FLAG, SITE_FLAGS } from "../flags.ts";
import { ledgerFolder, RANGE_FLAGS, rangeOf } from "../ledger-flags.ts";

const BY = Object.keys(GROUPINGS) as Grouping[];

export const command: Command = {
  name: "ledger",
  description: "Report the verdicts that --ledger recorded: refused, held back, over-requested, waived",
  args: {
    folder: { type: "positional", required: false, description: "the ledger (`ledger` of the site file)" },
    ...RANGE_FLAGS,
    by: { type: "enum", options: [...BY], description: "this table only; with --csv a row for each of them" },
    csv: { type: "boolean", description: "a row a verdict, in the order of time" },
    html: { type: "string", valueHint: "FILE|-", description: "one page with charts, for a browser" },
    ...OUTPUT_FLAGS,
    ...QUIET_FLAG,
    config: SITE_FLAGS.config,
  },
  examples: [
    ["neurarch-gate ledger /var/log/neurarch --since 2026-11-01", "what November came to"],
    ["neurarch-gate ledger /var/log/neurarch --html november.html", "the same as a page with charts"],
    ["neurarch-gate ledger /var/log/neurarch --csv > verdicts.csv", "for a spreadsheet"],
  ],
  run,
};

async function run({ values, switches, words }: ParsedWords): Promise<CommandOutput> {
  const json = switches.json === true || values.output === "json";
  const csv = switches.csv === true;
  if ([json, csv, values.html !== undefined].filter(Boolean).length > 1)
    throw new GateError("usage", "--csv, --json and --html exclude each other");
  const range = rangeOf(values);
  const by = (values.by as Grouping | undefined) ?? null;
  const { folder } = await ledgerFolder(words[0], values);
  const report = new Report();
  const entries: Entry[] = [];
  const reading = readLedger(folder, (entry) => {
    if (!range.holds(entry)) return;
    report.add(entry);
    if (csv && by === null) entries.push(entry);
  });
  const told = { folder, ...range, report, ...reading };
  if (json) return { out: `${jsonText(ledgerDocument(told))}\n`, exit: 0 };
  const err = troubles(told)
    .filter((line) => line !== "")
    .map((line) => `neurarch-gate ledger: ${line}\n`)
    .join("");
  if (csv)
    return {
      out:
        by === null
          ? ledgerCsv(entries, Object.keys(ENTRY_FORM) as (keyof Entry)[])
          : groupsCsv(by, report.by(by)),
      err,
      exit: 0,
    };
  if (values.html === undefined) return { out: humanLedger(told, by), exit: 0 };
  const { ledgerHtml, PAGE_STYLE } = await import("../../render/ledger-html.ts");
  const page = ledgerHtml(told, { styleHash: sha256Base64(PAGE_STYLE) });
  if (values.html === "-") return { out: page, err, exit: 0 };
  const problem = writeText(values.html, page);
  if (problem !== null)
    throw new GateError("input-unreadable", `--html ${values.html} cannot be written: ${problem}`);
  return { err, exit: 0 };
}
