/** Where a value was read: told in `--explain` and in messages about values that cannot be read. */
export interface Origin {
  readonly kind: "flag" | "env" | "label" | "directive" | "site" | "default";
  /** The name as the user wrote it: `--batch`, `NEURARCH_BATCH`, `neurarch-batch`, `batch`. */
  readonly name: string;
  /** 1-based line of the file it stands on, when it stands in one. */
  readonly line?: number;
}

/** A value that remembers where it came from. */
export interface Fact<T> {
  readonly value: T;
  readonly from: Origin;
}

export const ATTENTIONS = ["sdpa", "flash", "eager"] as const;
export const PRECISIONS = ["amp-bf16", "bf16", "amp-fp16", "fp32"] as const;
export const OPTIMIZERS = [
  "adamw",
  "adamw-foreach",
  "adamw-8bit",
  "adafactor",
  "lion",
  "sgd",
  "sgd-momentum",
] as const;
export const CHECKPOINTINGS = ["none", "full"] as const;
export const QUANTS = ["none", "int8", "nf4"] as const;
export const LORA_TARGETS = ["attention", "all-linear"] as const;
export const PARALLELS = ["sharded", "zero2", "zero1", "ddp"] as const;
export const OFFLOADS = ["none", "optimizer", "all"] as const;
export const LOSSES = ["full", "fused"] as const;

export type Attention = (typeof ATTENTIONS)[number];
export type Precision = (typeof PRECISIONS)[number];
export type Optimizer = (typeof OPTIMIZERS)[number];
export type Checkpointing = (typeof CHECKPOINTINGS)[number];
export type Quant = (typeof QUANTS)[number];
export type LoraTargets = (typeof LORA_TARGETS)[number];
export type Parallel = (typeof PARALLELS)[number];
export type Offload = (typeof OFFLOADS)[number];
export type Loss = (typeof LOSSES)[number];

/** How a job trains: everything beside the model, the batch and the length that changes its memory. */
export interface Recipe {
  readonly precision: Precision;
  readonly optimizer: Optimizer;
  readonly attention: Attention;
  readonly checkpointing: Checkpointing;
  readonly quant: Quant;
  /** LoRA rank; null is a full fine-tune. */
  readonly loraRank: number | null;
  readonly loraTargets: LoraTargets;
  /** Share of the adapters' inputs that is dropped, above 0 and below 1; absent = none. */
  readonly loraDropout?: number;
  readonly parallel: Parallel;
  readonly offload: Offload;
  readonly gradAccum: number;
  readonly loss: Loss;
  readonly paddingMask: boolean;
}

/** What a job says of itself. Every key has a value; `from.kind` is `default` where the job said nothing. */
export interface JobFacts {
  /** A Hugging Face id, or a path to a `config.json`, its folder or a `.neurarch.json`. */
  readonly model: Fact<string>;
  /** Samples per device and step. */
  readonly batch: Fact<number>;
  /** Tokens per sample; null = 2048, or the model's context if shorter. */
  readonly seqLen: Fact<number | null>;
  readonly loraRank: Fact<number | null>;
  readonly attention: Fact<Attention>;
  /** Expected wall hours; null = not said, and the cost cap is not checked. */
  readonly hours: Fact<number | null>;
  readonly precision: Fact<Precision>;
  readonly optimizer: Fact<Optimizer>;
  readonly checkpointing: Fact<Checkpointing>;
  readonly quant: Fact<Quant>;
  readonly loraTargets: Fact<LoraTargets>;
  /** From 0 to below 1; 0 = no dropout. */
  readonly loraDropout: Fact<number>;
  readonly parallel: Fact<Parallel>;
  readonly offload: Fact<Offload>;
  readonly gradAccum: Fact<number>;
  readonly loss: Fact<Loss>;
  readonly paddingMask: Fact<boolean>;
}

export type FactKey = keyof JobFacts;

/** One value that could not be read. `message` is a whole sentence: what, where, what to do. */
export interface FactProblem {
  readonly key: FactKey | null;
  readonly value: string;
  readonly from: Origin;
  readonly message: string;
}

/** What reading the facts can come to. No model named = the job is not judged. */
export type FactsReading =
  | { readonly kind: "none"; readonly notes: readonly string[] }
  | { readonly kind: "facts"; readonly facts: JobFacts; readonly notes: readonly string[] }
  | {
      readonly kind: "unreadable";
      readonly problems: readonly FactProblem[];
      readonly notes: readonly string[];
      /**
       * The only problem is a model that is still a shell variable (`${BASE_MODEL}`): the job is not judged
       * (`unresolved-variable`) instead of refused.
       */
      readonly unresolved?: true;
    };
