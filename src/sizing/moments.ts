import { grouped } from "../lib/units.ts";
import type { DecoderShape } from "../model/types.ts";
import type { Peak } from "./envelope.ts";
import { KINDS, type Kind } from "./memory.ts";
import type { Plan } from "./recipe.ts";
import type { StepResult } from "./step.ts";
import type { Moment, Term } from "./types.ts";

/** What a moment is explained with. */
export interface Circumstances {
  readonly shape: Pick<DecoderShape, "layers" | "vocab">;
  readonly plan: Plan;
  readonly tokens: number;
}

/** Phases of the step as moments are told to people. */
const PHASES: Readonly<Record<string, string>> = {
  forward: "the forward of the last layer",
  "end-of-forward": "the end of the forward: the logits in both precisions, before any gradient",
  loss: "the backward of the loss: all activations and three fp32 copies of the logits live, no gradients yet",
  backward: "the backward of a layer",
  "softmax-backward": "the backward of a layer's softmax over the score matrix",
  recompute: "the second forward and the backward of one checkpointed layer",
  "end-of-backward": "the end of backward: all gradients, and those of the embedding table still apart",
  "optimizer-step": "the optimizer step: weights, gradients and optimizer state",
};

/** What a fused loss makes of two of them: there are no whole logits. */
const FUSED_PHASES: Readonly<Record<string, string>> = {
  "end-of-forward": "head and loss in one: all activations, a chunk of logits, and the gradients they give",
  loss: "the backward of the fused loss: all activations, and the gradients that it made in forward",
};

/** The moments of a step: the optimizer step, then by rising slope each that is highest at some batch. */
export function momentsOf(step: StepResult, around: Circumstances): Moment[] {
  const moments = [momentOf(step.optimizerStep, step, around)];
  for (const peak of step.peaks) {
    if (peak.phase !== "optimizer-step") moments.push(momentOf(peak, step, around, moments));
  }
  return moments;
}

/**
 * Eager attention over a fused q, k, v needs more for one sample than its line says: its values are then a view
 * that keeps the whole of q, k, v, where those of several samples are copied. One more line tells that: through
 * what one sample needs and what two do, so it is highest at one sample only.
 */
export function withOneSample(moments: readonly Moment[], single: readonly Moment[]): Moment[] {
  const at = (lines: readonly Moment[], samples: number) =>
    Math.max(...lines.map((line) => line.fixedBytes + line.perSampleBytes * samples));
  const one = at(single, 1);
  const slope = at(moments, 2) - one;
  if (one <= at(moments, 1) || slope < 0) return [...moments];
  const highest = single.reduce((a, b) => (at([b], 1) > at([a], 1) ? b : a));
  const fixedBytes = one - slope;
  const rest = {
    name: "one sample",
    formula: "what one sample needs beyond its share of several: q, k and v are kept whole",
    fixedBytes: fixedBytes - highest.fixedBytes,
    perSampleBytes: slope - highest.perSampleBytes,
  };
  return [
    ...moments,
    {
      name: "one-sample",
      what: `${highest.what}, of a single sample`,
      fixedBytes,
      perSampleBytes: slope,
      get terms() {
        return [...highest.terms, rest];
      },
    },
  ];
}

/** A phase can be highest twice, at small batches and at large ones: the later one is `loss-2`. */
function momentOf(
  peak: Peak,
  step: StepResult,
  around: Circumstances,
  before: readonly Moment[] = [],
): Moment {
  const name = nameOf(peak);
  const what = (around.plan.fusedLoss ? FUSED_PHASES[name] : undefined) ?? PHASES[name] ?? name;
  let times = 1;
  for (const moment of before) if (moment.what === what) times++;
  let terms: Term[] | null = null;
  return {
    name: times === 1 ? name : `${name}-${times}`,
    what,
    fixedBytes: peak.fixed,
    perSampleBytes: peak.per,
    // A submit shows none; only explanations do.
    get terms() {
      terms ??= termsOf(peak, step, around);
      return terms;
    },
  };
}

function termsOf(peak: Peak, step: StepResult, around: Circumstances): Term[] {
  const terms: Term[] = [];
  for (const [kind, place] of Object.entries(KINDS) as [Kind, number][]) {
    const fixedBytes = peak.byKind[2 * place] ?? 0;
    const perSampleBytes = peak.byKind[2 * place + 1] ?? 0;
    if (fixedBytes <= 0 && perSampleBytes <= 0) continue;
    terms.push({
      name: kind,
      formula: formulaOf(kind, fixedBytes, perSampleBytes, step, around),
      fixedBytes,
      perSampleBytes,
    });
  }
  return terms;
}

