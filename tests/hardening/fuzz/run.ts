/**
 * Feeds random inputs to every parser: `bun tests/hardening/fuzz/run.ts [--count N] [--seed S] [--only NAME,NAME]`.
 * Ends with 1 and the input when one throws what is no value of ours, takes too long, or breaks what its reader promises.
 */
import { Random } from "./random.ts";
import type { Target } from "./target.ts";
import { TARGETS } from "./targets.ts";

/**
 * Longest time for one input, in ms: a reader that is not linear in its text. It is tried again, and then the processor's
 * time counts, not that of others on a busy machine.
 */
const MOST_MS = 2000;

export interface Fuzzed {
  readonly name: string;
  readonly inputs: number;
  readonly perSecond: number;
  readonly slowestMs: number;
}

/** Throws with the input when a check does not hold. */
export async function fuzz(target: Target, count: number, seed: number): Promise<Fuzzed> {
  const inputs = Math.max(1, Math.round(count / (target.share ?? 1)));
  const startMs = performance.now();
  let slowestMs = 0;
  for (let index = 0; index < inputs; index++) {
    // Every input by a seed of its own: one that fails is made again without those before it.
    const random = new Random(Math.imul(seed + index, 0x9e3779b1) ^ index);
    const input = target.input(random);
    const tookMs = await timed(target, input, index);
    if (tookMs > slowestMs) slowestMs = tookMs;
    if (tookMs <= MOST_MS) continue;
    const before = process.cpuUsage();
    await timed(target, input, index);
    const { user, system } = process.cpuUsage(before);
    if (user + system > MOST_MS * 1000)
      throw new Error(`${target.name}: input ${index} took ${Math.round(tookMs)} ms: ${shown(input)}`);
  }
  const seconds = (performance.now() - startMs) / 1000;
  return { name: target.name, inputs, perSecond: inputs / seconds, slowestMs };
}

async function timed(target: Target, input: unknown, index: number): Promise<number> {
  const startMs = performance.now();
  try {
    const wait = target.check(input as never);
    if (wait !== undefined) await wait;
  } catch (error) {
    const why = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
    throw new Error(`${target.name}: input ${index}: ${shown(input)}\n${why}`);
  }
  return performance.now() - startMs;
}

function shown(input: unknown): string {
  const text = JSON.stringify(input) ?? String(input);
  return text.length > 4000 ? `${text.slice(0, 4000)}... (${text.length} characters)` : text;
}

if (import.meta.main) {
  const flag = (name: string, usual: string) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? usual : (process.argv[at + 1] ?? usual);
  };
  const count = Number(flag("count", "1000000"));
  const seed = Number(flag("seed", "1"));
  const only = flag("only", "").split(",").filter(Boolean);
  let failed = 0;
  console.log(`seed ${seed}`);
  for (const one of TARGETS.filter(
    ({ name }) => only.length === 0 || only.some((word) => name.startsWith(word)),
  )) {
    try {
      const { name, inputs, perSecond, slowestMs } = await fuzz(one, count, seed);
      const rate = Math.round(perSecond).toLocaleString("en");
      console.log(
        `${name.padEnd(22)}${inputs.toLocaleString("en").padStart(10)} inputs ${rate.padStart(9)} a second, slowest ${slowestMs.toFixed(1)} ms`,
      );
    } catch (error) {
      failed += 1;
      console.log(String((error as Error).message));
    }
  }
  process.exit(failed === 0 ? 0 : 1);
}
