import type { Recipe } from "../facts/types.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { fitTower } from "../model/tower-fit.ts";
import type { DecoderShape, LocatedStructure } from "../model/types.ts";
import { assembled } from "./assemble.ts";
import { momentsOf, withOneSample } from "./moments.ts";
import { quantisedNotes, unmeasuredQuantised } from "./quantised.ts";
import { notSized, planOf, unmeasured } from "./recipe.ts";
import { trainingStep } from "./step.ts";
import type { Sizing, Unsized } from "./types.ts";

/**
 * The training peak of a model under a recipe, at `seqLen` tokens a sample. Pure. `Unsized` says why there is
 * none: the recipe is not sized by this build, or nothing is known of the family's activations.
 */
export function sizeStructure(
  located: LocatedStructure,
  recipe: Recipe,
  seqLen: number,
  cards = 1,
): Result<Sizing, Unsized> {
  const { structure } = located;
  const refused = notSized(recipe);
  if (refused !== null) return fail(refused);
  if (structure.stacks !== undefined) {
    // Evaluated at first use, and at once: most submits name a decoder and need none of these modules.
    const { sizeStacks } = require("./stacks/size.ts") as typeof import("./stacks/size.ts");
    return sizeStacks(located, structure.stacks, recipe, seqLen, cards);
  }
  if (structure.graph !== undefined) {
    const { sizeGraph } = require("./graph/size.ts") as typeof import("./graph/size.ts");
    return sizeGraph(located, structure.graph, recipe, seqLen, cards);
  }
  const shape = structure.decoder;
  if (shape === null) {
    return fail({
      reason: "family-not-sized",
      message: `The activations of the family ${structure.family} are not known to this build.`,
    });
  }
  if (structure.tower !== undefined && recipe.offload === "all") {
    return fail({
      reason: "recipe-not-sized",
      message: "Offloading all of a model with a tower is not sized by this build.",
    });
  }
  const notes = [...structure.notes];
  const cautions: string[] = [];
  const { sized, note } = asSized(recipe, shape, structure.tower?.noFlash ?? false);
  if (note !== null) notes.push(note);
  if (shape.positionRows > 0 && structure.contextTokens !== null && seqLen > structure.contextTokens) {
    cautions.push(`The model has ${structure.contextTokens} learned positions; ${seqLen} tokens do not run.`);
  }
  if (shape.scores !== undefined) {
    const { headCaution } = require("./unusual.ts") as typeof import("./unusual.ts");
    cautions.push(headCaution(shape.scores));
  }
  if (isUnusual(recipe)) {
    const { fusedCaution, sharingNotes } = require("./unusual.ts") as typeof import("./unusual.ts");
    const caution = recipe.loss === "fused" ? fusedCaution(structure.family) : null;
    if (caution !== null) cautions.push(caution);
    notes.push(...sharingNotes(sized, cards));
  }
  notes.push(...cautions);
  const quantisable = { experts: shape.experts !== undefined, ownLinear: shape.splitBiases ?? false };
  notes.push(...quantisedNotes(sized, quantisable));
  const plan = planOf(sized, cards);
  const tower = structure.tower === undefined ? null : fitTower(structure.tower, seqLen);
  if (tower !== null) {
    notes.push(
      `A sample is taken with one image ${tower.image}: ${tower.tokens} of its ${seqLen} tokens. Larger or further images need more, text alone needs less.`,
    );
  } else if (structure.tower !== undefined) {
    notes.push(
      `A sample of ${seqLen} tokens has no room for an image of ${structure.tower.tokens}; it is sized as text alone.`,
    );
  }
  const step = trainingStep(shape, plan, seqLen, structure.paramsOutside, false, tower);
  if (recipe.loraRank !== null && step.trainable === 0) {
    return fail({
      reason: "recipe-not-sized",
      message: `LoRA on attention finds no layer to adapt in the family ${structure.family}; lora-targets=all-linear does.`,
    });
  }
  const around = { shape, plan, tokens: seqLen };
  let moments = momentsOf(step, around);
  const floorBytes = Math.max(...moments.map((moment) => moment.fixedBytes));
  if (plan.implementation === "eager" && shape.fusedQkv) {
    moments = withOneSample(
      moments,
      momentsOf(trainingStep(shape, plan, seqLen, structure.paramsOutside, true, tower), around),
    );
  }
  return ok(
    assembled(located, {
      step,
      recipe: sized,
      seqLen,
      floorBytes,
      moments,
      assumed: [
        ...unmeasured(sized),
        ...unmeasuredWith(sized, shape),
        ...unmeasuredQuantised(sized, structure.family),
        ...(recipe.loraDropout === undefined ? [] : dropoutOf(sized, structure.family, shape)),
      ],
      notes,
      cautions,
    }),
  );
}

