import { nowMs } from "../host/clock.ts";
import { type HttpAnswer, type HttpObstacle, httpGet } from "../host/http.ts";
import { digest } from "../host/private-files.ts";
import { releaseTurn, sleep, takeTurn } from "../host/turn.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { parseConfig } from "../model/read.ts";
import type { Unsized } from "../sizing/types.ts";
import { cacheFolder, MISS_LIFE_MS, readCache, rememberedMiss, writeCache } from "./cache.ts";
import { MAX_CONFIG_BYTES } from "./hf-cache.ts";
import { type Asked, notConfig, refusedBy, unreached } from "./hub-answer.ts";
import { authorizationFor, type Endpoint, endpointOf, offlineBy, tokenOf } from "./hub-settings.ts";
import { configKey, type HubConfig, keptConfig } from "./kept.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A failed look-up; `notAsked` says in a few words why no hub was asked at all. */
export interface HubFailure extends Unsized {
  readonly notAsked?: string;
}

export interface HubOptions {
  readonly env: Environment;
  /** Milliseconds for the whole look-up, waiting for another process's included. */
  readonly timeoutMs: number;
}

type Answer = Result<HubConfig, HubFailure>;

/** Redirects that are followed; the hub itself needs one or two (a renamed model, its store of small files). */
const MAX_REDIRECTS = 5;
/** How often a process that waits for another's answer looks for it. */
const LOOK_MS = 25;
/** What a look-up may take beyond its deadline before another process takes its place. */
const OVERDUE_MS = 1000;

/**
 * Fetches the config of a model from the hub, at revision main: one request, two for an adapter's repository.
 * Every failure is a value with a sentence on what would make it work. What came is kept in our own cache; that
 * nothing came is remembered for a minute, for all of a user's processes, and of several that ask for one model
 * at once one asks the hub while the others wait for its answer, each at most its own time.
 */
export async function fetchHubConfig(id: string, options: HubOptions): Promise<Answer> {
  const { env, timeoutMs } = options;
  if (!isHubId(id)) {
    const message = `No config was found for ${shown(id, 200)}: no model can be called that on the hub; name a path to its config.json, or the model's id (Qwen/Qwen3-8B).`;
    return fail({ reason: "model-not-found", message });
  }
  const offline = offlineBy(env);
  if (offline !== null) {
    const notAsked = `the hub is not asked while ${offline} is set`;
    const message = `No config was found for ${shown(id, 200)}: ${notAsked}.`;
    return fail({ reason: "model-not-found", message, notAsked });
  }
  const endpoint = endpointOf(env);
  if (!endpoint.ok) return fail({ reason: "model-unreachable", message: endpoint.error });
  const asked: Asked = { id, endpoint: endpoint.value, token: tokenOf(env), timeoutMs };
  return oneOfMany(asked, env);
}

/** As huggingface_hub's `validate_repo_id` has it; the letters were looked at before. */
function isHubId(id: string): boolean {
  return id.length <= 96 && !/--|\.\.|\.git$|[.-](\/|$)|[^A-Za-z0-9._/-]/.test(id);
}

/** Asks, unless another process is just asking the same or has failed to within the last minute. */
async function oneOfMany(asked: Asked, env: Environment): Promise<Answer> {
  const untilMs = nowMs() + asked.timeoutMs;
  const folder = cacheFolder(env);
  const turn = `asking-${digest(missKey(asked)).slice(0, 40)}`;
  for (;;) {
    const known = alreadyKnown(asked, env);
    if (known !== null) return known;
    const leftMs = untilMs - nowMs();
    if (leftMs <= 0) return fail(unreached("timeout", asked));
    const state = folder === null ? "nowhere" : takeTurn(folder, turn, leftMs + OVERDUE_MS);
    if (state === "taken") {
      await sleep(Math.min(LOOK_MS, leftMs));
      continue;
    }
    try {
      // Between the look and the turn another may have finished.
      return alreadyKnown(asked, env) ?? keep(await ask(asked, env, leftMs), asked, env);
    } finally {
      if (state === "ours" && folder !== null) releaseTurn(folder, turn);
    }
  }
}

function alreadyKnown(asked: Asked, env: Environment): Answer | null {
  const kept = keptConfig(asked.id, env);
  if (kept !== null) {
    const { ageMs: _, ...config } = kept;
    return ok(config);
  }
  const miss = rememberedMiss(env, missKey(asked)) ?? deadHub(asked, env);
  return miss === null ? null : fail(miss);
}

