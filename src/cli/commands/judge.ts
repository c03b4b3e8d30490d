import { fileDocument, worstDecision } from "../../gate/documents.ts";
import { judgeAll } from "../../gate/judge-file.ts";
import { Keeper } from "../../gate/keeper.ts";
import { loadSettings } from "../../gate/load.ts";
import { makePolicy } from "../../gate/policy.ts";
import { makeRecorder } from "../../gate/recorder.ts";
import type { Rewritten } from "../../gate/rewriting.ts";
import type { Settings } from "../../gate/settings.ts";
import { makeSizer, SKYPILOT_DEADLINE_MS } from "../../gate/size.ts";
import type { TaskJob, TaskOutcome } from "../../gate/task.ts";
import { environment, showsColour, terminalColumns, workingDirectory } from "../../host/env.ts";
import { GateError } from "../../lib/errors.ts";
import { jsonText } from "../../render/json-line.ts";
import { REPORTS } from "../../render/reports.ts";
import { reportAsked } from "../asked-report.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { exitOfDecision } from "../exit.ts";
import { jobFlags, OUTPUT_FLAGS, pick, QUIET_FLAG, SITE_FLAGS } from "../flags.ts";
import { version } from "../version.ts";

const JOB_FLAGS = jobFlags({ withModel: true });

