import { decoderGroups } from "../decoder.ts";
import { countParams, type StructureExtras } from "../family.ts";
import { gatedMlp } from "../parts.ts";
import type { DecoderShape, LayerRun, ParamGroup, RouterShape, Structure } from "../types.ts";
import { partsStructure } from "./base.ts";

/** The feed-forward side of a mixture of experts. Widths are those of one expert. */
export interface Experts {
  /** Layers with experts, and layers with one dense block instead. */
  readonly sparseLayers: number;
  readonly denseLayers: number;
  readonly denseWidth: number;
  readonly experts: number;
  readonly perToken: number;
  readonly width: number;
  /** Width of the expert that every token uses; 0 without one. */
  readonly sharedWidth: number;
  /** Parameters beside the matrix of the router, a layer: its bias, the shared expert's gate. */
  readonly routerExtra?: number;
  /** Experts' own biases (gpt_oss). */
  readonly bias?: boolean;
  /** Biases of the dense blocks and the shared expert. */
  readonly denseBias?: boolean;
  /** How tokens find their experts, where it departs from a softmax over all that is kept in fp32. */
  readonly router?: Partial<RouterShape>;
  /** The shared expert has a gate of its own (qwen2_moe). */
  readonly sharedGated?: boolean;
  /** The shared block runs before the experts (ernie). */
  readonly sharedFirst?: boolean;
  /** The shared block's gate and up are one matrix (granite). */
  readonly sharedFused?: boolean;
  /** See `clamped` of the shape. */
  readonly clamped?: boolean;
  /** See `everyToken` of the shape. */
  readonly everyToken?: boolean;
  /** See `adaptsExperts` of the shape. */
  readonly adapted?: boolean;
}

/** The usual router: softmax over all experts, weights in fp32 (mixtral, but not divided by their sum). */
const USUAL_ROUTER: RouterShape = {
  scores: "softmax",
  normalized: false,
  scaled: false,
  returns: "scores",
  full: false,
  bias: false,
  groups: null,
};

/** The shape with its layers' experts; layers with one dense block come first. */
export function withExperts(shape: DecoderShape, side: Experts): DecoderShape {
  const mlpBias = side.denseBias ?? shape.bias.mlp;
  const experts = {
    count: side.experts,
    perToken: Math.min(side.perToken, side.experts),
    width: side.width,
    bias: side.bias ?? false,
    shared:
      side.sharedWidth > 0
        ? {
            width: side.sharedWidth,
            gated: side.sharedGated ?? false,
            fused: side.sharedFused ?? false,
            first: side.sharedFirst ?? false,
          }
        : null,
    clamped: side.clamped ?? false,
    everyToken: side.everyToken ?? false,
    router: { ...USUAL_ROUTER, ...side.router },
  };
  const bias = { ...shape.bias, mlp: mlpBias };
  const sparse = { ...shape, bias, experts, adaptsExperts: side.adapted ?? false };
  if (side.denseLayers === 0) return sparse;
  const differs = { experts: undefined, ffn: side.denseWidth };
  if (side.sparseLayers === 0) return { ...sparse, ...differs };
  const window = shape.windows[0]?.window ?? null;
  const windows: LayerRun[] = [
    { layers: side.denseLayers, window, differs },
    { layers: side.sparseLayers, window },
  ];
  return { ...sparse, windows };
}

/** Parameters of the experts' side, by part. */
export function expertGroups(hidden: number, side: Experts): ParamGroup[] {
  const router = hidden * side.experts + (side.routerExtra ?? 0);
  return [
    {
      name: "routed experts",
      count: side.sparseLayers * side.experts * gatedMlp(hidden, side.width, side.bias),
    },
    { name: "router", count: side.experts > 0 ? side.sparseLayers * router : 0 },
    {
      name: "shared feed-forward",
      count:
        side.sharedWidth > 0 ? side.sparseLayers * gatedMlp(hidden, side.sharedWidth, side.denseBias) : 0,
    },
    {
      name: "dense feed-forward",
      count: side.denseLayers > 0 ? side.denseLayers * gatedMlp(hidden, side.denseWidth, side.denseBias) : 0,
    },
  ];
}

/** Parameters used by one token: all but the experts that it is not sent to. */
export function activeOf(groups: readonly ParamGroup[], side: Experts): number {
  const routed = groups.find((group) => group.name === "routed experts")?.count ?? 0;
  const used = Math.min(side.perToken, side.experts);
  return countParams(groups) - (side.experts > 0 ? (routed / side.experts) * (side.experts - used) : 0);
}

/** What sending a token to one expert and back holds (its copy, its weighted answer), as a part of the hidden size. */
const ROUTING_WIDTH = 0.75;

/** Width of the dense block that holds what a token's experts, their routing and the shared one hold. */
export function tokenWidth(side: Experts, hidden: number): number {
  const expert = side.width + Math.round(ROUTING_WIDTH * hidden);
  const width = Math.min(side.perToken, side.experts) * expert + side.sharedWidth;
  return Math.max(1, side.sparseLayers >= side.denseLayers ? width : side.denseWidth);
}

/** A decoder whose attention side is `shape` and whose feed-forward side is a mixture of experts. */
export function moeStructure(
  family: string,
  shape: DecoderShape,
  side: Experts,
  extras: StructureExtras = {},
): Structure {
  const groups = [
    ...decoderGroups(shape).filter((group) => group.name !== "feed-forward"),
    ...expertGroups(shape.hidden, side),
    ...(extras.outside ?? []),
  ];
  return partsStructure(family, groups, withExperts(shape, side), {
    ...extras,
    paramsOutside: extras.paramsOutside ?? countParams(extras.outside ?? []),
    activeParams: activeOf(groups, side),
  });
}
