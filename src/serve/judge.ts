import { FACT_SPECS } from "../facts/keys.ts";
import { fileDocument, worstDecision } from "../gate/documents.ts";
import { judgeAll } from "../gate/judge-file.ts";
import { plainJob } from "../gate/plain-job.ts";
import type { Settings } from "../gate/settings.ts";
import { skypilotJob } from "../gate/skypilot-job.ts";
import { textJobs } from "../gate/slurm-file.ts";
import type { TaskJob } from "../gate/task.ts";
import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { errorDocument } from "../render/json.ts";
import { readTasks } from "../skypilot/task.ts";
import type { Judge, Judged } from "./policy.ts";
import { jsonReply } from "./reply.ts";

/**
 * `POST /v1/judge`: the document of `judge --json` for a job given as JSON. One of `skypilot` (a task file's text),
 * `slurm` (a batch script's text) or `request` (`H100:8`, with `nodes`); the facts stand beside it under their flag
 * names (`model`, `batch`, `seq-len`, ...) and lie over those of a text. 200 with any verdict, 400 with an error
 * document for what cannot be read.
 */
export async function answerJudge(
  body: string,
  { settings, size, policyOf, recorder }: Judge,
): Promise<Judged> {
  try {
    const jobs = jobsOf(parsed(body), settings);
    const outcomes = await judgeAll(jobs, settings, size, policyOf);
    outcomes.forEach((outcome, index) => {
      recorder?.note({ job: jobs[index]!, outcome, stopped: false, user: null });
    });
    return {
      reply: jsonReply(200, fileDocument(outcomes)),
      decision: worstDecision(outcomes),
      messages: outcomes.flatMap((outcome) => outcome.messages),
      request: null,
    };
  } catch (error) {
    const known = error instanceof GateError && error.code !== "internal" ? error : null;
    const message =
      known?.message ?? `internal error: ${error instanceof Error ? error.message : String(error)}`;
    return {
      reply: jsonReply(
        known === null ? 500 : 400,
        errorDocument(known?.code ?? "internal", message, known?.hint ?? null),
      ),
      decision: "error",
      messages: [message],
      request: null,
    };
  }
}

/** Longest body, and longest task file in one: what is read for longer would hold up the others. */
const MAX_BODY_CHARS = 1_000_000;
const MAX_TASK_CHARS = 256 << 10;

const FORMS = ["skypilot", "slurm", "request"] as const;
const EXAMPLE = 'Send {"model": "Qwen/Qwen3-8B", "batch": 8, "request": "H100:8"}, say.';

function parsed(body: string): Record<string, string> {
  if (body.length > MAX_BODY_CHARS) throw tooLong("body", body, MAX_BODY_CHARS);
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw new GateError("input-invalid", "the body is not JSON", EXAMPLE);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new GateError("input-invalid", "the body is no JSON object", EXAMPLE);
  const flags = FACT_SPECS.map((spec) => spec.flag);
  const known = [...FORMS, "nodes", ...flags];
  const fields: Record<string, string> = {};
  for (const [name, field] of Object.entries(value)) {
    if (!known.includes(name)) {
      const near = nearest(name, known);
      const hint = near === null ? `The keys are ${known.join(", ")}.` : `Did you mean \`${near}\`?`;
      throw new GateError("input-invalid", `unknown key \`${shown(name)}\``, hint);
    }
    if (field === null) continue;
    if (typeof field !== "string" && typeof field !== "number" && typeof field !== "boolean")
      throw new GateError("input-invalid", `\`${name}\` is not a text or a number`, EXAMPLE);
    fields[name] = field === true ? "on" : field === false ? "off" : String(field);
  }
  return fields;
}

function jobsOf(fields: Record<string, string>, settings: Settings): TaskJob[] {
  const [form, second] = FORMS.filter((name) => fields[name] !== undefined);
  if (form === undefined) throw new GateError("input-invalid", "no job is given", EXAMPLE);
  if (second !== undefined)
    throw new GateError(
      "input-invalid",
      `\`${form}\` and \`${second}\` exclude each other`,
      "Send one of them.",
    );
  if (form === "request") return [plainJob(fields, settings)];
  const { [form]: text = "", nodes, ...flags } = fields;
  if (nodes !== undefined)
    throw new GateError("input-invalid", "`nodes` goes with `request` only", "Leave it out.");
  // Nothing of this process's own environment is the job's.
  if (form === "slurm") return textJobs(text, { environment: {}, readEnv: false, flags }, settings);
  if (text.length > MAX_TASK_CHARS) throw tooLong("task file", text, MAX_TASK_CHARS);
  const file = readTasks(text, { environment: {} });
  if (!file.ok) throw new GateError(file.error.code, file.error.message);
  return file.value.tasks.map((task, index) =>
    skypilotJob(task, null, flags, index === 0 ? file.value.notes : [], settings),
  );
}

function tooLong(what: string, { length }: string, most: number): GateError {
  return new GateError(
    "input-invalid",
    `the ${what} has ${length} characters; at most ${most} are read`,
    EXAMPLE,
  );
}
