import { recipeOf } from "../facts/recipe.ts";
import type { JobFacts } from "../facts/types.ts";
import { entryInfo, pathKind } from "../host/fs.ts";
import { withPrivateFile } from "../host/private-files.ts";
import { type ChildResult, runChild } from "../host/process.ts";
import { findProgram } from "../host/which.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { GB } from "../lib/units.ts";
import { USUAL_TOKENS } from "../sizing/default-length.ts";
import { lineSizing } from "../sizing/peak.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";
import { unaskable } from "./askable.ts";
import { ANSWER_LIFE_MS, readCache, rememberedMiss, writeCache } from "./cache.ts";
import { splitWords } from "./words.ts";

export interface CliOptions {
  /** Its command line; null = `neurarch` on `PATH`, else `npx --no neurarch`. */
  readonly command: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  /** False = neither take nor keep a remembered answer. */
  readonly remember?: boolean;
}

/** Longest quotation of what the CLI said. */
const QUOTE_LENGTH = 200;

/**
 * Sizes a job with the sizing CLI of the published neurarch packages: `CLI rightsize FILE --json` on the job at
 * batch 1 and 2, whose two peaks are a straight line in the batch. Every failure is a value; the program and all
 * it started end with the deadline.
 */
export async function sizeByExternalCli(
  facts: JobFacts,
  options: CliOptions,
): Promise<Result<Sizing, Unsized>> {
  const other = unaskable(facts);
  if (other !== null) {
    return fail({
      reason: "recipe-not-sized",
      message: `The sizing CLI cannot be told ${other}: it knows batch, length, LoRA rank and attention.`,
    });
  }
  const argv = commandWords(options);
  if (!argv.ok) return argv;
  const table = tableOf(facts);
  const key = memoryKey(argv.value, table, facts, options);
  const remembered = key === null ? null : recall(key, facts, options.env);
  if (remembered !== null) return remembered;
  const answer = await ask(argv.value, table, facts, options);
  if (key !== null) {
    if (answer.ok) writeCache(options.env, "sizing", key, answer.value.peaks);
    else writeCache(options.env, "miss", key, answer.error);
  }
  return answer.ok ? ok(sizingOf(answer.value.peaks, facts)) : answer;
}

/** The words of the command, its program found; one sentence when there is none. */
function commandWords(options: CliOptions): Result<string[], Unsized> {
  const words: Result<string[], string> =
    options.command === null
      ? ok(findProgram("neurarch", options.env) !== null ? ["neurarch"] : ["npx", "--no", "neurarch"])
      : splitWords(options.command);
  if (!words.ok) return failed(`The sizing CLI cannot be started: ${words.error}.`);
  const [first, ...rest] = words.value;
  const program = first === undefined ? null : findProgram(first, options.env);
  if (program === null) {
    const what = options.command === null ? "neither neurarch nor npx is" : `${shown(first ?? '""')} is not`;
    return failed(`The sizing CLI cannot be started: ${what} a program on PATH.`);
  }
  return ok([program, ...rest]);
}

function failed(message: string): { readonly ok: false; readonly error: Unsized } {
  return fail({ reason: "sizing-failed", message });
}

