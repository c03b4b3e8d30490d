import { deliver } from "../../../gate/ledger-send.ts";
import { collectorOf } from "../../../gate/ledger-spool.ts";
import { loadSettings } from "../../../gate/load.ts";
import { environment } from "../../../host/env.ts";
import { spoolFolder } from "../../../host/spool.ts";
import { GateError } from "../../../lib/errors.ts";
import { isAddress, shownAddress } from "../../../lib/sink.ts";
import { counted } from "../../../render/text.ts";
import type { Command, CommandOutput, ParsedWords } from "../../command.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../../flags.ts";
import { version } from "../../version.ts";

/** Milliseconds for all that waits. */
const PATIENCE_MS = 60_000;

export const command: Command = {
  name: "ledger send",
  description: "Send this user's verdicts that wait for the collector",
  args: { ledger: SITE_FLAGS.ledger, config: SITE_FLAGS.config, ...OUTPUT_FLAGS },
  examples: [["neurarch-gate ledger send", "what a collector that was away has not got yet"]],
  run,
};

async function run({ values, switches }: ParsedWords): Promise<CommandOutput> {
  const settings = await loadSettings({ values, switches: {} });
  const { ledger } = settings;
  if (ledger === null || !isAddress(ledger))
    throw new GateError(
      "usage",
      ledger === null ? "the site keeps no ledger" : `the ledger is ${ledger}, a folder, where nothing waits`,
      "Name a collector: --ledger unix:/PATH or --ledger https://HOST.",
    );
  const env = environment();
  const folder = spoolFolder(env);
  if (folder === null)
    throw new GateError("usage", "neither HOME nor XDG_STATE_HOME is set, so nothing waits anywhere");
  const { sent, left, why } = await deliver(folder, collectorOf({ ...settings, ledger }, env, version()), {
    timeoutMs: PATIENCE_MS,
    all: true,
  });
  const address = shownAddress(ledger);
  if (why !== null)
    throw new GateError(
      "unreachable",
      `${address} did not take what waits: ${why} (${sent} sent, ${counted(left, "file")} left in ${folder})`,
      "`neurarch-gate doctor ledger` looks at it.",
    );
  const json = switches.json === true || values.output === "json";
  return {
    out: json
      ? `${JSON.stringify({ schema: "neurarch-gate/ledger-send", version: 1, ledger: address, sent, left })}\n`
      : `${counted(sent, "verdict")} sent to ${address}\n`,
    exit: 0,
  };
}
