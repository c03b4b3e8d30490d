import type { Recipe } from "../../facts/types.ts";
import { fail, ok, type Result } from "../../lib/result.ts";
import type { StackModel } from "../../model/stacks.ts";
import type { LocatedStructure } from "../../model/types.ts";
import { assembled } from "../assemble.ts";
import { momentsOf, withOneSample } from "../moments.ts";
import { quantisedNotes, unmeasuredQuantised } from "../quantised.ts";
import { planOf, unmeasured } from "../recipe.ts";
import type { Sizing, Unsized } from "../types.ts";
import { stackStep } from "./step.ts";

/** The training peak of a model of stacks; `seqLen` tokens for each stack that is fed text. Pure. */
export function sizeStacks(
  located: LocatedStructure,
  stacks: StackModel,
  recipe: Recipe,
  seqLen: number,
  cards: number,
): Result<Sizing, Unsized> {
  const { structure } = located;
  const refused = notSized(recipe, stacks);
  if (refused !== null) return fail(refused);
  const notes = [...structure.notes];
  const { sized, said, cautions } = asSized(recipe, stacks);
  notes.push(...said);
  if (recipe.loss === "fused")
    notes.push("The model has no logits of a vocabulary, so the fused loss changes nothing.");
  const context = longestOf(stacks);
  if (stacks.limits.lengthless) notes.push("A sample is one image; the sequence length is not used.");
  else if (context !== null && seqLen > context)
    notes.push(`The model takes a shorter text: ${context} of ${seqLen} tokens.`);
  const rows = positionsOf(stacks);
  if (rows !== null && seqLen > rows)
    cautions.push(`The model has ${rows} learned positions; ${seqLen} tokens do not run.`);
  notes.push(...cautions, ...quantisedNotes(sized, { experts: false, ownLinear: false }));
  const plan = planOf(sized, cards);
  const tokens = context === null ? seqLen : Math.min(seqLen, context);
  const { sharingNotes, unmeasuredDropout } = require("../unusual.ts") as typeof import("../unusual.ts");
  notes.push(...sharingNotes({ ...sized, loss: "full" }, cards));
  const step = stackStep(stacks, plan, tokens, structure.params);
  const layers = stacks.stacks.reduce(
    (sum, one) => sum + one.runs.reduce((all, run) => all + run.layers, 0),
    0,
  );
  const around = {
    shape: { layers, vocab: stacks.head.kind === "vocabulary" ? stacks.head.vocab : 0 },
    plan,
    tokens,
  };
  let moments = momentsOf(step, around);
  const floorBytes = Math.max(...moments.map((moment) => moment.fixedBytes));
  if (plan.implementation === "eager" && stacks.stacks.some(({ block }) => block.attention.rotary)) {
    const one = stackStep(stacks, plan, tokens, structure.params, true);
    moments = withOneSample(moments, momentsOf(one, around));
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
        ...unmeasuredWith(sized, stacks),
        ...unmeasuredQuantised(sized, structure.family),
        ...unmeasuredDropout(sized, structure.family, false),
      ],
      notes,
      cautions,
    }),
  );
}

/** What is sized of decoders only. */
function notSized(recipe: Recipe, { head }: StackModel): Unsized | null {
  const reason = (what: string): Unsized => ({
    reason: "recipe-not-sized",
    message: `${what} is not sized by this build for encoders, encoder-decoders and vision.`,
  });
  if (recipe.offload === "all") return reason("Offloading of parameters");
  return recipe.loss === "fused" && head.kind === "vocabulary" ? reason("A fused loss") : null;
}

/** Most tokens that the stacks take where a longer text is cut; null where none is. */
function longestOf({ stacks }: StackModel): number | null {
  let context: number | null = null;
  for (const { input } of stacks)
    if (input.kind === "text" && input.longest !== null)
      context = Math.min(context ?? input.longest, input.longest);
  return context;
}

/** Learned positions of the stacks fed with text that is not cut. */
function positionsOf({ stacks }: StackModel): number | null {
  let rows: number | null = null;
  for (const { input } of stacks) {
    if (input.kind !== "text" || input.positions === null || input.longest !== null) continue;
    const usable = input.positions.rows - input.positions.reserved;
    rows = Math.min(rows ?? usable, usable);
  }
  return rows;
}

/** The recipe that runs where the asked one cannot, with the sentences that say so. */
function asSized(recipe: Recipe, { limits }: StackModel) {
  const said: string[] = [];
  const cautions: string[] = [];
  let sized = recipe;
  if (limits.eagerOnly && sized.attention !== "eager") {
    said.push("The family's attention has no kernel; it is sized with eager.");
    sized = { ...sized, attention: "eager" };
  }
  if (limits.noFlash && sized.attention === "flash") {
    said.push("The family has no flash attention; it is sized with sdpa.");
    sized = { ...sized, attention: "sdpa" };
  }
  if (sized.attention === "flash" && sized.precision === "fp32" && sized.loraRank === null) {
    said.push("The flash kernel takes 16-bit operands only; fp32 is sized with sdpa.");
    sized = { ...sized, attention: "sdpa" };
  }
  if (limits.noCheckpointing && sized.checkpointing === "full") {
    cautions.push("transformers refuses to checkpoint this family; it is sized without checkpointing.");
    sized = { ...sized, checkpointing: "none" };
  }
  return { sized, said, cautions };
}

/** What was never measured for this family; the step measurer cannot run it. */
function unmeasuredWith(recipe: Recipe, { limits }: StackModel): string[] {
  if (recipe.attention === "flash" && limits.unmeasured.includes("flash"))
    return ["Flash attention of this family was never measured."];
  if (recipe.precision === "amp-fp16") return ["Precision amp-fp16 was never measured for this family."];
  if (recipe.optimizer === "adafactor" || recipe.optimizer === "lion")
    return [`The optimizer ${recipe.optimizer} was never measured for this family.`];
  if (recipe.loraRank !== null && limits.unmeasured.includes("lora"))
    return ["LoRA of this family was never measured."];
  return [];
}