/** A cell of the table: quoted where a comma, a quote or a line end would break it. */
function cell(value: string | number | null): string {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The two rows that the published packages send; an empty cell is a fact that the job does not state. */
function tableOf(facts: JobFacts): string {
  const attention = facts.attention.from.kind === "default" ? null : facts.attention.value;
  const row = (batch: number) =>
    [`b${batch}`, facts.model.value, "H200", 1, batch, facts.seqLen.value, facts.loraRank.value, attention]
      .map(cell)
      .join(",");
  const header = "job_id,model,gpu,hours,batch,seq_len,lora_rank,attention";
  return `${[header, row(1), row(2)].join("\n")}\n`;
}

/** Peaks in bytes at batch 1 and 2, with what else the CLI tells of the model. */
interface Peaks {
  readonly one: number;
  readonly two: number;
  readonly seqLen: number | null;
  readonly params: number | null;
}

async function ask(
  argv: readonly string[],
  table: string,
  facts: JobFacts,
  options: CliOptions,
): Promise<Result<{ readonly peaks: Peaks }, Unsized>> {
  let child: ChildResult;
  try {
    child = await withPrivateFile("jobs.csv", table, (path) =>
      runChild([...argv, "rightsize", path, "--json"], {
        timeoutMs: options.timeoutMs,
        // The Slurm filter starts us without a compiler (BUN_JSC_useJIT); a CLI on the same runtime has more to do.
        env: { ...options.env, BUN_JSC_useJIT: undefined },
      }),
    );
  } catch (error) {
    return failed(`The sizing CLI cannot be started: no temporary file (${shown(String(error), 100)}).`);
  }
  const model = shown(facts.model.value, 200);
  if (child.startError !== null)
    return failed(`The sizing CLI cannot be started: ${shown(child.startError, 120)}.`);
  if (child.timedOut) {
    return failed(
      `The sizing CLI gave no answer on ${model} within ${(options.timeoutMs / 1000).toFixed(1)} s.`,
    );
  }
  if (child.exitCode !== 0) {
    const said = firstLine(child.stderr) ?? firstLine(child.stdout) ?? `exit code ${child.exitCode}`;
    return failed(`The sizing CLI could not size ${model}: ${said}`);
  }
  return peaksOf(child.stdout, model);
}

function peaksOf(stdout: string, model: string): Result<{ readonly peaks: Peaks }, Unsized> {
  let jobs: unknown;
  try {
    jobs = (JSON.parse(stdout) as { jobs?: unknown } | null)?.jobs;
  } catch {
    return failed(`The sizing CLI's answer on ${model} is not JSON: ${firstLine(stdout) ?? "it is empty"}`);
  }
  const rows = Array.isArray(jobs) ? (jobs as (Record<string, unknown> | null)[]) : [];
  const row = (id: string) => rows.find((job) => job?.jobId === id) ?? null;
  const [first, second] = [row("b1"), row("b2")];
  const bytes = (job: Record<string, unknown> | null) => {
    const peak = job?.peakGb;
    // The nearest whole byte: an amount of up to nine decimals is exact, and sums of whole bytes stay exact.
    return typeof peak === "number" && Number.isFinite(peak) && peak >= 0 ? Math.round(peak * GB) : null;
  };
  const [one, two] = [bytes(first), bytes(second)];
  if (one === null || two === null) {
    const reason = [first, second].map((job) => job?.reason).find((text) => typeof text === "string");
    const said = typeof reason === "string" ? quoted(reason) : "it names no peak";
    return failed(`The sizing CLI could not size ${model}: ${said}`);
  }
  if (two < one)
    return failed(`The sizing CLI's peaks on ${model} fall with the batch, so no line fits them.`);
  const whole = (value: unknown) =>
    typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : null;
  return ok({ peaks: { one, two, seqLen: whole(first?.seqLen), params: whole(first?.params) } });
}

/** The straight line through both peaks; its start is also taken for the state, as no more is known. */
function sizingOf(peaks: Peaks, facts: JobFacts): Sizing {
  const perSampleBytes = peaks.two - peaks.one;
  const sizing = lineSizing({
    source: "cli",
    model: facts.model.value,
    seqLen: peaks.seqLen ?? facts.seqLen.value ?? USUAL_TOKENS,
    params: peaks.params,
    recipe: recipeOf(facts),
    fixedBytes: peaks.one - perSampleBytes,
    perSampleBytes,
    notes: ["a single line: where the optimizer step rules at batch 1 and 2 it is low at large batches"],
  });
  return { ...sizing, trainableParams: facts.loraRank.value === null ? peaks.params : null };
}

/** First line that says something, cut and cleaned. */
function firstLine(text: string): string | null {
  const line = text
    .slice(0, 20_000)
    .split(/\r?\n/)
    .find((part) => quoted(part) !== "");
  return line === undefined ? null : quoted(line);
}

/** Terminal colours and every control character removed, cut to one short sentence. */
function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is removed
  const plain = text.slice(0, 4000).replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
  const line = plain.replace(/[\p{C}\s]+/gu, " ").trim();
  return Array.from(line).slice(0, QUOTE_LENGTH).join("");
}

/**
 * What an answer is remembered under: the program as it is on disk now, so that a new version is asked anew, and
 * the table. Models on disk are not remembered: their files change under the same name.
 */
function memoryKey(
  argv: readonly string[],
  table: string,
  facts: JobFacts,
  options: CliOptions,
): string | null {
  if (options.remember === false || pathKind(facts.model.value) !== "none") return null;
  if (/^[.~/]|\.json$/.test(facts.model.value)) return null;
  const files = argv.map((word) => [word, entryInfo(word)?.mtimeMs ?? null]);
  return JSON.stringify([files, table]);
}

function recall(key: string, facts: JobFacts, env: CliOptions["env"]): Result<Sizing, Unsized> | null {
  const peaks = readCache(env, "sizing", key, ANSWER_LIFE_MS)?.value as Partial<Peaks> | undefined;
  if (typeof peaks?.one === "number" && typeof peaks.two === "number") {
    return ok(
      sizingOf(
        { one: peaks.one, two: peaks.two, seqLen: peaks.seqLen ?? null, params: peaks.params ?? null },
        facts,
      ),
    );
  }
  const miss = rememberedMiss(env, key);
  return miss === null ? null : fail(miss);
}
