import type { Recipe } from "../facts/types.ts";
import type { Unsized } from "./types.ts";

/** The recipe in force where a job says nothing: the upper of the two usual ones, so that nothing fits by mistake. */
export const DEFAULT_RECIPE: Recipe = {
  precision: "amp-bf16",
  optimizer: "adamw",
  attention: "sdpa",
  checkpointing: "none",
  quant: "none",
  loraRank: null,
  loraTargets: "attention",
  parallel: "sharded",
  offload: "none",
  gradAccum: 1,
  loss: "full",
  paddingMask: false,
};

/**
 * How an optimizer's step works: in place; with a copy of all trained parameters; or one parameter at a time, with
 * temporaries as `Holdings.updateBytes` tells.
 */
export type Update = "in-place" | "copies" | "adafactor" | "lion";

const UPDATES: Readonly<Record<Recipe["optimizer"], Update>> = {
  adamw: "in-place",
  "adamw-foreach": "copies",
  "adamw-8bit": "in-place",
  adafactor: "adafactor",
  lion: "lion",
  sgd: "in-place",
  "sgd-momentum": "in-place",
};

/** How the linear layers of a frozen base are held. */
export interface Quantised {
  readonly how: "nf4" | "int8";
  /** Bytes an element of what was quantised, and so of a 4-bit matrix that is made whole for its backward. */
  readonly wholeWidth: number;
}

/** What a recipe comes to in bytes. */
export interface Plan {
  /** Bytes an element of the base weights. */
  readonly weightWidth: number;
  readonly quantised: Quantised | null;
  readonly autocast: boolean;
  /** 16-bit is fp16, and the loss is scaled. */
  readonly fp16: boolean;
  readonly trainBase: boolean;
  readonly adapter: { readonly rank: number; readonly width: number; readonly dropout: boolean } | null;
  readonly adaptFeedForward: boolean;
  readonly checkpointing: boolean;
  readonly implementation: "sdpa" | "flash" | "eager";
  readonly paddingMask: boolean;
  /** Optimizer states a trained parameter, each as wide as it. */
  readonly states: number;
  /** Optimizer steps are kept as scalars, one a parameter tensor. */
  readonly stepScalars: boolean;
  /** Instead: row and column means of squares in fp32, and a scalar a parameter tensor. */
  readonly factoredStates: boolean;
  /** Instead: two of a byte each, with scales. */
  readonly eightBitStates: boolean;
  readonly update: Update;
  readonly accumulates: boolean;
  /** DDP's buckets: a second copy of all gradients for the whole run. */
  readonly buckets: boolean;
  /** Cards that share the optimizer's state (ZeRO-1 and 2); 1 = all of it is here. */
  readonly stateCards: number;
  /** Cards that share the gradients too (ZeRO-2): one is scattered as soon as it is there. */
  readonly gradientCards: number;
  /** The logits are never whole: `fused-loss.ts`. */
  readonly fusedLoss: boolean;
  /** Parameters, gradients and state are in host memory: `gathered.ts`. */
  readonly offloaded: boolean;
  /** Cards that share the job, where that matters to one of them. */
  readonly cards: number;
  /** Bytes an element of trained and of frozen parameters in host memory. */
  readonly hostWidth: number;
  readonly frozenHostWidth: number;
}

/** Why a recipe has no size here, or null. The first reason only. */
export function notSized(recipe: Recipe): Unsized | null {
  const reason = (what: string): Unsized => ({
    reason: "recipe-not-sized",
    message: `${what} is not sized by this build.`,
  });
  if (recipe.quant !== "none" && recipe.loraRank === null)
    return {
      reason: "recipe-not-sized",
      message: `quant=${recipe.quant} freezes the weights: without lora-rank nothing is left to train, and transformers refuses the run.`,
    };
  return recipe.quant !== "none" && recipe.offload === "all"
    ? reason(`A quantised base with offload=${recipe.offload}`)
    : null;
}

