import type { FactKey, JobFacts } from "../facts/types.ts";

/** Facts that external sources have no word for: another value than the default cannot be asked of them. */
const DEFAULTS = {
  precision: "amp-bf16",
  optimizer: "adamw",
  checkpointing: "none",
  quant: "none",
  loraTargets: "attention",
  loraDropout: 0,
  offload: "none",
  gradAccum: 1,
  loss: "full",
  paddingMask: false,
} as const satisfies Partial<Record<FactKey, unknown>>;
const NAMES: Readonly<Partial<Record<FactKey, string>>> = {
  loraTargets: "lora-targets",
  loraDropout: "lora-dropout",
  gradAccum: "grad-accum",
  paddingMask: "padding-mask",
};

/** The first fact that an external source cannot be told, as `precision=bf16`; null = all can. */
export function unaskable(facts: JobFacts): string | null {
  for (const [key, value] of Object.entries(DEFAULTS) as [keyof typeof DEFAULTS, unknown][])
    if (facts[key].value !== value) return `${NAMES[key] ?? key}=${facts[key].value}`;
  return null;
}
