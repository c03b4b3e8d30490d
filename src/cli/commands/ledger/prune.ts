import { removeOld } from "../../../host/rotate.ts";
import { GateError } from "../../../lib/errors.ts";
import { counted } from "../../../render/text.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { SITE_FLAGS } from "../../flags.ts";
import { ledgerFolder } from "../../ledger-flags.ts";

export const command: Command = {
  name: "ledger prune",
  description: "Remove files that were put aside and not written for some days",
  args: {
    folder: { type: "positional", required: false, description: "the ledger (`ledger` of the site file)" },
    "keep-days": {
      type: "string",
      valueHint: "N",
      description: "days that they are kept (`ledger_keep_days` of the site file)",
    },
    config: SITE_FLAGS.config,
  },
  examples: [
    ["neurarch-gate ledger prune /var/log/neurarch --keep-days 400", "from cron, as the folder's owner"],
  ],
  run,
};

async function run({ values, words }: ParsedWords): Promise<CommandOutput> {
  const { folder, settings } = await ledgerFolder(words[0], values);
  const text = values["keep-days"];
  if (text !== undefined && !/^\d{1,6}(\.\d+)?$/.test(text))
    throw new GateError(
      "usage",
      `--keep-days is \`${text}\`, not a number of days`,
      "Write `--keep-days 400`, say.",
    );
  const days = text === undefined ? (settings.ledgerUpkeep?.keepDays ?? null) : Number(text);
  if (days === null)
    throw new GateError(
      "usage",
      "nothing says how long files are kept",
      "Give --keep-days N, or ledger_keep_days.",
    );
  const removed = removeOld(folder, null, days * 86_400_000);
  return { out: `${[...removed, `${counted(removed.length, "file")} removed`].join("\n")}\n`, exit: 0 };
}
