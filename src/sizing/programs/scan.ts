import type { ScanShape } from "../../model/types.ts";
import { FP32, type Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";
import { replaced } from "./attention.ts";
import { type Context, type Projection, project, projection } from "./context.ts";

/** Tokens of a chunk of the scan, of which a state is kept. */
const CHUNK = 2048;

/**
 * Mamba's mixer by the fused kernel of the package mamba_ssm, which transformers calls in training: one function that
 * keeps its input, the narrow projection, the states at the ends of chunks and the scan's result, and makes the
 * convolution's result and the time steps again in its backward. Source: mamba_ssm, `MambaInnerFn`.
 */
export interface Scan {
  readonly scan: ScanShape;
  readonly input: Projection;
  readonly convolution: Leaf;
  readonly convolutionBias: Leaf | null;
  readonly narrow: Leaf;
  readonly time: Leaf;
  readonly timeBias: Leaf;
  readonly decay: Leaf;
  readonly skip: Leaf;
  readonly output: Leaf;
  readonly outputBias: Leaf | null;
  readonly hidden: number;
}

export function scan(context: Context, shape: ScanShape): Scan {
  const { ops, weightWidth, trainBase } = context;
  const { hidden } = context.shape;
  const { inner, state, rank, kernel, bias, convolutionBias } = shape;
  const made = (count: number, factored = count) => ops.leaf(count, weightWidth, trainBase, factored);
  return {
    scan: shape,
    input: projection(context, hidden, 2 * inner, bias, context.feedForward),
    convolution: made(inner * kernel, inner + inner * kernel),
    convolutionBias: convolutionBias ? made(inner) : null,
    narrow: made(inner * (rank + 2 * state), inner + rank + 2 * state),
    time: made(rank * inner, rank + inner),
    timeBias: made(inner),
    decay: made(inner * state, inner + state),
    skip: made(inner),
    output: made(inner * hidden, inner + hidden),
    outputBias: bias ? made(hidden) : null,
    hidden,
  };
}

/** `x` is borrowed, the result owned; the projected states live until the end, as in Python. */
export function forwardScan(ops: Ops, x: Tensor, block: Scan): Tensor {
  return ops.within("attention", () => {
    const { inner, state, rank } = block.scan;
    const { tokens } = ops;
    const xz = project(ops, x, block.input);
    const full = ops.cast(block.decay, FP32);
    const exp = ops.like(full);
    const grown = ops.record(exp, [full], [exp.storage], (grad) => [ops.like(grad)]);
    const decay = replaced(ops, grown, (t) => ops.scaled(t));
    const [skip, timeBias] = [ops.cast(block.skip, FP32), ops.cast(block.timeBias, FP32)];
    const { width } = xz;
    const copies = [block.narrow, block.time, block.output].map((leaf) =>
      leaf.width === width ? null : ops.tensor(leaf.fixed, 0, width),
    );
    const wide = () => ops.tensor(0, inner * tokens, width);
    const input = ops.tensor(0, 2 * inner * tokens, width);
    const convolved = wide();
    const narrow = ops.tensor(0, (rank + 2 * state) * tokens, width);
    const delta = wide();
    const pair = [ops.tensor(0, state * tokens, width), ops.tensor(0, state * tokens, width)];
    const states = ops.tensor(0, inner * Math.ceil(tokens / CHUNK) * 2 * state, FP32);
    const [out, gated] = [wide(), wide()];
    const kept = [input, narrow, decay, ...copies, ...pair, states, out];
    const inputs = [
      xz,
      block.convolution,
      block.convolutionBias,
      block.narrow,
      block.time,
      block.output,
      block.outputBias,
      decay,
      skip,
      timeBias,
    ];
    const node = ops.node(
      inputs,
      kept.map((t) => t?.storage ?? null),
      () => {
        const again = [wide(), wide()];
        const dInput = ops.tensor(0, 2 * inner * tokens, width);
        const gradients = [wide(), wide(), wide(), wide()];
        const dDecay = ops.like(decay);
        const dPair = [ops.tensor(0, state * tokens, FP32), ops.tensor(0, state * tokens, FP32)];
        const [dSkip, dBias] = [ops.like(skip), ops.like(timeBias)];
        // What is projected is put in order for the gradient of the last matrix, where the batch is more than one.
        const turned = wide();
        const trained = (leaf: Leaf | null, as: number) =>
          leaf?.trainable ? ops.tensor(leaf.fixed, 0, as) : null;
        const dOutput = trained(block.output, width);
        ops.drop(turned);
        const dNarrow = ops.tensor(0, (rank + 2 * state) * tokens, width);
        ops.dropAll(dPair);
        const [dTime, dProjection] = [trained(block.time, width), trained(block.narrow, width)];
        ops.dropAll([...again, ...gradients, dNarrow]);
        const { convolution, convolutionBias, outputBias } = block;
        return [
          dInput,
          trained(convolution, convolution.width),
          trained(convolutionBias, convolution.width),
          dProjection,
          dTime,
          dOutput,
          trained(outputBias, convolution.width),
          dDecay,
          dSkip,
          dBias,
        ];
      },
    );
    const result = ops.outcome(node, ops.tensor(0, block.hidden * tokens, width));
    ops.drop(convolved, delta, gated);
    ops.dropAll([input, narrow, ...copies, ...pair, states, out]);
    ops.drop(decay, full, skip, timeBias);
    ops.drop(xz);
    return result;
  });
}
