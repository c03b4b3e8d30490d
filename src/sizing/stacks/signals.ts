import type { PatchInput, SoundInput } from "../../model/stacks.ts";
import { FP32 } from "../ops.ts";
import type { Leaf, Node, Tensor } from "../tape.ts";
import type { Embedded, InputModules } from "./inputs.ts";
import { dropped, replaced } from "./kernels.ts";
import { activated, apply, normalized } from "./modules.ts";
import type { StackOps } from "./ops.ts";

const INT64 = 8;
/** Rows of a table that are mixed for a patch. */
const MIXED = 4;

/** A tensor without history that was made to need a gradient, which goes to `sink`. */
export function required(x: Tensor, sink: Node | null): Tensor {
  return sink === null ? x : { ...x, node: sink };
}

/** A convolution whose result has `per` elements a sample: under autocast its operands are cast and kept. */
function convolution(
  ops: StackOps,
  x: Tensor,
  { weight, bias }: InputModules["convolutions"][number],
  per: number,
): Tensor {
  const b = bias === null ? null : ops.operand(bias);
  const w = ops.operand(weight);
  const input = ops.lowered(x);
  const needsInput = ops.needsGrad(input);
  const node = ops.node(
    [input, w, b],
    // One formula gives all three gradients, so both operands are kept whatever is needed.
    [input.storage, w === weight ? null : w.storage],
    () => [
      needsInput ? ops.like(input) : null,
      weight.trainable ? ops.like(weight, input.width) : null,
      bias?.trainable ? ops.like(bias, input.width) : null,
    ],
  );
  const out = ops.outcome(node, ops.tensor(0, per, input.width));
  ops.drop(input);
  ops.released(weight, w);
  if (bias !== null) ops.released(bias, b!);
  return out;
}

/** An image: patches, the class token before them, positions, registers. */
export function patches(
  ops: StackOps,
  input: PatchInput,
  hidden: number,
  modules: InputModules,
  sink: Node | null,
): Embedded {
  const { positions, tokens, norm, convolutions, projection } = modules;
  const fed = ops.fed(input.image, (projection ?? convolutions[0]!).weight.width);
  const pixels = input.gathered ? ops.like(fed) : ops.alias(fed);
  const { tiles = 1 } = input;
  const flat = tiles * input.patches * hidden;
  const hook = input.unhooked ? null : sink;
  const made =
    projection === null
      ? convolution(ops, pixels, convolutions[0]!, flat)
      : replaced(ops, ops.like(fed), (t) => apply(ops, t, projection));
  // Idefics' whole embedding is the module whose output needs a gradient.
  const late = input.positions === "looked-up";
  let x = late ? made : required(made, hook);
  let ended = hook === null || late ? null : ops.alias(x);
  if (input.classToken) {
    const first = tokens[0]!;
    const width = Math.max(x.width, first.width);
    const full = replaced(ops, x, (t) => ops.cast(t, width));
    x = ops.record(ops.tensor(0, flat + tiles * hidden, width), [full, first], [], (grad) => [
      ops.view(grad, 0, flat),
      ops.view(grad, 0, tiles * hidden),
    ]);
    ops.drop(full);
  }
  if (positions !== null) x = replaced(ops, x, (t) => positioned(ops, t, input, positions));
  if (late && hook !== null) {
    x = required(x, hook);
    ended = ops.alias(x);
  }
  // The index keeps where each row came from; its gradient is written into zeros.
  if (input.reordered)
    x = replaced(ops, x, (t) => ops.record(ops.like(t), [t], [], (grad) => [ops.like(grad)]));
  if (input.registers > 0) {
    const before = x;
    const per = before.per + input.registers * hidden;
    x = ops.record(ops.tensor(0, per, before.width), [before, tokens[1]!], [], (grad) => [
      ops.view(grad, 0, before.per),
      ops.view(grad, 0, input.registers * hidden),
    ]);
    ops.drop(before);
  }
  if (input.dropout) x = dropped(ops, x);
  if (norm !== null) x = replaced(ops, x, (t) => normalized(ops, t, norm));
  return { out: x, names: [ops.alias(x), pixels], ended };
}

/** Patches with their positions, by one table for all samples or of rows that are found for each. */
function positioned(ops: StackOps, x: Tensor, input: PatchInput, table: Leaf): Tensor {
  if (input.positions === undefined) return ops.addition(x, table);
  const hidden = x.per / input.patches;
  if (input.positions === "looked-up") {
    const rows = ops.lookup(table, hidden, input.patches, true);
    const sum = ops.addition(x, rows);
    ops.drop(rows);
    return sum;
  }
  // Four neighbours, their shares, and the sum over them, in the image's dtype.
  const ids = ops.tensor(0, MIXED * input.patches, INT64);
  const shares = ops.tensor(0, MIXED * input.patches, FP32);
  const four = ops.lookup(table, hidden, MIXED * input.patches, true);
  const weighted = ops.record(ops.like(four, FP32), [four], [shares.storage], (grad) => [ops.like(grad)]);
  const mixed = ops.record(ops.tensor(0, x.per, FP32), [weighted], [ids.storage], (grad) => [
    ops.view(grad, 0, weighted.per),
  ]);
  ops.drop(four, weighted);
  const rows = replaced(ops, mixed, (t) => ops.cast(t, x.width));
  const sum = ops.addition(x, rows);
  ops.drop(rows, ids, shares);
  return sum;
}

/** A spectrogram through two convolutions, with positions that are not trained. */
export function sound(
  ops: StackOps,
  input: SoundInput,
  hidden: number,
  { positions, convolutions }: InputModules,
  sink: Node | null,
): Embedded {
  const per = input.positions * hidden;
  const features = ops.fed(2 * input.positions * input.mels, positions!.width);
  const first = required(convolution(ops, features, convolutions[0]!, 2 * per), sink);
  const ended = sink === null ? null : ops.alias(first);
  const active = replaced(ops, first, (t) => activated(ops, t, "gelu"));
  const second = convolution(ops, active, convolutions[1]!, per);
  ops.drop(active);
  const looked = replaced(ops, second, (t) => activated(ops, t, "gelu"));
  const table = ops.tensor(input.positions * hidden, 0, positions!.width);
  const sum = ops.addition(looked, table);
  ops.drop(table);
  return { out: input.dropout ? dropped(ops, sum) : sum, names: [looked], ended };
}
