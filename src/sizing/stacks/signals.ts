import type { PatchInput, SoundInput } from "../../model/stacks.ts";
import type { Node, Tensor } from "../tape.ts";
import type { Embedded, InputModules } from "./inputs.ts";
import { dropped, replaced } from "./kernels.ts";
import { activated, normalized } from "./modules.ts";
import type { StackOps } from "./ops.ts";

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
  const { positions, tokens, norm, convolutions } = modules;
  const pixels = ops.fed(input.image, positions!.width);
  const flat = input.patches * hidden;
  let x = required(convolution(ops, pixels, convolutions[0]!, flat), sink);
  const ended = sink === null ? null : ops.alias(x);
  if (input.classToken) {
    const first = tokens[0]!;
    const width = Math.max(x.width, first.width);
    const full = replaced(ops, x, (t) => ops.cast(t, width));
    x = ops.record(ops.tensor(0, flat + hidden, width), [full, first], [], (grad) => [
      ops.view(grad, 0, flat),
      ops.view(grad, 0, hidden),
    ]);
    ops.drop(full);
  }
  x = replaced(ops, x, (t) => ops.addition(t, positions!));
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
  return { out: x, names: [ops.alias(x)], ended };
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
