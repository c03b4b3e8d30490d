import type { Stack, TextInput } from "../../model/stacks.ts";
import { rounded } from "../memory.ts";
import type { Projection } from "../programs/context.ts";
import type { Leaf, Node, Tensor } from "../tape.ts";
import { dropped, replaced } from "./kernels.ts";
import {
  apply,
  linear,
  matrix,
  normalized,
  parameter,
  type Shop,
  type StackNormModule,
  stackNorm,
  tableOf,
} from "./modules.ts";
import type { StackOps } from "./ops.ts";
import { patches, required, sound } from "./signals.ts";

const INT64 = 8;

/** The modules before a stack's first layer. */
export interface InputModules {
  readonly table: Leaf | null;
  readonly positions: Leaf | null;
  readonly types: Leaf | null;
  readonly norm: StackNormModule | null;
  readonly projection: Projection | null;
  /** Matrices of patches or of the two convolutions, with their biases. */
  readonly convolutions: readonly { readonly weight: Leaf; readonly bias: Leaf | null }[];
  readonly tokens: readonly Leaf[];
}

/** `before` is the table of the stack before, which this one may share. */
export function inputModules(shop: Shop, { input, block }: Stack, before: Leaf | null): InputModules {
  const none = {
    table: null,
    positions: null,
    types: null,
    norm: null,
    projection: null,
    convolutions: [],
    tokens: [],
  };
  const { hidden } = block;
  const normOf = (type: TextInput["norm"], width: number) =>
    type === null ? null : stackNorm(shop, type, width);
  switch (input.kind) {
    case "text": {
      const { width, projection } = input;
      const table = input.sharesTable && before !== null ? before : tableOf(shop, input.vocab, width);
      return {
        ...none,
        table,
        positions: positionTable(shop, input, width),
        types: input.tokenTypes === 0 ? null : tableOf(shop, input.tokenTypes, width),
        norm: normOf(input.norm, projection?.beforeNorm ? hidden : width),
        projection: projection === null ? null : linear(shop, width, hidden, projection.bias),
      };
    }
    case "patches": {
      const own = [
        ...(input.classToken ? [parameter(shop, hidden)] : []),
        ...(input.registers > 0 ? [parameter(shop, input.registers * hidden)] : []),
        ...(input.maskToken ? [parameter(shop, hidden)] : []),
      ];
      return {
        ...none,
        positions:
          input.positions === "none"
            ? null
            : matrix(shop, input.positionRows ?? input.patches + (input.classToken ? 1 : 0), hidden),
        norm: normOf(input.norm, hidden),
        projection: input.unfolded ? linear(shop, input.pixels, hidden, input.bias) : null,
        convolutions: input.unfolded
          ? []
          : [
              {
                weight: kernel(shop, input.pixels, input.side ?? Math.sqrt(input.pixels / 3), hidden),
                bias: input.bias ? parameter(shop, hidden) : null,
              },
            ],
        tokens: own,
      };
    }
    case "sound":
      return {
        ...none,
        // A table of sines that is not trained.
        positions: shop.ops.leaf(input.positions * hidden, shop.weightWidth, false),
        convolutions: [input.mels, hidden].map((channels) => ({
          weight: parameter(shop, 3 * channels * hidden, (3 + channels) * hidden),
          bias: parameter(shop, hidden),
        })),
      };
  }
}

/** The table of positions, where it is one of parameters. */
function positionTable(shop: Shop, { positions }: TextInput, width: number): Leaf | null {
  if (positions === null || positions.buffer) return null;
  if (!positions.frozen) return tableOf(shop, positions.rows, width);
  return shop.ops.leaf(positions.rows * width, shop.weightWidth, false);
}

/** Bytes of positions that are a buffer beside the parameters. */
export function bufferBytes({ input }: Stack, weightWidth: number): number {
  return input.kind === "text" && input.positions?.buffer
    ? rounded(input.positions.rows * input.width * weightWidth)
    : 0;
}

