import { monotonicMs, nowMs } from "../host/clock.ts";
import { resolve } from "../host/paths.ts";
import { digest } from "../host/private-files.ts";
import { whyNotWritable } from "../host/probe.ts";
import { GateError } from "../lib/errors.ts";
import type { Finding } from "../render/doctor.ts";
import { cacheFolder } from "../sources/cache.ts";
import { judgeAll } from "./judge-file.ts";
import { KNOWN_JOBS, type KnownJob } from "./known-jobs.ts";
import { loadSettings } from "./load.ts";
import { plainJob } from "./plain-job.ts";
import { readPolicyFile, whyNotApplied } from "./policy-file.ts";
import type { Settings } from "./settings.ts";
import { makeSizer } from "./size.ts";

/** What a check found, and whose fault a failure is: this program's, or that of the host and its settings. */
export interface Tested extends Finding {
  readonly ours: boolean;
}

/** What is carried inside the executable, with the digest that the build wrote down; null in a source tree. */
export interface Embedded {
  readonly name: string;
  readonly text: string;
  readonly sha256: string | null;
}

export interface SelfTestHost {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Day of the build: no clock that is right is before it. */
  readonly builtOn: string;
  readonly embedded: readonly Embedded[];
  /** The site's settings, or throws why they cannot be used. */
  readonly settings: () => Promise<Settings>;
}

/** Milliseconds for a known job: it needs a few. */
const PATIENCE_MS = 20_000;
const DAY_MS = 86_400_000;
/** A clock this far behind the build is wrong, or the program is older than anything it judges. */
const MOST_DAYS = 20 * 365;

/** Checks an installed executable with what it carries: no network, no GPU, no file but the probes it takes away. */
export async function selfTest(host: SelfTestHost): Promise<readonly Tested[]> {
  const found: Tested[] = host.embedded.map(checkEmbedded);
  for (const job of KNOWN_JOBS) found.push(await checkJob(job));
  const settings = await checkSettings(host, found);
  found.push(checkCache(host));
  if (settings !== null) found.push(checkLedger(settings, host), ...checkPolicy(settings));
  found.push(checkClock(host));
  return found;
}

function checkEmbedded({ name, text, sha256 }: Embedded): Tested {
  if (sha256 === null)
    return {
      check: name,
      status: "skipped",
      message: "run from source, so there is no build to hold it against",
      fix: null,
      ours: true,
    };
  const whole = digest(text) === sha256;
  return whole
    ? { check: name, status: "ok", message: `${text.length} characters, as built`, fix: null, ours: true }
    : {
        check: name,
        status: "fail",
        message: "not what the build put in",
        fix: "Install the executable again.",
        ours: true,
      };
}

/** What a site sets is no part of a known verdict. */
const BARE = { values: { sizing: "builtin", "repo-policy": "ignore" }, switches: {} } as const;

async function checkJob({ flags, decision, needGb }: KnownJob): Promise<Tested> {
  const check = "known job";
  const name = `${flags.model} on ${flags.request}`;
  const startMs = monotonicMs();
  try {
    const settings = await loadSettings(BARE, {});
    // Neither a cache nor the hub answers for the executable.
    const place = { cwd: "/", env: { HF_HUB_OFFLINE: "1" }, deadlineMs: PATIENCE_MS };
    const [outcome] = await judgeAll(
      [plainJob(flags, settings)],
      settings,
      makeSizer(settings, place),
      async () => null,
    );
    const verdict = outcome?.result?.verdicts[0];
    const got = verdict?.kind === "judged" ? verdict.needGb : Number.NaN;
    const right = outcome?.decision === decision && Math.abs(got - needGb) < 0.05001;
    const took = Math.round(monotonicMs() - startMs);
    return right
      ? {
          check,
          status: "ok",
          message: `${name}: ${decision}, needs ${got.toFixed(1)} GB (${took} ms)`,
          fix: null,
          ours: true,
        }
      : {
          check,
          status: "fail",
          message: `${name}: ${outcome?.decision} and ${got.toFixed(1)} GB, and ${decision} and ${needGb.toFixed(1)} GB is right`,
          fix: "Do not use this executable; report it with the output of --version.",
          ours: true,
        };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return {
      check,
      status: "fail",
      message: `${name}: ${why}`,
      fix: "Install the executable again.",
      ours: true,
    };
  }
}

async function checkSettings(host: SelfTestHost, found: Tested[]): Promise<Settings | null> {
  try {
    const settings = await host.settings();
    found.push({ check: "settings", status: "ok", message: "read", fix: null, ours: false });
    return settings;
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    found.push({ check: "settings", status: "fail", message: error.message, fix: error.hint, ours: false });
    return null;
  }
}

function checkCache({ env }: SelfTestHost): Tested {
  const folder = cacheFolder(env);
  const kept = "configs of the hub and sizes are then not kept, and verdicts are the same";
  if (folder === null)
    return {
      check: "cache",
      status: "warn",
      message: `no HOME and no XDG_CACHE_HOME: ${kept}`,
      fix: null,
      ours: false,
    };
  const why = whyNotWritable(folder);
  return why === null
    ? { check: "cache", status: "ok", message: `${folder} can be written`, fix: null, ours: false }
    : {
        check: "cache",
        status: "warn",
        message: `${folder} cannot be written (${why}): ${kept}`,
        fix: "Set XDG_CACHE_HOME to a folder of your own.",
        ours: false,
      };
}

function checkLedger({ ledger }: Settings, { cwd }: SelfTestHost): Tested {
  const check = "ledger";
  if (ledger === null || ledger === "")
    return { check, status: "skipped", message: "none is set", fix: null, ours: false };
  if (/^[a-z]+:/.test(ledger))
    return {
      check,
      status: "skipped",
      message: `${ledger} is tried only when there is a verdict to send`,
      fix: null,
      ours: false,
    };
  const folder = resolve(cwd, ledger);
  const why = whyNotWritable(folder);
  return why === null
    ? { check, status: "ok", message: `${folder} can be written`, fix: null, ours: false }
    : {
        check,
        status: "fail",
        message: `${folder} cannot be written (${why}), so verdicts are not recorded`,
        fix: "Make it writable for everyone who submits (mode 1777), or set another folder.",
        ours: false,
      };
}

function checkPolicy({ policyFile }: Settings): Tested[] {
  if (policyFile === null) return [];
  const reading = readPolicyFile(policyFile);
  const check = "policy file";
  return reading.policy === null
    ? [
        {
          check,
          status: "fail",
          message: `${policyFile} is not applied: ${whyNotApplied(reading)}`,
          fix: "`policy check` says more.",
          ours: false,
        },
      ]
    : [{ check, status: "ok", message: `${policyFile} is read`, fix: null, ours: false }];
}

function checkClock({ builtOn }: SelfTestHost): Tested {
  const days = (nowMs() - Date.parse(`${builtOn}T00:00:00Z`)) / DAY_MS;
  const today = new Date(nowMs()).toISOString().slice(0, 10);
  // The day before: a host may be west of whoever built it.
  const sane = days > -1.5 && days < MOST_DAYS;
  return sane
    ? {
        check: "clock",
        status: "ok",
        message: `${today}, after the build of ${builtOn}`,
        fix: null,
        ours: false,
      }
    : {
        check: "clock",
        status: "fail",
        message: `the clock says ${today}, and this executable was built on ${builtOn}: waivers begin and end by it`,
        fix: "Set the host's clock.",
        ours: false,
      };
}
