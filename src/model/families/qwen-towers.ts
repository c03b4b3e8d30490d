import type { ConfigReader } from "../config.ts";
import type { PatchInput, StackRun } from "../stacks.ts";
import { fitTower } from "../tower-fit.ts";
import type { Tower } from "../tower-types.ts";
import { FIXED, type TowerReader } from "./image-towers.ts";
import { bertBlock, encoder, PLAIN_ATTENTION, stackActivation } from "./stack-parts.ts";

/** Patches to a side of an image, of towers that take any: as many as Qwen3's table has positions. */
const ANY_SIDE = 48;
const INT32 = 4;

/** Qwen's towers: images of any size, rows of all of them in one, rotary positions. */
export function qwenTower(kind: "qwen2" | "qwen2_5" | "qwen3" | "qwen3_5"): TowerReader {
  const third = kind.startsWith("qwen3");
  return ({ vision }) => {
    const hidden =
      kind === "qwen2" ? vision.size("embed_dim", 1280) : vision.size("hidden_size", third ? 1152 : 3584);
    const output = kind === "qwen2" ? vision.size("hidden_size", 3584) : vision.size("out_hidden_size", 3584);
    const ffn =
      kind === "qwen2"
        ? Math.trunc(hidden * vision.ratio("mlp_ratio", 4))
        : vision.size("intermediate_size", third ? 4304 : 3420);
    const { activation, assumed } = stackActivation(
      vision,
      "hidden_act",
      { qwen2: "quick_gelu", qwen2_5: "silu", qwen3: "gelu_pytorch_tanh", qwen3_5: "gelu_pytorch_tanh" }[
        kind
      ],
    );
    if (assumed.length > 0) return null;
    const norm = kind === "qwen2_5" ? "rms" : "layer";
    const merge = vision.size("spatial_merge_size", 2);
    const depth = vision.size("depth", third ? 27 : 32);
    const patch = vision.size(["patch_size", "spatial_patch_size"], third ? 16 : 14);
    const pixels = vision.size("in_channels", 3) * vision.size("temporal_patch_size", 2) * patch ** 2;
    const joined = Math.floor(ANY_SIDE / merge);
    const side = joined * merge;
    const windowSide =
      kind === "qwen2_5" ? Math.floor(vision.size("window_size", 112) / merge / patch) : null;
    const full = listOf(vision, "fullatt_block_indexes", [7, 15, 23, 31]);
    const deep = kind === "qwen3" ? listOf(vision, "deepstack_visual_indexes", [8, 16, 24]) : [];
    if (deep.some((at) => at >= depth)) return null;
    const { runs, ends } = layerRuns(
      depth,
      new Set(deep),
      (layer) => windowSide !== null && !full.includes(layer),
    );
    const block = bertBlock(
      { hidden, heads: vision.size("num_heads", 16), ffn },
      {
        norm,
        placement: "pre",
        attention: { ...PLAIN_ATTENTION, softmaxFull: true, rotary: "packed" },
        mlp: kind === "qwen2_5" ? "gated" : "plain",
        activation,
        adapted: { inputs: false, output: false },
      },
    );
    const input: PatchInput = {
      kind: "patches",
      patches: side ** 2,
      pixels,
      side: patch,
      image: side ** 2 * pixels,
      bias: third,
      classToken: false,
      registers: 0,
      maskToken: false,
      norm: null,
      dropout: false,
      ...(third
        ? {
            positions: "mixed" as const,
            positionRows: vision.size("num_position_embeddings", 2304),
            unhooked: true,
          }
        : { positions: "none" as const }),
      ...(windowSide === null ? {} : { reordered: true }),
    };
    const merger = {
      kind: "merger" as const,
      norm: norm as "rms" | "layer",
      inner: hidden,
      normsJoined: false,
      width: hidden * merge ** 2,
      output,
      reorders: windowSide !== null,
    };
    const largest: Tower = {
      ...FIXED,
      stack: encoder(input, block, runs),
      tokens: joined ** 2,
      joinedSide: merge,
      windowSide,
      taken: null,
      projector: merger,
      deepstack:
        deep.length === 0
          ? null
          : { after: deep.map((at) => ends.indexOf(at)), merger: { ...merger, normsJoined: true } },
      masksText: false,
      tokenBytes: INT32,
      image: `of ${side * patch} x ${side * patch} pixels`,
    };
    return fitTower(largest, largest.tokens);
  };
}

/** Layers as runs of one kind, each of `stops` the last of its run; with the last layer of each run. */
function layerRuns(layers: number, stops: ReadonlySet<number>, windowed: (layer: number) => boolean) {
  const runs: (StackRun & { layers: number })[] = [];
  const ends: number[] = [];
  for (let layer = 0; layer < layers; layer++) {
    const cut = windowed(layer);
    const last = runs.at(-1);
    if (last !== undefined && (last.chunk !== undefined) === cut && !stops.has(layer - 1)) {
      last.layers += 1;
      ends[ends.length - 1] = layer;
      continue;
    }
    runs.push({ layers: 1, shared: false, window: null, normed: true, ...(cut ? { chunk: 1 } : {}) });
    ends.push(layer);
  }
  return { runs, ends };
}

function listOf(config: ConfigReader, key: string, fallback: readonly number[]): readonly number[] {
  const listed = config.list(key);
  return listed === null ? fallback : listed.filter((one): one is number => typeof one === "number");
}
