import type { Decision } from "../verdict/types.ts";

/** Upper bounds of the answer times that are counted, in seconds. */
const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 20];

/** What a server counts, as Prometheus reads it (exposition format 0.0.4). */
export class Metrics {
  readonly #requests = new Map<string, number>();
  readonly #judged = new Map<string, number>();
  readonly #buckets = BUCKETS_S.map(() => 0);
  #seconds = 0;
  #answers = 0;

  constructor(private readonly about: { readonly version: string; readonly startMs: number }) {}

  /** One answer: the route's name (never a path a client made up), its status and the time it took. */
  answered(route: string, status: number, seconds: number): void {
    add(this.#requests, `route="${route}",status="${status}"`);
    if (route !== "policy" && route !== "judge") return;
    this.#answers++;
    this.#seconds += seconds;
    BUCKETS_S.forEach((bound, at) => {
      if (seconds <= bound) this.#buckets[at]!++;
    });
  }

  /** One verdict; `error` is an error of ours. */
  judged(adapter: "skypilot" | "api", decision: Decision | "error"): void {
    add(this.#judged, `adapter="${adapter}",decision="${decision}"`);
  }

  text(residentBytes: number): string {
    const { version, startMs } = this.about;
    return [
      ...family("build_info", "gauge", "The version that runs.", [`{version="${version}"} 1`]),
      ...family("requests_total", "counter", "Answers by route and status.", rows(this.#requests)),
      ...family(
        "judgements_total",
        "counter",
        "Verdicts by adapter and decision; error is one of ours.",
        rows(this.#judged),
      ),
      ...family("answer_seconds", "histogram", "Seconds from a request's head to its answer, of verdicts.", [
        ...BUCKETS_S.map((bound, at) => `_bucket{le="${bound}"} ${this.#buckets[at]}`),
        `_bucket{le="+Inf"} ${this.#answers}`,
        `_sum ${this.#seconds}`,
        `_count ${this.#answers}`,
      ]),
      "# HELP process_start_time_seconds Start of the process, seconds since 1970.",
      "# TYPE process_start_time_seconds gauge",
      `process_start_time_seconds ${startMs / 1000}`,
      "# HELP process_resident_memory_bytes Memory that the process holds.",
      "# TYPE process_resident_memory_bytes gauge",
      `process_resident_memory_bytes ${residentBytes}`,
      "",
    ].join("\n");
  }
}

function add(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

function rows(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([labels, count]) => `{${labels}} ${count}`);
}

function family(name: string, kind: string, help: string, samples: readonly string[]): string[] {
  const full = `neurarch_gate_${name}`;
  return [`# HELP ${full} ${help}`, `# TYPE ${full} ${kind}`, ...samples.map((sample) => `${full}${sample}`)];
}
