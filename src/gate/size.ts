import type { JobFacts } from "../facts/types.ts";
import { nowMs } from "../host/clock.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import type { Sizing, Unsized } from "../sizing/types.ts";
import type { PerCard, Resize } from "../verdict/types.ts";
import type { Keeper } from "./keeper.ts";
import type { Settings } from "./settings.ts";

/** A job's size, and the same job under another recipe. */
export interface SizedJob {
  readonly sizing: Sizing;
  readonly resize: Resize;
  readonly perCard?: PerCard;
}

export type SizeJob = (facts: JobFacts) => Promise<Result<SizedJob, Unsized>>;

/** What a sizer needs of the host: where paths start, the environment of caches, the time it has. */
export interface SizerHost {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds for the whole verdict. */
  readonly deadlineMs: number;
  /** Sizes of earlier runs; absent where a size has to explain itself. */
  readonly keeper?: Keeper;
}

/**
 * The sizer of a site: built-in from the model's structure, an external CLI, or the hosted plan. With `auto` the last
 * two are asked only when one is configured and the built-in sizer has no answer.
 */
export function makeSizer(settings: Settings, host: SizerHost): SizeJob {
  return async (facts) => {
    const startMs = nowMs();
    // One deadline a verdict: what one source used is not there for the next.
    const left = () => sourceTimeoutMs(settings, host.deadlineMs - (nowMs() - startMs));
    switch (settings.sizing) {
      case "cli":
        return sizeByCli(facts, settings, host.env, left());
      case "hosted":
        return sizeByPlan(facts, settings, host, left());
      case "builtin":
        return sizeBuiltIn(facts, host, left());
      case "auto": {
        const builtIn = await sizeBuiltIn(facts, host, left());
        if (builtIn.ok) return builtIn;
        let { message } = builtIn.error;
        if (settings.cli !== null) {
          const external = await sizeByCli(facts, settings, host.env, left());
          if (external.ok) return external;
          message += ` The sizing CLI: ${external.error.message}`;
        }
        // A graph leaves this machine only where the site has said where to.
        if (settings.planUrl !== null) {
          const hosted = await sizeByPlan(facts, settings, host, left());
          if (hosted.ok) return hosted;
          message += ` ${hosted.error.message}`;
        }
        return fail({ ...builtIn.error, message });
      }
    }
  };
}

/** Milliseconds for one source: `--timeout`, within what is left of the deadline. */
export function sourceTimeoutMs(settings: Pick<Settings, "timeoutS">, leftMs: number): number {
  return Math.max(1, Math.min(leftMs, (settings.timeoutS ?? Number.POSITIVE_INFINITY) * 1000));
}

async function sizeBuiltIn(
  facts: JobFacts,
  { cwd, env, keeper }: SizerHost,
  hubTimeoutMs: number,
): Promise<Result<SizedJob, Unsized>> {
  const kept = keeper?.find(facts);
  if (kept !== undefined && kept !== null) return ok(kept);
  // Reading models and walking steps is most of the program; a size that is kept needs none of it.
  const { sizeAnew } = await import("./size-anew.ts");
  return sizeAnew(facts, { cwd, env, hubTimeoutMs }, keeper);
}

async function sizeByCli(
  facts: JobFacts,
  settings: Settings,
  env: SizerHost["env"],
  timeoutMs: number,
): Promise<Result<SizedJob, Unsized>> {
  const { sizeByExternalCli } = await import("../sources/cli.ts");
  const sized = await sizeByExternalCli(facts, { command: settings.cli, env, timeoutMs });
  return sized.ok ? ok({ sizing: sized.value, resize: () => null }) : sized;
}

async function sizeByPlan(
  facts: JobFacts,
  { planUrl }: Settings,
  { cwd, env }: SizerHost,
  timeoutMs: number,
): Promise<Result<SizedJob, Unsized>> {
  const { sizeByHostedPlan } = await import("../sources/hosted.ts");
  const sized = await sizeByHostedPlan(facts, { url: planUrl, cwd, env, timeoutMs });
  return sized.ok ? ok({ sizing: sized.value, resize: () => null }) : sized;
}

/** One verdict's time under SkyPilot, which itself gives a policy 30 s, and for `judge`. */
export const SKYPILOT_DEADLINE_MS = 20_000;
/** One verdict's time under Slurm: sbatch waits for it. */
export const SLURM_DEADLINE_MS = 5_000;
