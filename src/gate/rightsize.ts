import { readFacts } from "../facts/read.ts";
import { recipeOf } from "../facts/recipe.ts";
import type { FactsReading, JobFacts } from "../facts/types.ts";
import type { Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import type { LocatedStructure } from "../model/types.ts";
import type { JobReport } from "../render/rightsize.ts";
import { plainRequest } from "../request/plain.ts";
import { type GpuRequest, isJudged } from "../request/types.ts";
import type { Unsized } from "../sizing/types.ts";
import { locate } from "../sources/locate.ts";
import { judgeRequest } from "../verdict/decide.ts";
import { peakGb } from "../verdict/figures.ts";
import { asCardCount, smallestCard, smallestRequest } from "../verdict/suggest.ts";
import type { CardCount, Judged, JudgeSettings } from "../verdict/types.ts";
import { Memo } from "./memo.ts";
import { type Columns, recordFacts } from "./rightsize-columns.ts";
import type { CsvRecord } from "./rightsize-csv.ts";
import type { Settings } from "./settings.ts";
import { type SizedJob, type SizerHost, sourceTimeoutMs } from "./size.ts";
import { sizeLocated } from "./size-anew.ts";

/** What a report needs to know of a site. */
export type RightsizeSettings = Pick<
  Settings,
  "table" | "headroom" | "maxCostUsd" | "factDefaults" | "timeoutS"
>;

/**
 * Sizes and judges the rows of one report with the built-in sizer. A row that cannot be read, sized or judged is a
 * row with a reason. Rows that say the same are worked out once; so is each model, and each of its recipes.
 */
export class Rightsizer {
  readonly #rows = new Memo<JobReport>(2_000);
  readonly #requests = new Memo<GpuRequest>(2_000);
  readonly #located = new Memo<Result<LocatedStructure, Unsized>>(1_000);
  readonly #sized = new Memo<Result<SizedJob, Unsized>>(2_000);

  constructor(
    readonly columns: Columns,
    readonly settings: RightsizeSettings,
    readonly host: SizerHost,
  ) {}

  /** The report on a record; `row` counts from 1 and names a job that has no id. */
  async report(record: CsvRecord, row: number): Promise<JobReport> {
    const { columns } = this;
    const unnamed = `row ${row}`;
    if ("problem" in record) {
      return { ...NOTHING, jobId: unnamed, reason: `Line ${record.line} cannot be read: ${record.problem}.` };
    }
    const { fields } = record;
    const named = columns.jobId === -1 ? "" : (fields[columns.jobId] ?? "").trim();
    const jobId = named === "" ? unnamed : named;
    if (fields.length !== columns.count) {
      const reason = `Line ${record.line} has ${fields.length} fields where the header has ${columns.count}; leave unset ones empty, and quote a comma.`;
      return { ...NOTHING, jobId, reason };
    }
    const key = fields.map((field, at) => (at === columns.jobId ? "" : field)).join("\u0001");
    const known = this.#rows.get(key) ?? this.#rows.set(key, await this.#work(fields));
    return { ...known, jobId };
  }

  async #work(fields: readonly string[]): Promise<JobReport> {
    const { columns, settings } = this;
    const gpu = columns.gpu === -1 ? "" : fields[columns.gpu]!.trim();
    const nodes = columns.nodes === -1 ? "" : fields[columns.nodes]!.trim();
    const request = gpu === "" ? null : this.#request(gpu, nodes);
    const asked = request?.candidates[0] ?? null;
    const reading = readFacts(recordFacts(fields, columns), {
      unknownKeys: "ignore",
      siteDefaults: settings.factDefaults,
    });
    const start = { ...NOTHING, request: asked?.label ?? null };
    if (reading.kind !== "facts") return { ...start, reason: unread(reading) };
    const { facts } = reading;
    const model = facts.model.value;
    const sized = await this.#size(facts);
    if (!sized.ok) return { ...start, model, reason: sized.error.message };
    const { sizing } = sized.value;
    const size = { ...start, model, seqLen: sizing.seqLen, params: sizing.params, assumed: sizing.assumed };
    if (request === null || asked === null || !isJudged(asked)) {
      const cards = (asked?.count ?? 1) * (asked?.nodes ?? 1);
      const peak = peakGb(sizing, facts.batch.value * (Number.isSafeInteger(cards) ? cards : 1));
      const needGb = peak * settings.headroom;
      const reason = asked !== null && !isJudged(asked) ? asked.message : "No card is asked for.";
      return { ...size, peakGb: peak, needGb, smallest: this.#smallest(needGb, 1), reason };
    }
    const judging: JudgeSettings = {
      table: settings.table,
      headroom: settings.headroom,
      maxCostUsd: settings.maxCostUsd,
      mutate: false,
      tasks: 1,
      useSpot: false,
      fallbackHours: null,
      rewriteCards: null,
    };
    const [verdict] = judgeRequest({ facts, ...sized.value }, request, judging).verdicts;
    if (verdict?.kind !== "judged") {
      const peak = peakGb(sizing, facts.batch.value * asked.count * asked.nodes);
      return { ...size, peakGb: peak, needGb: peak * settings.headroom, reason: verdict?.message ?? null };
    }
    return { ...size, ...this.#judged(verdict, facts) };
  }

  #judged(verdict: Judged, facts: JobFacts) {
    const { candidate, fit, decision, rule, needGb, totalCards } = verdict;
    const smallest =
      verdict.rightSized ??
      verdict.smallestCard ??
      verdict.smallestRequest ??
      (fit === "under" ? null : this.#smallest(needGb, totalCards)) ??
      (fit === "under" ? null : { accelerator: candidate.accelerator, count: candidate.count });
    const hourly = candidate.card.usdPerHour;
    const less = verdict.rightSizedCard?.usdPerHour ?? null;
    const saved =
      fit === "over" && smallest !== null && hourly !== null && less !== null
        ? Math.max(0, hourly * totalCards - less * smallest.count)
        : null;
    const hours = facts.hours.value;
    return {
      requestGb: verdict.requestGb,
      peakGb: verdict.peakGb,
      needGb,
      decision: decision === "rewrite" ? ("warn" as const) : decision,
      fit,
      rule,
      smallest,
      usdSavedPerHour: saved,
      usdSaved: saved === null || hours === null ? null : saved * hours,
    };
  }

  /** The smallest request of the cards that are suggested, where the judged one gives no list to compare with. */
  #smallest(needGb: number, asked: number): CardCount | null {
    const { table } = this.settings;
    const cards = table.cards.filter((card) => card.candidate && card.vendor === "cuda");
    return asCardCount(smallestCard(cards, needGb) ?? smallestRequest(cards, () => needGb, asked), table);
  }

  #request(gpu: string, nodes: string): GpuRequest {
    const key = `${gpu}\u0001${nodes}`;
    return (
      this.#requests.get(key) ??
      this.#requests.set(key, plainRequest(gpu, nodes === "" ? null : nodes, this.settings.table))
    );
  }

  #locate(model: string): Promise<Result<LocatedStructure, Unsized>> {
    const { cwd, env, deadlineMs } = this.host;
    return locate(model, { cwd, env, hubTimeoutMs: sourceTimeoutMs(this.settings, deadlineMs) });
  }

  async #size(facts: JobFacts): Promise<Result<SizedJob, Unsized>> {
    const model = facts.model.value;
    const key = JSON.stringify([model, facts.seqLen.value, recipeOf(facts)]);
    const known = this.#sized.get(key);
    if (known !== undefined) return known;
    const located = this.#located.get(model) ?? this.#located.set(model, await this.#locate(model));
    const sized = located.ok ? sizeLocated(located.value, facts) : located;
    return this.#sized.set(key, sized.ok ? { ok: true, value: onlySpread(sized.value) } : sized);
  }
}

