import type { ConfigReader } from "./config.ts";
import { decoderGroups } from "./decoder.ts";
import type { StackModel } from "./stacks.ts";
import type { DecoderShape, ParamGroup, Structure } from "./types.ts";

/** Reads the configs of one architecture family. Pure; knows the class defaults of its own config class only. */
export interface FamilyReader {
  /** Values of `model_type` it answers for. */
  readonly types: readonly string[];
  /** Throws `GateError("config-invalid")` naming the key where a needed one is missing or senseless. */
  read(config: ConfigReader): Structure;
}

/** What a family knows beside its decoder. */
export interface StructureExtras {
  readonly contextTokens?: number | null;
  /** Parameters that no activation is walked for (a tower, routed experts), by name. */
  readonly outside?: readonly ParamGroup[];
  /** Parameters outside the walked decoder, where its shape tells more than `decoderGroups` counts. */
  readonly paramsOutside?: number;
  /** Parameters used by one token where they are fewer than all. */
  readonly activeParams?: number;
  /** What is walked instead of the decoder. */
  readonly stacks?: StackModel;
  readonly assumed?: readonly string[];
  readonly notes?: readonly string[];
}

/** Parameters in all groups. */
export function countParams(groups: readonly ParamGroup[]): number {
  let total = 0;
  for (const group of groups) total += group.count;
  return total;
}

/** The structure of a decoder-only model: its groups and counts follow from the shape. */
export function decoderStructure(
  family: string,
  shape: DecoderShape,
  extras: StructureExtras = {},
): Structure {
  const outside = extras.outside ?? [];
  const groups = [...decoderGroups(shape), ...outside];
  const params = countParams(groups);
  return {
    family,
    params,
    activeParams: extras.activeParams ?? params,
    groups,
    decoder: shape,
    paramsOutside: countParams(outside),
    contextTokens: extras.contextTokens ?? null,
    assumed: extras.assumed ?? [],
    notes: extras.notes ?? [],
  };
}