/** A convolution's kernel, of which an optimizer that keeps means keeps those over its last two sides. */
function kernel(shop: Shop, pixels: number, side: number, hidden: number): Leaf {
  return parameter(shop, pixels * hidden, 2 * Math.round(pixels / side) * hidden);
}

/** Tokens of a sample that a stack sees, given those of a text. */
export function tokensOf({ input }: Stack, textTokens: number): number {
  if (input.kind === "sound") return input.positions;
  if (input.kind === "patches")
    return (input.tiles ?? 1) * (input.patches + (input.classToken ? 1 : 0)) + input.registers;
  return input.longest === null ? textTokens : Math.min(textTokens, input.longest);
}

/** Bytes a sample of what a stack is fed. */
export function fedBytes({ input }: Stack, tokens: number, weightWidth: number): number {
  if (input.kind === "text") return tokens * INT64;
  const values = input.kind === "patches" ? input.image : input.mels * 2 * input.positions;
  return values * weightWidth;
}

/** The first layer's input, and what of its making lives on while the stack runs, or as long as its gradient. */
export interface Embedded {
  readonly out: Tensor;
  readonly names: readonly Tensor[];
  readonly ended: Tensor | null;
}

/** From what is fed to the first layer's input. `sink` is where its gradient goes when that was made to need one. */
export function embedded(
  ops: StackOps,
  stack: Stack,
  modules: InputModules,
  tokens: number,
  maskBytes: number,
  sink: Node | null,
): Embedded {
  return ops.within("embedding", () => {
    const { input } = stack;
    const { hidden } = stack.block;
    if (input.kind === "text") return text(ops, stack, input, modules, tokens, maskBytes, sink);
    if (input.kind === "patches") return patches(ops, input, hidden, modules, sink);
    return sound(ops, input, hidden, modules, sink);
  });
}

function text(
  ops: StackOps,
  stack: Stack,
  input: TextInput,
  modules: InputModules,
  tokens: number,
  maskBytes: number,
  sink: Node | null,
): Embedded {
  const { table, positions, types, norm, projection } = modules;
  const { width } = input;
  const ids: Tensor[] = [];
  const names: Tensor[] = [];
  let x = ops.lookup(table!, width, tokens, true);
  if (input.scaled) x = replaced(ops, x, (t) => ops.scaled(t));
  x = required(x, sink);
  const ended = sink === null ? null : ops.alias(x);
  const looked = ops.alias(x);
  const plus = (rows: Tensor) => {
    x = replaced(ops, x, (t) => ops.addition(t, rows));
    names.push(rows);
  };
  // DeBERTa adds what it has no table for as zeros that only take their place.
  if (input.masked && positions === null) names.push(ops.tensor(0, width * tokens, x.width));
  if (types !== null) plus(ops.lookup(types, width, tokens, true));
  if (positions !== null) {
    const perSample = input.positions?.perSample ?? false;
    if (perSample) ids.push(ops.tensor(0, tokens, INT64));
    plus(ops.lookup(positions, width, tokens, perSample));
  } else if (input.positions?.buffer) plus(ops.tensor(0, width * tokens, table!.width));
  if (projection !== null && input.projection?.beforeNorm)
    x = replaced(ops, x, (t) => apply(ops, t, projection));
  if (norm !== null) x = replaced(ops, x, (t) => normalized(ops, t, norm));
  if (input.masked) {
    const mask = ops.tensor(0, tokens, Math.min(maskBytes, x.width));
    x = replaced(ops, x, (t) => ops.product(t, mask));
    ops.drop(mask);
  }
  if (input.dropout) x = dropped(ops, x);
  ops.dropAll(ids);
  if (stack.keepsLookup) return { out: x, names: [...names, looked], ended };
  ops.dropAll(names);
  ops.drop(looked);
  const last = x;
  if (projection !== null && !input.projection?.beforeNorm) x = apply(ops, last, projection);
  else ops.alias(x);
  return { out: x, names: [last], ended };
}