/**
 * A report tells no alternatives, so only another way to spread a job over its cards is sized, each once for all
 * rows.
 */
function onlySpread({ sizing, resize, perCard }: SizedJob): SizedJob {
  const known = new Map<string, ReturnType<SizedJob["resize"]>>();
  const shares = new Map<number, ReturnType<SizedJob["resize"]>>();
  return {
    sizing,
    ...(perCard && {
      perCard: (change, cards) => {
        if (Object.keys(change).length > 0) return null;
        const found = shares.get(cards);
        if (found !== undefined) return found;
        const other = perCard({}, cards);
        shares.set(cards, other);
        return other;
      },
    }),
    resize: (change) => {
      const { parallel, ...others } = change;
      if (parallel === undefined || Object.keys(others).length > 0) return null;
      const found = known.get(parallel);
      if (found !== undefined) return found;
      const other = resize({ parallel });
      known.set(parallel, other);
      return other;
    },
  };
}

function unread(reading: Exclude<FactsReading, { kind: "facts" }>): string {
  if (reading.kind === "none") return "The row names no model.";
  return reading.problems.map((problem) => shown(problem.message, 300)).join(" ");
}

const NOTHING: JobReport = {
  jobId: "",
  model: null,
  request: null,
  requestGb: null,
  peakGb: null,
  needGb: null,
  seqLen: null,
  params: null,
  decision: "unjudged",
  fit: null,
  rule: null,
  smallest: null,
  usdSavedPerHour: null,
  usdSaved: null,
  reason: null,
  assumed: [],
};
