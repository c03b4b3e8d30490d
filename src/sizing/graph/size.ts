import type { Recipe } from "../../facts/types.ts";
import { fail, ok, type Result } from "../../lib/result.ts";
import { grouped } from "../../lib/units.ts";
import type { GraphModel } from "../../model/graph-types.ts";
import type { LocatedStructure } from "../../model/types.ts";
import { assembled } from "../assemble.ts";
import { momentsOf } from "../moments.ts";
import { planOf, unmeasured } from "../recipe.ts";
import type { Moment, Sizing, Unsized } from "../types.ts";
import { graphStep } from "./step.ts";

const LOSSES = {
  tokens: "cross entropy of every token",
  classes: "cross entropy of a row of scores",
  squares: "the mean square to labels of the result's shape",
} as const;

/** The training peak of a graph; `seqLen` tokens a sample where its text has a free length. Pure. */
export function sizeGraph(
  located: LocatedStructure,
  graph: GraphModel,
  recipe: Recipe,
  seqLen: number,
  cards = 1,
): Result<Sizing, Unsized> {
  const refused = unsizedFor(recipe);
  if (refused !== null) return fail({ reason: "recipe-not-sized", message: refused });
  const { structure } = located;
  const notes = [...structure.notes];
  const cautions: string[] = [];
  let sized = recipe;
  if (sized.attention === "flash" && sized.precision === "fp32") {
    sized = { ...sized, attention: "sdpa" };
    notes.push("The flash kernel takes 16-bit operands only; fp32 is sized with sdpa.");
  }
  if (graph.tokens !== null && structure.contextTokens !== null && seqLen > structure.contextTokens)
    cautions.push(`The model has ${structure.contextTokens} learned positions; ${seqLen} tokens do not run.`);
  if (graph.tokens !== null && graph.tokens !== seqLen)
    notes.push(`The graph was traced with ${graph.tokens} tokens and is sized with ${seqLen}.`);
  const { sharingNotes } = require("../unusual.ts") as typeof import("../unusual.ts");
  notes.push(...sharingNotes(sized, cards), ...cautions);
  const plan = planOf(sized, cards);
  const step = graphStep(graph, plan, seqLen);
  notes.push(`The loss is taken to be ${LOSSES[step.lossKind]}.`);
  const assumed = [...unmeasured(sized)];
  if (step.between.length > 0)
    assumed.push(
      `Functions between modules are not in a graph; by the shapes around them they are taken to be ${step.between.join(", ")}.`,
    );
  const around = { shape: { layers: 1, vocab: 0 }, plan, tokens: seqLen };
  const moments = momentsOf(step, around).map(inSamples);
  const floorBytes = Math.max(...moments.map((moment) => moment.fixedBytes));
  const walked = assembled(located, {
    step,
    recipe: sized,
    seqLen,
    floorBytes,
    moments,
    assumed,
    notes,
    cautions,
  });
  return ok(graph.tokens === null ? { ...walked, asTraced: true } : walked);
}

const OF_SAMPLES: Readonly<Record<string, string>> = {
  inputs: "what the model is fed, and labels",
  embedding: "rows of tables, looked up",
  norms: "inputs and results of norms",
  attention: "queries, keys, values, results and their casts",
  scores: "score matrices of all heads",
  "feed-forward": "inputs and results of layers and their casts",
  residual: "sums of branches, and dropout masks",
  head: "the result and what the loss keeps",
  mask: "attention masks",
};

/** A graph has no layers that are alike, and often no tokens: its terms are told by the sample. */
function inSamples(moment: Moment): Moment {
  const { name, fixedBytes, perSampleBytes } = moment;
  return {
    name,
    fixedBytes,
    perSampleBytes,
    what: name.startsWith("loss")
      ? "the backward of the loss: all activations live, no gradients yet"
      : moment.what,
    get terms() {
      return moment.terms.map((term) => {
        const words = OF_SAMPLES[term.name];
        if (words === undefined && !(term.name === "backward" && term.perSampleBytes > term.fixedBytes))
          return term;
        const what = words ?? "gradients of activations and work space of the backward";
        return { ...term, formula: `${what}: ${grouped(term.perSampleBytes)} bytes a sample` };
      });
    },
  };
}

/** Recipes that need to know modules which a graph does not name; null = sized. */
function unsizedFor(recipe: Recipe): string | null {
  if (recipe.loraRank !== null)
    return "LoRA is not sized from a graph: adapters go to modules by name; name the model's config or Hugging Face id instead.";
  if (recipe.checkpointing === "full")
    return "Checkpointing is not sized from a graph, which does not tell what is run again; name the model's config or Hugging Face id instead.";
  if (recipe.loss === "fused")
    return "A fused loss is not sized from a graph, which ends before its loss; name the model's config or Hugging Face id instead.";
  if (recipe.offload === "all")
    return "Offloading of parameters is not sized from a graph, which does not tell what is gathered together; name the model's config or Hugging Face id instead.";
  return null;
}