export const command: Command = {
  name: "judge",
  description: "Judge a SkyPilot task file, a Slurm batch script or a request on plain flags",
  args: {
    skypilot: { type: "string", valueHint: "FILE", description: "SkyPilot task file; - reads stdin" },
    slurm: {
      type: "string",
      valueHint: "FILE",
      description: "Slurm batch script, read offline; - reads stdin",
    },
    request: { type: "string", valueHint: "CARD:N", description: "cards per node, with --model" },
    nodes: { type: "string", valueHint: "N", description: "nodes of --request (1)" },
    ...JOB_FLAGS,
    env: { type: "string", valueHint: "K=V", description: "as in sky launch; repeatable" },
    "env-file": { type: "string", valueHint: "FILE", description: "as in sky launch; repeatable" },
    gpus: {
      type: "string",
      valueHint: "CARD:N",
      description: "as in sky launch: in place of the file's accelerators",
    },
    "num-nodes": { type: "string", valueHint: "N", description: "as in sky launch" },
    "read-env": { type: "boolean", description: "with --slurm: read SBATCH_* too, as sbatch would" },
    rewrite: { type: "boolean", description: "with --skypilot: print the task with over-requests rewritten" },
    "admin-policy": {
      type: "boolean",
      description: "read a SkyPilot user request on stdin and answer as the Python policy reads it",
    },
    "policy-start": {
      type: "string",
      valueHint: "DIR",
      description:
        "with --admin-policy: the user's folder, where a client-side policy looks for .neurarch.yml",
    },
    explain: { type: "boolean", description: "add every term of the size and where each value was read" },
    "fail-open": { type: "boolean", description: "end with 0 when the request could not be judged" },
    "fail-on": { type: "enum", options: ["warn"], description: "end with 10 on a warning" },
    ...SITE_FLAGS,
    ...OUTPUT_FLAGS,
    output: {
      type: "enum",
      options: ["human", "json", ...Object.keys(REPORTS)],
      description:
        "the same by name; sarif and github point at lines, junit is for a CI's test report (human)",
    },
    ...QUIET_FLAG,
  },
  repeatable: ["env", "env-file"],
  strayHint: "Name a task file with --skypilot FILE, a batch script with --slurm FILE.",
  examples: [
    ["neurarch-gate judge --skypilot task.yaml", "judge a task as SkyPilot would read it"],
    ["neurarch-gate judge --slurm job.sbatch", "judge a batch script by its own #SBATCH and #NEURARCH lines"],
    [
      "neurarch-gate judge --model Qwen/Qwen3-8B --request H100:8 --batch 4",
      "judge a request without a file",
    ],
    [
      "neurarch-gate judge --skypilot task.yaml --rewrite > right-sized.yaml",
      "right-size a task, comments kept",
    ],
    ["neurarch-gate judge --slurm job.sbatch --output github", "annotate the line that asks for the cards"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { values, switches } = input;
  const modes = ["skypilot", "slurm", "request"].filter((name) => values[name] !== undefined);
  if (switches["admin-policy"] === true) {
    if (modes.length > 0)
      throw new GateError("usage", `--admin-policy reads stdin and takes no --${modes[0]}`);
    return (await import("../admin-policy.ts")).runAdminPolicy(input);
  }
  if (modes.length !== 1) {
    throw new GateError(
      "usage",
      modes.length === 0 ? "nothing to judge is named" : `--${modes[0]} and --${modes[1]} exclude each other`,
      "Give one of --skypilot FILE, --slurm FILE, or --model ID with --request CARD:N.",
    );
  }
  refuseStray(input, modes[0]!);
  const asked = await loadSettings(input);
  const settings: Settings = switches.rewrite === true ? { ...asked, mutate: true } : asked;
  const place = { cwd: workingDirectory(), env: environment() };
  const keeper = new Keeper(place);
  // A size that explains itself is computed: what is kept has no terms.
  const kept = switches.explain === true ? {} : { keeper };
  const size = makeSizer(settings, { ...place, deadlineMs: SKYPILOT_DEADLINE_MS, ...kept });
  const recorder = makeRecorder(settings, "judge", { ...place, version: version() });
  const after = () => {
    keeper.flush();
    recorder?.flush();
  };
  const policyOf = makePolicy(settings, { ...place, file: values.skypilot ?? values.slurm ?? null });
  const report = await reportAsked(input, { ...place, mode: modes[0]! });
  const { jobs, rewritten } = await (report === null
    ? read(input, modes[0]!, settings)
    : report.reading(() => read(input, modes[0]!, settings)));
  const outcomes = await judgeAll(jobs, settings, size, policyOf);
  // Nothing is stopped here: whoever asked may submit all the same.
  outcomes.forEach((outcome, index) => {
    recorder?.note({ job: jobs[index]!, outcome, stopped: false });
  });
  const exit = exitOfDecision(worstDecision(outcomes), {
    failOpen: switches["fail-open"] === true,
    failOnWarn: values["fail-on"] === "warn",
  });
  if (switches.rewrite === true) return { ...(await rewriting(input, rewritten, outcomes)), exit, after };
  if (report !== null) return { out: await report.of(jobs, outcomes), exit, after };
  if (switches.json === true || values.output === "json") {
    return { out: `${jsonText(fileDocument(outcomes, switches.explain === true))}\n`, exit, after };
  }
  return { out: await forPeople(outcomes, switches.explain === true), exit, after };
}

/** Flags that say something in one way of judging only. */
const BELONGS: Readonly<Record<string, string>> = {
  env: "skypilot",
  "env-file": "skypilot",
  gpus: "skypilot",
  "num-nodes": "skypilot",
  rewrite: "skypilot",
  nodes: "request",
  "read-env": "slurm",
  "policy-start": "admin-policy",
  "partition-map": "slurm",
  "default-gpu-type": "slurm",
};

/** Refuses what would be ignored: a flag that this way of judging does not read, or that a rewrite cannot carry over. */
function refuseStray({ values, switches }: ParsedWords, mode: string): void {
  for (const [flag, belongs] of Object.entries(BELONGS)) {
    if (belongs !== mode && (values[flag] !== undefined || switches[flag] !== undefined)) {
      throw new GateError(
        "usage",
        `--${flag} goes with --${belongs} only`,
        `Leave it out, or judge with --${belongs}.`,
      );
    }
  }
  if (switches.rewrite !== true) return;
  for (const flag of ["gpus", "num-nodes", ...Object.keys(JOB_FLAGS)]) {
    if (values[flag] === undefined) continue;
    throw new GateError(
      "usage",
      `--${flag} changes what is judged and not the file, so a rewrite would not hold`,
      "Put it into the file.",
    );
  }
}

interface Read {
  readonly jobs: readonly TaskJob[];
  /** The file's text with its tasks rewritten; null where there is no file to rewrite. */
  readonly rewritten: ((outcomes: readonly TaskOutcome[]) => Rewritten) | null;
}

async function read(input: ParsedWords, mode: string, settings: Settings): Promise<Read> {
  const { values, lists, switches } = input;
  const flags = pick(values, JOB_FLAGS);
  if (mode === "request") {
    const { plainJob } = await import("../../gate/plain-job.ts");
    return { jobs: [plainJob(values, settings)], rewritten: null };
  }
  if (mode === "slurm") {
    const { scriptJobs } = await import("../../gate/slurm-file.ts");
    const reading = { environment: environment(), readEnv: switches["read-env"] === true, flags };
    return { jobs: scriptJobs(values.slurm!, reading, settings), rewritten: null };
  }
  const { readTaskFile } = await import("../../gate/skypilot-file.ts");
  const { rewrittenText } = await import("../../gate/rewriting.ts");
  const { taskFlags } = await import("../../gate/skypilot-flags.ts");
  const { skypilotJob } = await import("../../gate/skypilot-job.ts");
  const { markInFile } = await import("../../skypilot/rewrite-mark.ts");
  const { text, file } = readTaskFile(values.skypilot!, taskFlags(values, lists), environment());
  return {
    jobs: file.tasks.map((task, index) =>
      skypilotJob(task, null, flags, index === 0 ? file.notes : [], settings, markInFile(text, index)),
    ),
    rewritten: (outcomes) => rewrittenText(text, outcomes),
  };
}

async function rewriting(
  input: ParsedWords,
  rewritten: Read["rewritten"],
  outcomes: readonly TaskOutcome[],
): Promise<Omit<CommandOutput, "exit">> {
  if (rewritten === null)
    throw new GateError("usage", "--rewrite works on a task file only", "Give it with --skypilot FILE.");
  if (input.switches.json === true || input.values.output === "json") {
    throw new GateError("usage", "--rewrite prints the task itself, so it goes without --json");
  }
  const { noteLine } = await import("../../render/messages.ts");
  const { text, notes } = rewritten(outcomes);
  const messages = [...outcomes.flatMap((outcome) => outcome.messages), ...notes.map(noteLine)];
  return { out: text, err: messages.map((message) => `${message}\n`).join("") };
}

async function forPeople(outcomes: readonly TaskOutcome[], withTerms: boolean): Promise<string> {
  const { humanVerdict } = await import("../../render/human.ts");
  const width = terminalColumns() ?? undefined;
  const colour = showsColour();
  const parts = outcomes.map((outcome) => humanVerdict(outcome, width, colour));
  if (withTerms) {
    const { explainOutcome } = await import("../explain.ts");
    for (const outcome of outcomes) parts.push(...explainOutcome(outcome, width));
  }
  return parts.join("\n");
}
