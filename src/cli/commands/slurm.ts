import { Keeper } from "../../gate/keeper.ts";
import { loadSettings } from "../../gate/load.ts";
import { makePolicy } from "../../gate/policy.ts";
import { makeRecorder } from "../../gate/recorder.ts";
import { makeSizer, SLURM_DEADLINE_MS } from "../../gate/size.ts";
import { submitJobs } from "../../gate/slurm-submit.ts";
import { judgeTask } from "../../gate/task.ts";
import { environment, executablePath, workingDirectory } from "../../host/env.ts";
import { GateError } from "../../lib/errors.ts";
import { commentOf, filterDecision, filterLines } from "../../render/lines.ts";
import { noteLine } from "../../render/messages.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { jobFlags, pick, SITE_FLAGS, SLURM_OPTION_FLAGS } from "../flags.ts";
import { parseStrict } from "../strict.ts";
import { version } from "../version.ts";

/** The contract between the Lua filter and this program: the lines below and the flags the filter passes. */
export const LUA_CONTRACT = 1;

/** Tells the filter that the answer is whole: what it starts may leave a process behind that holds the pipe open. */
const END = "end\n";

/** The same for words that could not be parsed. */
function endOf(words: readonly string[]): string {
  return words.some((word) => word.startsWith("--lua-contract")) ? END : "";
}

/** Throws where the filter is of a later contract: what its flags and its answer mean is not known here. */
async function refuseNewerFilter(words: readonly string[]): Promise<void> {
  const at = words.findIndex((word) => word.startsWith("--lua-contract"));
  const asked = at < 0 ? 0 : Number(words[at]!.split("=")[1] ?? words[at + 1]);
  if (!(asked > LUA_CONTRACT)) return;
  throw new GateError(
    "usage",
    `the Slurm filter is of contract ${asked}, and ${executablePath()} (${version()}) knows up to ${LUA_CONTRACT}`,
    "Install the neurarch-gate that printed the filter, or print it again with this one: neurarch-gate print-lua.",
  );
}

const JOB_FLAGS = jobFlags({ withModel: true });

export const command: Command = {
  name: "slurm",
  description:
    "What the Slurm filter runs at submit time: prints decision=, message= and comment= lines, exit 0 always",
  args: {
    script: {
      type: "string",
      valueHint: "FILE",
      description: "batch script; without request flags its own #SBATCH lines are read",
    },
    ...SLURM_OPTION_FLAGS,
    ...JOB_FLAGS,
    "lua-contract": {
      type: "string",
      valueHint: "N",
      description: "the contract number of the Lua filter that asks",
    },
    ...SITE_FLAGS,
  },
  bare: ["exclusive"],
  examples: [
    ["neurarch-gate slurm --script job.sbatch", "judge a script by its own #SBATCH lines"],
    ["neurarch-gate slurm --script job.sbatch --gres gpu:a10g:1 --mode reject", "as the filter calls it"],
  ],
  run,
};

/** Runs `slurm` so that whatever happens is a decision and exit 0: a submit never breaks because of us. */
export async function runOpen(words: readonly string[]): Promise<CommandOutput> {
  try {
    if (words.includes("--help") || words.includes("-h")) {
      const { commandHelp } = await import("../help.ts");
      return { out: await commandHelp(command), exit: 0 };
    }
    await refuseNewerFilter(words);
    return await run(parseStrict(words, command.args, command));
  } catch (error) {
    const known = error instanceof GateError ? error : null;
    const why = known?.message ?? `internal error: ${error instanceof Error ? error.message : String(error)}`;
    const hint = known?.hint ?? null;
    const closed = words.includes("--fail-closed");
    const message = noteLine(
      `not judged: ${why.replace(/\.$/, "")}; ${closed ? "refused, as this site fails closed" : "allowed unchecked (fail open)"}.${hint === null ? "" : ` ${hint}`}`,
    );
    return {
      out: `${filterLines({ decision: closed ? "refuse" : "unjudged", mode: "reject", messages: [message], comment: null })}${endOf(words)}`,
      exit: 0,
    };
  }
}

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { values } = input;
  const settings = await loadSettings(input);
  const place = { cwd: workingDirectory(), env: environment() };
  const keeper = new Keeper(place);
  const size = makeSizer(settings, { ...place, deadlineMs: SLURM_DEADLINE_MS, keeper });
  const recorder = makeRecorder(settings, "slurm", { ...place, version: version() });
  const policyOf = makePolicy(settings, { ...place, file: values.script ?? null });
  const jobs = submitJobs(
    {
      script: values.script ?? null,
      options: pick(values, SLURM_OPTION_FLAGS),
      flags: pick(values, JOB_FLAGS),
    },
    environment(),
    settings,
  );
  const blocks: string[] = [];
  for (const job of jobs) {
    const outcome = await judgeTask(job, settings, size, policyOf);
    const { decision, messages, result, request, telling } = outcome;
    // What could not be judged is refused by a site that fails closed, whatever its mode says of verdicts.
    const mode = outcome.closed ? "reject" : settings.mode;
    recorder?.note({ job, outcome, stopped: filterDecision(decision, mode) === "reject" });
    const comment =
      settings.annotate && result !== null && telling !== null ? commentOf(result, request, telling) : null;
    blocks.push(
      filterLines({
        decision,
        mode,
        messages: outcome.silent ? [] : messages,
        comment,
      }),
    );
  }
  return {
    out: `${worstFirst(blocks)}${values["lua-contract"] === undefined ? "" : END}`,
    exit: 0,
    after: () => {
      keeper.flush();
      recorder?.flush();
    },
  };
}

/** Of a heterogeneous script read as a whole, the gravest component decides; the filter asks for one at a time. */
function worstFirst(blocks: readonly string[]): string {
  const graveness = (block: string) =>
    ["decision=allow", "decision=warn", "decision=reject"].findIndex((head) => block.startsWith(head));
  const [first = "decision=allow\n", ...rest] = [...blocks].sort((a, b) => graveness(b) - graveness(a));
  return (
    first +
    rest
      .flatMap((block) => block.split("\n").filter((line) => line.startsWith("message=")))
      .map((line) => `${line}\n`)
      .join("")
  );
}
