import { soon } from "../host/clock.ts";
import { type HttpObstacle, httpGet } from "../host/http.ts";
import { join } from "../host/paths.ts";
import { readPrivateFile } from "../host/private-files.ts";
import { awayForMs, clearAway, delivered, markAway, waiting } from "../host/spool.ts";
import { readToken } from "../host/token.ts";
import { type Sink, sinkOf } from "../lib/sink.ts";

/** Path of the collector below its address. */
export const COLLECTOR_PATH = "/v1/ledger";
/** Largest body that is sent; a collector takes at most 1 MB. */
const MAX_BATCH_CHARACTERS = 250_000;
/** Most files that one run takes along beside its own. */
const MOST_FILES = 200;
/** A collector that was away is left alone for so long: a submit must not pay for it each time. */
const AWAY_MS = 30_000;
const MAX_FILE_BYTES = 4_000_000;

/** Where lines go and what is shown there. */
export interface Collector {
  readonly ledger: string;
  readonly tokenFile: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Of this program. */
  readonly version: string;
}

/** What came of a delivery: `why` says what kept lines back. */
export interface Delivery {
  readonly sent: number;
  readonly left: number;
  readonly why: string | null;
}

/** Milliseconds that a submit, a command and a server give a delivery, all in all. */
export const SEND_MS = { slurm: 200, skypilot: 1000, judge: 1000, serve: 5000 } as const;

/**
 * Delivers what waits in the spool within a deadline, newest first, as that is the caller's own; what is not taken
 * stays. Lines that two processes deliver at once arrive twice and count once: each has an id. Never throws.
 */
export async function deliver(
  folder: string,
  collector: Collector,
  { timeoutMs, all = false }: { readonly timeoutMs: number; readonly all?: boolean },
): Promise<Delivery> {
  const names = waiting(folder).reverse();
  const away = awayForMs(folder);
  if (!all && away !== null && away < AWAY_MS)
    return { sent: 0, left: names.length, why: "the collector was away" };
  const endMs = performance.now() + timeoutMs;
  let sent = 0;
  let why: string | null = null;
  for (const batch of batches(folder, all ? names : names.slice(0, MOST_FILES))) {
    const leftMs = endMs - performance.now();
    why = leftMs < 5 ? "the time was over" : await post(batch.lines, collector, leftMs);
    if (why !== null) break;
    for (const name of batch.names) delivered(folder, name);
    sent += batch.lines.length;
  }
  if (why === null) {
    if (away !== null) clearAway(folder);
  } else markAway(folder);
  return { sent, left: waiting(folder).length, why };
}

function* batches(folder: string, names: readonly string[]) {
  let batch: { names: string[]; lines: string[] } = { names: [], lines: [] };
  let size = 0;
  for (const name of names) {
    const text = readPrivateFile(join(folder, name), MAX_FILE_BYTES);
    if (text === null) continue;
    if (size > 0 && size + text.length > MAX_BATCH_CHARACTERS) {
      yield batch;
      batch = { names: [], lines: [] };
      size = 0;
    }
    batch.names.push(name);
    batch.lines.push(...text.split("\n").filter((line) => line !== ""));
    size += text.length;
  }
  if (batch.names.length > 0) yield batch;
}

const OBSTACLES: Readonly<Record<HttpObstacle, string>> = {
  timeout: "it did not answer in time",
  refused: "nobody answers there",
  "no-such-host": "there is no such host",
  certificate: "its certificate is not trusted",
  connection: "the connection failed",
  "too-large": "its answer is no collector's",
  redirects: "it redirects",
  "unsafe-redirect": "it redirects",
};

/** Sends lines (each one JSON) in one request; why they were not taken, or null. */
export async function post(
  lines: readonly string[],
  { ledger, tokenFile, env, version }: Collector,
  timeoutMs: number,
): Promise<string | null> {
  const sink = sinkOf(ledger);
  if (sink.kind === "invalid") return sink.why;
  if (sink.kind === "folder") return "it is a folder";
  let authorization: string | null = null;
  if (tokenFile !== null) {
    const token = readToken(tokenFile, env.HOME);
    if (!token.ok) return token.why;
    authorization = token.token.includes(":") ? `Basic ${btoa(token.token)}` : `Bearer ${token.token}`;
  }
  const answer = await httpGet({
    ...targetOf(sink),
    authorization,
    userAgent: `neurarch-gate/${version}`,
    timeoutMs,
    maxBytes: 10_000,
    maxRedirects: 0,
    reported: [],
    posted: `[${lines.join(",")}]`,
  });
  if (answer.kind === "obstacle") return OBSTACLES[answer.obstacle];
  if (answer.status === 401)
    return authorization === null
      ? "it asks for a key (`ledger_token_file`)"
      : answer.authorized
        ? "it does not know the key"
        : "the key is not sent over plain http to another machine";
  if (answer.status !== 200) return `it answered ${answer.status}`;
  return isReceipt(answer.text) ? null : "its answer is no collector's";
}

function targetOf(sink: Extract<Sink, { kind: "unix" | "http" }>) {
  return sink.kind === "unix"
    ? { url: `http://localhost${COLLECTOR_PATH}`, unix: sink.path }
    : { url: `${sink.url}${COLLECTOR_PATH}` };
}

/** A captive portal answers 200 as well; only a receipt lets lines go. */
function isReceipt(text: string): boolean {
  try {
    return (JSON.parse(text) as { schema?: unknown }).schema === "neurarch-gate/ledger-receipt";
  } catch {
    return false;
  }
}

let underWay = false;
let again = false;

/** As `deliver`, behind what is under way; nobody waits for it. One delivery of a process at a time. */
export function deliverSoon(folder: string, collector: Collector, timeoutMs: number): void {
  if (underWay) {
    again = true;
    return;
  }
  underWay = true;
  deliver(folder, collector, { timeoutMs })
    .catch(() => undefined)
    .finally(() => {
      underWay = false;
      if (!again) return;
      again = false;
      soon(() => deliverSoon(folder, collector, timeoutMs));
    });
}
