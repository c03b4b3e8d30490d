import { loadSettings } from "../../gate/load.ts";
import { openReport } from "../../gate/rightsize-report.ts";
import { SKYPILOT_DEADLINE_MS } from "../../gate/size.ts";
import { environment, isTerminal, terminalColumns, workingDirectory } from "../../host/env.ts";
import { compileSoon } from "../../host/jit.ts";
import { hasReaderGone, writeError, writeOut } from "../../host/out.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { OUTPUT_FLAGS, QUIET_FLAG, SITE_FLAGS } from "../flags.ts";

export const command: Command = {
  name: "rightsize",
  description: "Report on a table of jobs: what each asks for, what it needs, what would be enough",
  args: {
    file: {
      type: "positional",
      description:
        "CSV with the columns job_id, model, gpu, hours, batch, seq_len, lora_rank, attention, or any fact's name; - reads stdin",
    },
    config: SITE_FLAGS.config,
    "max-cost-usd": SITE_FLAGS["max-cost-usd"],
    prices: SITE_FLAGS.prices,
    cards: SITE_FLAGS.cards,
    "gpu-map": SITE_FLAGS["gpu-map"],
    headroom: SITE_FLAGS.headroom,
    timeout: SITE_FLAGS.timeout,
    ...OUTPUT_FLAGS,
    ...QUIET_FLAG,
  },
  examples: [
    ["neurarch-gate rightsize jobs.csv", "a table, and what asking for less would save"],
    ["neurarch-gate rightsize jobs.csv --json", "for scripts, and for the published neurarch packages"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  compileSoon();
  const settings = await loadSettings(input);
  const json = input.switches.json === true || input.values.output === "json";
  const report = openReport(input.words[0]!, settings, {
    json,
    width: terminalColumns() ?? undefined,
    cwd: workingDirectory(),
    env: environment(),
    deadlineMs: SKYPILOT_DEADLINE_MS,
  });
  const quiet = input.switches.quiet === true;
  const bar = isTerminal("stderr") && !quiet;
  if (!quiet) for (const note of report.notes) writeError(`${note}\n`);
  for await (const { text, progress } of report.pieces()) {
    // The bar is taken away before anything else is written: both may go to one terminal.
    if (bar) writeError("\r\u001b[K");
    const lost = writeOut(text);
    if (lost !== null)
      return { err: `neurarch-gate rightsize: the report could not be written: ${lost}.\n`, exit: 70 };
    if (hasReaderGone()) break;
    if (bar && progress !== null) writeError(progress);
  }
  const problem = report.problem();
  return problem === null ? { exit: 0 } : { err: `neurarch-gate rightsize: ${problem}.\n`, exit: 4 };
}