/** The bytes behind a recipe that `notSized` lets through, on one of `cards` cards where these share the state. */
export function planOf(recipe: Recipe, cards = 1): Plan {
  const lora = recipe.loraRank !== null;
  // LoRA with fp32 is the usual LoRA on a checkpoint loaded in fp32, as Trainer's bf16=True runs it: under autocast too.
  const mixed = recipe.precision === "amp-bf16" || recipe.precision === "amp-fp16";
  const autocast = mixed || (lora && recipe.precision === "fp32");
  // What stays whole beside quantised layers is raised to fp32 by peft's preparation, which goes with autocast.
  const quantised = recipe.quant !== "none";
  const half = recipe.precision === "bf16" || (lora && mixed && !quantised);
  // A state that is offloaded is updated where it is.
  const here = recipe.offload === "none";
  // FSDP's mixed precision gathers 16-bit copies of fp32 parameters, and needs no autocast.
  const offloaded = recipe.offload === "all";
  const lowered = offloaded && (autocast || half);
  const adamw = here && (recipe.optimizer === "adamw" || recipe.optimizer === "adamw-foreach");
  const oneState = here && (recipe.optimizer === "sgd-momentum" || recipe.optimizer === "lion");
  return {
    weightWidth: half || lowered ? 2 : 4,
    quantised:
      recipe.quant === "none" ? null : { how: recipe.quant, wholeWidth: recipe.precision === "fp32" ? 4 : 2 },
    autocast: autocast && !offloaded,
    fp16: recipe.precision === "amp-fp16",
    trainBase: !lora,
    adapter:
      recipe.loraRank === null
        ? null
        : {
            rank: recipe.loraRank,
            width: lowered || recipe.precision === "bf16" ? 2 : 4,
            // What is kept is the same whatever the share that is dropped.
            dropout: (recipe.loraDropout ?? 0) > 0,
          },
    adaptFeedForward: recipe.loraTargets === "all-linear",
    checkpointing: recipe.checkpointing === "full",
    implementation: recipe.attention,
    paddingMask: recipe.paddingMask,
    states: adamw ? 2 : oneState ? 1 : 0,
    stepScalars: adamw,
    eightBitStates: here && recipe.optimizer === "adamw-8bit",
    factoredStates: here && recipe.optimizer === "adafactor",
    update: here ? UPDATES[recipe.optimizer] : "in-place",
    accumulates: recipe.gradAccum > 1,
    // What is in host memory is shared as FSDP shares it, whatever is asked for.
    buckets: recipe.parallel === "ddp" && !offloaded,
    stateCards: (recipe.parallel === "zero1" || recipe.parallel === "zero2") && !offloaded ? cards : 1,
    gradientCards: recipe.parallel === "zero2" && !offloaded ? cards : 1,
    fusedLoss: recipe.loss === "fused",
    offloaded,
    cards,
    hostWidth: recipe.precision === "bf16" ? 2 : 4,
    frozenHostWidth: half ? 2 : 4,
  };
}

/** What of a recipe was sized by the same rules but never measured, a sentence each. */
export function unmeasured(recipe: Recipe): string[] {
  const said: string[] = [];
  const stages = recipe.parallel === "zero1" || recipe.parallel === "zero2";
  if (stages && (recipe.optimizer === "adafactor" || recipe.optimizer === "adamw-8bit"))
    said.push(
      `Sharing the state of ${recipe.optimizer} was never measured; every card is given an even part.`,
    );
  if (stages && recipe.precision === "bf16" && recipe.loraRank === null && recipe.offload === "none")
    said.push(
      `${recipe.parallel} is sized with states in bf16, as torch keeps them; DeepSpeed adds fp32 copies, 8 bytes a parameter over all cards.`,
    );
  if (recipe.offload === "all" && recipe.parallel !== "sharded")
    said.push("Parameters are offloaded with ZeRO-3 or FSDP only; it is sized so.");
  if (recipe.offload === "all" && recipe.loss === "fused")
    said.push("A fused loss beside offloaded parameters was never measured.");
  if (recipe.attention === "flash" && recipe.paddingMask)
    said.push("Flash attention over padded batches was never measured; it is sized as without padding.");
  return said;
}

/** `full fine-tune, amp-bf16, adamw, sdpa`: the recipe in a few words, what is at its default left out but the first four. */
export function describeRecipe(recipe: Recipe): string {
  const words = [
    recipe.loraRank === null
      ? "full fine-tune"
      : `LoRA rank ${recipe.loraRank} on ${recipe.loraTargets === "attention" ? "attention" : "all linear layers"}`,
    recipe.precision,
    recipe.optimizer,
    recipe.attention,
  ];
  if (recipe.checkpointing === "full") words.push("checkpointing");
  if (recipe.quant !== "none") words.push(`${recipe.quant} base`);
  if (recipe.parallel !== "sharded") words.push(recipe.parallel);
  if (recipe.offload !== "none") words.push(`offload ${recipe.offload}`);
  if (recipe.gradAccum > 1) words.push(`gradient accumulation ${recipe.gradAccum}`);
  if (recipe.loss !== "full") words.push("fused loss");
  if (recipe.paddingMask) words.push("padding mask");
  if (recipe.loraRank !== null && recipe.loraDropout !== undefined)
    words.push(`LoRA dropout ${recipe.loraDropout}`);
  return words.join(", ");
}
