import {
  ATTENTIONS,
  CHECKPOINTINGS,
  type FactKey,
  LORA_TARGETS,
  LOSSES,
  OFFLOADS,
  OPTIMIZERS,
  PARALLELS,
  PRECISIONS,
  QUANTS,
} from "./types.ts";

/** How a value is read. Bounds are the largest believable value: above it the text is a mistake, not a job. */
export type ValueForm =
  | { readonly kind: "model" }
  | { readonly kind: "count"; readonly most: number; readonly example: string }
  | { readonly kind: "rank"; readonly most: number; readonly example: string }
  | { readonly kind: "hours"; readonly most: number; readonly example: string }
  /** A number from 0 to below 1. */
  | { readonly kind: "share"; readonly example: string }
  | { readonly kind: "choice"; readonly values: readonly string[] }
  | { readonly kind: "switch" };

/** One fact a job can tell: its spellings, how it is read, what holds when it is not told. */
export interface FactSpec {
  readonly key: FactKey;
  /** In `#NEURARCH` lines, after `--` on the command line and in a site's `[defaults]`. */
  readonly flag: string;
  /** As an environment variable of a SkyPilot task or a Slurm submit. */
  readonly env: string;
  /** As a SkyPilot resource label. */
  readonly label: string;
  readonly form: ValueForm;
  /** The value of a job that says nothing; `model` has none. */
  readonly byDefault: string | number | boolean | null;
  /** The default in words, for help. */
  readonly byDefaultText: string;
  /** One of the six that every job is expected to know; a site's `[defaults]` may only set the others. */
  readonly core: boolean;
  /** One line, for help, documentation and the schema. */
  readonly about: string;
}

function spec(
  key: FactKey,
  flag: string,
  form: ValueForm,
  byDefault: FactSpec["byDefault"],
  about: string,
  more: { readonly core?: boolean; readonly text?: string } = {},
): FactSpec {
  return {
    key,
    flag,
    env: `NEURARCH_${flag.toUpperCase().replaceAll("-", "_")}`,
    label: `neurarch-${flag}`,
    form,
    byDefault,
    byDefaultText: more.text ?? (byDefault === null ? "none" : String(byDefault)),
    core: more.core ?? false,
    about,
  };
}

function choice(
  key: FactKey,
  flag: string,
  values: readonly string[],
  about: string,
  core = false,
): FactSpec {
  return spec(key, flag, { kind: "choice", values }, values[0]!, about, { core });
}

/** Every fact, in the order help and documentation list them. The first value of a choice is its default. */
export const FACT_SPECS: readonly FactSpec[] = [
  spec(
    "model",
    "model",
    { kind: "model" },
    null,
    "Hugging Face id, or a path to a config.json, its folder or a .neurarch.json",
    {
      core: true,
      text: "none: the job is not judged",
    },
  ),
  spec(
    "batch",
    "batch",
    { kind: "count", most: 1_000_000, example: "8" },
    32,
    "samples per device and step",
    {
      core: true,
    },
  ),
  spec(
    "seqLen",
    "seq-len",
    { kind: "count", most: 100_000_000, example: "2048" },
    null,
    "tokens per sample",
    {
      core: true,
      text: "2048, or the model's context if shorter",
    },
  ),
  spec(
    "loraRank",
    "lora-rank",
    { kind: "rank", most: 65_536, example: "16" },
    null,
    "LoRA rank; none is a full fine-tune",
    {
      core: true,
    },
  ),
  choice("attention", "attention", ATTENTIONS, "how attention is computed", true),
  spec(
    "hours",
    "hours",
    { kind: "hours", most: 1_000_000, example: "6" },
    null,
    "expected wall hours, for the cost cap",
    {
      core: true,
    },
  ),
  choice(
    "precision",
    "precision",
    PRECISIONS,
    "weights and autocast; amp-* keeps fp32 weights, fp32 under LoRA is an fp32 base",
  ),
  choice(
    "optimizer",
    "optimizer",
    OPTIMIZERS,
    "whose state is kept; adamw is the fused one, adamw-8bit that of bitsandbytes",
  ),
  choice("checkpointing", "checkpointing", CHECKPOINTINGS, "recompute activations layer by layer"),
  choice("quant", "quant", QUANTS, "quantised base weights under LoRA, by bitsandbytes"),
  choice("loraTargets", "lora-targets", LORA_TARGETS, "which linear layers get LoRA adapters"),
  spec(
    "loraDropout",
    "lora-dropout",
    { kind: "share", example: "0.05" },
    0,
    "dropout of the LoRA adapters' inputs, peft's lora_dropout",
  ),
  choice(
    "parallel",
    "parallel",
    PARALLELS,
    "how several cards share one job; sharded is FSDP or ZeRO-3; under zero2, zero1 and ddp each card is judged",
  ),
  choice(
    "offload",
    "offload",
    OFFLOADS,
    "what is kept in host memory; all = parameters too, gathered layer by layer",
  ),
  spec(
    "gradAccum",
    "grad-accum",
    { kind: "count", most: 1_000_000, example: "4" },
    1,
    "micro-batches per optimizer step",
  ),
  choice("loss", "loss", LOSSES, "fused never holds all logits: Liger's fused linear cross entropy"),
  spec("paddingMask", "padding-mask", { kind: "switch" }, false, "samples are padded and masked", {
    text: "off",
  }),
];

/** As facts are compared when written by hand: without case, `_` as `-`. */
export function foldedName(name: string): string {
  return name.trim().toLowerCase().replaceAll("_", "-");
}

/** The fact a flag or directive name means; null when it is none of ours. */
export function specOfFlag(name: string): FactSpec | null {
  const wanted = foldedName(name);
  return FACT_SPECS.find((spec) => spec.flag === wanted) ?? null;
}

/** The fact an environment variable means; null for `NEURARCH_MODE` and every other one. */
export function specOfEnv(name: string): FactSpec | null {
  return FACT_SPECS.find((spec) => spec.env === name) ?? null;
}

/** The fact a resource label means; null when it is none of ours. */
export function specOfLabel(name: string): FactSpec | null {
  const wanted = name.trim().toLowerCase();
  return FACT_SPECS.find((spec) => spec.label === wanted) ?? null;
}

export function specOf(key: FactKey): FactSpec {
  return FACT_SPECS.find((spec) => spec.key === key)!;
}
