import { DEFAULT_RECIPE } from "./recipe.ts";
import type { Line, Moment, Sizing } from "./types.ts";

/** Bytes of a line at a number of samples. */
export function bytesAt(line: Line, samples: number): number {
  return line.fixedBytes + line.perSampleBytes * samples;
}

/** The moment in force at a number of samples: the one that needs most. */
export function lineAt(sizing: Sizing, samples: number): Moment {
  let highest = sizing.moments[0]!;
  for (const moment of sizing.moments)
    if (bytesAt(moment, samples) > bytesAt(highest, samples)) highest = moment;
  return highest;
}

/** The training peak in bytes at a number of samples over all cards. */
export function peakBytes(sizing: Sizing, samples: number): number {
  return bytesAt(lineAt(sizing, samples), samples);
}

/** What an external source says of a job: one line, of which nothing more is known. */
export interface ExternalLine extends Line {
  readonly source: "cli" | "hosted";
  readonly model: string;
  readonly seqLen: number;
  readonly params?: number | null;
  readonly recipe?: Sizing["recipe"];
  readonly notes?: readonly string[];
}

/** A sizing of one line: its floor and its state are its fixed part. */
export function lineSizing(external: ExternalLine): Sizing {
  const { fixedBytes, perSampleBytes } = external;
  const line = { fixedBytes, perSampleBytes };
  const floorBytes = Math.max(0, fixedBytes);
  const formula = "the straight line through the peaks that the external source gives";
  return {
    model: external.model,
    family: null,
    source: external.source,
    revision: null,
    structureFrom: null,
    params: external.params ?? null,
    trainableParams: null,
    activeParams: null,
    recipe: external.recipe ?? DEFAULT_RECIPE,
    seqLen: external.seqLen,
    floorBytes,
    stateBytes: floorBytes,
    moments: [
      {
        name: "external",
        what: "the peak that the external source gives",
        ...line,
        terms: [{ name: "external sizing", formula, ...line }],
      },
    ],
    assumed: [],
    notes: external.notes ?? [],
  };
}
