import { recipeOf } from "../facts/recipe.ts";
import type { JobFacts } from "../facts/types.ts";
import { nowMs } from "../host/clock.ts";
import { httpGet } from "../host/http.ts";
import { digest } from "../host/private-files.ts";
import { releaseTurn, sleep, takeTurn } from "../host/turn.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { USUAL_TOKENS } from "../sizing/default-length.ts";
import { lineSizing } from "../sizing/peak.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";
import { unaskable } from "./askable.ts";
import { ANSWER_LIFE_MS, cacheFolder, readCache, rememberedMiss, writeCache } from "./cache.ts";
import { graphFileOf, rawGraphAt } from "./graph-file.ts";
import { type Plan, planIn, refusedBy, unreached } from "./hosted-answer.ts";

/** Where the published packages send graphs; asked only where a site says `sizing = "hosted"`. */
export const PUBLIC_PLAN = "https://www.neurarch.com/api/v1/plan";

export interface HostedOptions {
  /** Address of the plan; null = the public one. */
  readonly url: string | null;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
}

/** Largest graph that is sent, and largest answer that is read. */
const MAX_SENT_BYTES = 32_000_000;
const MAX_ANSWER_BYTES = 4_000_000;
const MAX_REDIRECTS = 2;
const LOOK_MS = 25;
const OVERDUE_MS = 1000;

/**
 * Sizes a job by the hosted plan: its graph is sent to one address, with the key of `NEURARCH_API_KEY` where there is
 * one, and neither goes on to another host that this one redirects to. Graphs only, and never with LoRA. Answers are
 * kept for an hour and failures for a minute, for all of a user's processes; of several that ask the same at once one
 * asks. Every failure is a value.
 */
export async function sizeByHostedPlan(
  facts: JobFacts,
  options: HostedOptions,
): Promise<Result<Sizing, Unsized>> {
  const { env } = options;
  const asked = askOf(facts, options);
  if (!asked.ok) return asked;
  const untilMs = nowMs() + options.timeoutMs;
  const folder = cacheFolder(env);
  const turn = `planning-${digest(asked.value.key).slice(0, 40)}`;
  for (;;) {
    const known = recall(asked.value.key, env);
    if (known !== null) return known.ok ? ok(sizingOf(known.value, facts)) : known;
    const leftMs = untilMs - nowMs();
    if (leftMs <= 0) return failed(unreached("timeout", asked.value.host, options.timeoutMs));
    const state = folder === null ? "nowhere" : takeTurn(folder, turn, leftMs + OVERDUE_MS);
    if (state === "taken") {
      await sleep(Math.min(LOOK_MS, leftMs));
      continue;
    }
    try {
      const again = recall(asked.value.key, env);
      const plan = again ?? (await ask(asked.value, leftMs));
      if (again === null) {
        if (plan.ok) writeCache(env, "sizing", asked.value.key, plan.value);
        else writeCache(env, "miss", asked.value.key, plan.error);
      }
      return plan.ok ? ok(sizingOf(plan.value, facts)) : plan;
    } finally {
      if (state === "ours" && folder !== null) releaseTurn(folder, turn);
    }
  }
}

interface Ask {
  readonly url: string;
  /** For messages: never with a user or password. */
  readonly host: string;
  readonly body: string;
  readonly authorization: string | null;
  /** What the answer is kept under: tells graphs and keys apart and nothing of them. */
  readonly key: string;
}

function askOf(facts: JobFacts, options: HostedOptions): Result<Ask, Unsized> {
  if (facts.loraRank.value !== null)
    return fail({ reason: "recipe-not-sized", message: "The hosted plan does not size LoRA." });
  const other = unaskable(facts);
  if (other !== null)
    return fail({
      reason: "recipe-not-sized",
      message: `The hosted plan cannot be told ${other}: it knows batch, length and attention.`,
    });
  const given = options.url ?? PUBLIC_PLAN;
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    return failed(
      "plan_url is not an address without user and password; write https:// and the plan's host and path.",
    );
  const model = facts.model.value;
  const path = graphFileOf(model, options);
  if (path === null)
    return failed(
      `The hosted plan takes graphs, and ${shown(model, 200)} is no .neurarch.json on this machine; trace it with neurarch-trace.`,
    );
  const graph = rawGraphAt(path);
  if (!graph.ok) return graph;
  const seqLen = facts.seqLen.value;
  const body = JSON.stringify({
    model: graph.value,
    attention: facts.attention.value,
    ...(seqLen === null ? {} : { seq_len: seqLen }),
    source: "neurarch-gate",
  });
  if (body.length > MAX_SENT_BYTES)
    return failed(`${shown(path, 300)} is larger than what the hosted plan is sent.`);
  const key = (options.env.NEURARCH_API_KEY ?? "").trim();
  const usable = /^[\x21-\x7e]{1,4096}$/.test(key);
  const proxied =
    url.protocol === "http:" && [options.env.HTTP_PROXY, options.env.http_proxy].some((proxy) => proxy);
  return ok({
    url: url.href,
    host: url.host,
    body,
    authorization: usable && !proxied ? `Bearer ${key}` : null,
    key: JSON.stringify(["plan", url.href, digest(body), usable ? digest(key).slice(0, 8) : ""]),
  });
}

async function ask(asked: Ask, timeoutMs: number): Promise<Result<Plan, Unsized>> {
  const answer = await httpGet({
    url: asked.url,
    authorization: asked.authorization,
    userAgent: "neurarch-gate",
    timeoutMs,
    maxBytes: MAX_ANSWER_BYTES,
    maxRedirects: MAX_REDIRECTS,
    reported: [],
    posted: asked.body,
  });
  if (answer.kind === "obstacle") return failed(unreached(answer.obstacle, asked.host, timeoutMs));
  if (answer.status !== 200) return failed(refusedBy(answer, asked.host));
  const plan = planIn(answer.text);
  return plan === null
    ? failed(`The hosted plan at ${asked.host} gave no training peak; check plan_url.`)
    : ok(plan);
}

function sizingOf(plan: Plan, facts: JobFacts): Sizing {
  const { fixedBytes, perSampleBytes, params } = plan;
  const sizing = lineSizing({
    source: "hosted",
    model: facts.model.value,
    seqLen: plan.seqLen ?? facts.seqLen.value ?? USUAL_TOKENS,
    params,
    recipe: recipeOf(facts),
    fixedBytes,
    perSampleBytes,
    notes: ["a single line: what the plan gives beside its activations is taken for the state"],
  });
  return { ...sizing, trainableParams: params };
}

function recall(key: string, env: HostedOptions["env"]): Result<Plan, Unsized> | null {
  const value = readCache(env, "sizing", key, ANSWER_LIFE_MS)?.value as Partial<Plan> | undefined;
  if (typeof value?.fixedBytes === "number" && typeof value.perSampleBytes === "number") {
    const { fixedBytes, perSampleBytes, seqLen = null, params = null } = value;
    return ok({ fixedBytes, perSampleBytes, seqLen, params });
  }
  const miss = rememberedMiss(env, key);
  return miss === null ? null : fail(miss);
}

function failed(message: string): { readonly ok: false; readonly error: Unsized } {
  return fail({ reason: "sizing-failed", message });
}