/** Whether something beside the usual is to be said of how loss and cards were taken. */
function isUnusual({ loss, offload, parallel }: Recipe): boolean {
  return loss !== "full" || offload !== "none" || parallel === "zero1" || parallel === "zero2";
}

/** The recipe that runs where the asked one cannot, with the sentence that says so. */
function asSized(
  recipe: Recipe,
  shape: DecoderShape,
  noFlash: boolean,
): { readonly sized: Recipe; readonly note: string | null } {
  if (shape.scan !== undefined && (recipe.attention !== "sdpa" || recipe.paddingMask)) {
    return {
      sized: { ...recipe, attention: "sdpa", paddingMask: false },
      note: "The family has no attention, and a padding mask is a number a token.",
    };
  }
  if (recipe.attention === "flash" && noFlash) {
    return {
      sized: { ...recipe, attention: shape.softcap.attention ? "eager" : "sdpa" },
      note: "Flash attention has no place for image tokens that see each other both ways; the model is sized without it.",
    };
  }
  if (recipe.attention === "flash" && recipe.precision === "fp32" && recipe.loraRank === null) {
    return {
      sized: { ...recipe, attention: "sdpa" },
      note: "The flash kernel takes 16-bit operands only; fp32 is sized with sdpa.",
    };
  }
  if (recipe.attention === "flash" && shape.alibi && shape.callsKernelDirectly) {
    return {
      sized: { ...recipe, attention: "sdpa" },
      note: "Flash attention has no ALiBi; the model is sized with sdpa.",
    };
  }
  if (recipe.attention === "sdpa" && shape.softcap.attention) {
    return {
      sized: { ...recipe, attention: "eager" },
      note: "Soft-capped scores have no sdpa kernel; the model is sized with eager.",
    };
  }
  if (recipe.attention === "sdpa" && shape.eagerOnly) {
    return {
      sized: { ...recipe, attention: "eager" },
      note: "The family has no sdpa attention; the model is sized with eager.",
    };
  }
  if (recipe.attention === "sdpa" && shape.sinks) {
    return {
      sized: { ...recipe, attention: "eager" },
      note: "Attention sinks have no sdpa kernel; the model is sized with eager.",
    };
  }
  if (recipe.attention !== "eager" && shape.alibi && !shape.callsKernelDirectly) {
    return {
      sized: { ...recipe, attention: "eager" },
      note: `The family has no ${recipe.attention} attention with ALiBi; the model is sized with eager.`,
    };
  }
  return { sized: recipe, note: null };
}

/** Families whose flash attention the step measurer cannot run. */
function neverFlashed(shape: DecoderShape): boolean {
  return !!(shape.callsKernelDirectly || shape.sinks || shape.eagerOnly || shape.latent?.index);
}

function dropoutOf(recipe: Recipe, family: string, { adaptsExperts }: DecoderShape): string[] {
  const { unmeasuredDropout } = require("./unusual.ts") as typeof import("./unusual.ts");
  return unmeasuredDropout(recipe, family, adaptsExperts ?? false);
}

/** What was never measured for this family; the step measurer cannot run it. */
function unmeasuredWith(recipe: Recipe, shape: DecoderShape): string[] {
  const said: string[] = [];
  if (recipe.attention === "flash" && neverFlashed(shape)) {
    said.push("Flash attention of this family was never measured.");
  }
  if (recipe.loraRank !== null && recipe.loraTargets === "all-linear" && shape.experts?.router.linear) {
    said.push("LoRA on all linear layers does not run with this family's router and was never measured.");
  }
  if (recipe.loraRank !== null && shape.scan !== undefined) {
    said.push("LoRA of this family was never measured.");
  }
  if (recipe.checkpointing === "full" && shape.valueNorm) {
    said.push(
      "With checkpointing this family keeps the keys and values of two layers; they are not counted.",
    );
  }
  if (recipe.checkpointing === "full" && shape.eagerOnly) {
    said.push("Checkpointing of this family was never measured.");
  }
  if (recipe.offload === "all" && (shape.delta ?? shape.convolution ?? shape.scan)) {
    said.push("Offloading the parameters of this family was never measured.");
  }
  if (recipe.checkpointing === "full" && shape.fusedSplit === "shared-index") {
    said.push("Checkpointing of this family's shared keys was never measured.");
  }
  return said;
}