/** A peak of backward that holds a score matrix beside gradients is the softmax's. */
function nameOf({ phase, byKind }: Peak): string {
  if (phase !== "backward") return phase;
  const ofSoftmax = byKind[2 * KINDS.scores + 1]! > 0 && byKind[2 * KINDS.backward + 1]! > 0;
  return ofSoftmax ? "softmax-backward" : phase;
}

function quantisedFormula(step: StepResult, plan: Plan, base: number, trainedWidth: number): string {
  const { params, bytes } = step.packed ?? { params: 0, bytes: 0 };
  const bits = plan.quantised?.how === "nf4" ? 4 : 8;
  return (
    `${grouped(params)} frozen parameters of linear layers in ${bits} bits, ${grouped(bytes)} bytes with their scales, ` +
    `+ ${grouped(base - params)} others x ${plan.weightWidth} bytes + ${grouped(step.trainable)} of adapters x ${trainedWidth}`
  );
}

function formulaOf(
  kind: Kind,
  fixedBytes: number,
  perSampleBytes: number,
  step: StepResult,
  { shape, plan, tokens }: Circumstances,
): string {
  const base = step.params - (plan.trainBase ? 0 : step.trainable);
  const trainedWidth = plan.adapter?.width ?? plan.weightWidth;
  const perToken = grouped(perSampleBytes / tokens);
  const perLayer = grouped(perSampleBytes / tokens / shape.layers);
  // A position bias and its mask are shared by all samples.
  const shared = perSampleBytes === 0 ? `${grouped(fixedBytes)} bytes whatever the batch` : null;
  const ofLayers = (what: string) =>
    shared !== null
      ? `${what}: ${shared}`
      : `${what}: ${perLayer} bytes a token and layer x ${shape.layers} layers x ${tokens} tokens`;
  switch (kind) {
    case "weights":
      if (plan.quantised !== null) return quantisedFormula(step, plan, base, trainedWidth);
      return plan.adapter === null
        ? `${grouped(step.params)} parameters x ${plan.weightWidth} bytes`
        : `${grouped(base)} frozen parameters x ${plan.weightWidth} bytes + ${grouped(step.trainable)} of adapters x ${trainedWidth}`;
    case "optimizer":
      if (plan.eightBitStates)
        return `2 states x ${grouped(step.trainable)} trained parameters x 1 byte with their scales, of embeddings and small ones x 4 bytes`;
      return plan.factoredStates
        ? "row and column means of squared gradients in fp32, of vectors all"
        : `${plan.states} states x ${grouped(step.trainable)} trained parameters x ${trainedWidth} bytes${sharedBy(plan.stateCards)}`;
    case "gradients":
      return `gradients of ${grouped(fixedBytes / trainedWidth)} parameters x ${trainedWidth} bytes${plan.gradientCards > 1 ? ", this card's share or on their way to it" : ""}`;
    case "buckets":
      return `DDP's buckets: ${grouped(step.trainable)} gradients once more x ${trainedWidth} bytes`;
    case "casts":
      if (plan.quantised !== null)
        return `16-bit copies of weights for their products, quantised ones made whole: ${grouped(fixedBytes / 2)} x 2 bytes`;
      return `16-bit copies that autocast made of ${grouped(fixedBytes / 2)} weights x 2 bytes`;
    case "inputs":
      return `what the model is fed, labels and mask: ${perToken} bytes a token x ${tokens} tokens`;
    case "embedding":
      return `output of the embedding: ${perToken} bytes a token x ${tokens} tokens`;
    case "norms":
      return ofLayers("inputs and results of norms");
    case "attention":
      return ofLayers("queries, keys, values, results and their casts");
    case "scores":
      return ofLayers("score matrices of all heads");
    case "feed-forward":
      return ofLayers("inner width of the feed-forward blocks and casts of their inputs");
    case "residual":
      return ofLayers("the residual stream between blocks, and dropout masks");
    case "head":
      if (plan.fusedLoss)
        return `logits of a chunk of tokens, and the labels: ${perToken} bytes a token x ${tokens} tokens`;
      return `logits and what the loss keeps: ${perToken} bytes a token for ${grouped(shape.vocab)} words x ${tokens} tokens`;
    case "mask":
      return `attention masks: ${shared ?? `${perToken} bytes a token x ${tokens} tokens`}`;
    case "gathered":
      return "weights brought from host memory for a layer, norm or head while it runs, and gradients on their way there";
    case "backward":
      return fixedBytes > perSampleBytes
        ? "gradients of weights on their way, and gradients of activations"
        : `gradients of activations and work space of the backward: ${perToken} bytes a token x ${tokens} tokens`;
  }
}

function sharedBy(cards: number): string {
  return cards === 1 ? "" : `, shared by ${cards} cards`;
}