function keep(outcome: Outcome, asked: Asked, env: Environment): Answer {
  const { answer, dead } = outcome;
  if (answer.ok) writeCache(env, "config", configKey(asked.id, env), answer.value);
  else if (dead === null) writeCache(env, "miss", missKey(asked), answer.error);
  else rememberDead(hubKey(asked.endpoint), { obstacle: dead, waitedMs: asked.timeoutMs }, env);
  return answer;
}

/** A token that was renewed asks anew: a few letters of its hash tell tokens apart and nothing of them. */
function missKey({ id, endpoint, token }: Asked): string {
  return JSON.stringify(["hub", endpoint.base, id, token === null ? "" : digest(token.value).slice(0, 8)]);
}

function hubKey(endpoint: Endpoint): string {
  return JSON.stringify(["hub", endpoint.base]);
}

/** Hubs that did not answer, where our own cache cannot be written: at least this process waits once. */
const deadHere = new Map<string, { readonly value: unknown; readonly atMs: number }>();

function rememberDead(
  key: string,
  value: { obstacle: HttpObstacle; waitedMs: number },
  env: Environment,
): void {
  if (!writeCache(env, "miss", key, value)) deadHere.set(key, { value, atMs: nowMs() });
}

/**
 * A hub that did not answer within the last minute, whatever the model. One that was given less than half of our
 * time is asked again: it may only be slow.
 */
function deadHub(asked: Asked, env: Environment): Unsized | null {
  const key = hubKey(asked.endpoint);
  const here = deadHere.get(key);
  const recent = here !== undefined && nowMs() - here.atMs < MISS_LIFE_MS ? here.value : null;
  const value = (readCache(env, "miss", key, MISS_LIFE_MS)?.value ?? recent) as
    | { obstacle?: unknown; waitedMs?: unknown }
    | null
    | undefined;
  const obstacle = DEAD.find((each) => each === value?.obstacle);
  if (obstacle === undefined || typeof value?.waitedMs !== "number") return null;
  if (obstacle === "timeout" && value.waitedMs * 2 < asked.timeoutMs) return null;
  return unreached(obstacle, asked);
}

/** Obstacles that have nothing to do with the model asked for. */
const DEAD = ["timeout", "refused", "no-such-host", "certificate"] as const satisfies HttpObstacle[];

interface Outcome {
  readonly answer: Answer;
  /** Set where the hub itself could not be reached. */
  readonly dead: (typeof DEAD)[number] | null;
}

async function ask(asked: Asked, env: Environment, timeoutMs: number): Promise<Outcome> {
  const startMs = nowMs();
  const authorization = authorizationFor(asked.endpoint, asked.token, env);
  let adapter = false;
  let first: Extract<HttpAnswer, { kind: "answer" }> | null = null;
  for (const file of ["config.json", "adapter_config.json"]) {
    const answer = await httpGet({
      url: `${asked.endpoint.base}/${asked.id}/resolve/main/${file}`,
      authorization,
      userAgent: "neurarch-gate",
      timeoutMs: timeoutMs - (nowMs() - startMs),
      maxBytes: MAX_CONFIG_BYTES,
      maxRedirects: MAX_REDIRECTS,
      reported: ["x-repo-commit", "x-error-code"],
    });
    if (answer.kind === "obstacle") {
      const dead = DEAD.find((each) => each === answer.obstacle) ?? null;
      return { answer: fail(unreached(answer.obstacle, asked)), dead };
    }
    if (answer.status === 200) return { answer: configIn(answer, asked, adapter), dead: null };
    first ??= answer;
    // A repository without config.json may be an adapter's; one that is not there is not asked twice.
    const code = answer.headers["x-error-code"];
    if (answer.status !== 404 || (code !== undefined && code !== "EntryNotFound")) break;
    adapter = true;
  }
  return { answer: fail(refusedBy(first!, asked)), dead: null };
}

function configIn(
  { text, headers }: Extract<HttpAnswer, { kind: "answer" }>,
  asked: Asked,
  adapter: boolean,
): Answer {
  const raw = parseConfig(text);
  if (!raw.ok || typeof raw.value !== "object" || raw.value === null) return fail(notConfig(asked));
  const commit = headers["x-repo-commit"];
  const revision = commit !== undefined && /^[A-Za-z0-9._-]{1,100}$/.test(commit) ? commit : null;
  return ok({ text, revision, adapter });
}
