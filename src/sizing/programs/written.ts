import type { Ops } from "../ops.ts";
import type { Tensor } from "../tape.ts";

/**
 * `base[...] = part` over `elements` of a sample: the storage of `base`, which the caller's name for it passes on. The
 * backward clones the gradient of the whole and then of the part, even where the base had no history before.
 * Source: torch/csrc/autograd/functions/tensor.cpp, CopySlices.
 */
export function written(ops: Ops, base: Tensor, part: Tensor, elements: number): Tensor {
  return ops.record(ops.view(base, base.fixed, base.per), [base, part], [], (grad) => {
    const rest = ops.like(grad);
    const bytes = elements * grad.width;
    const slice = ops.tensor(0, elements, part.width);
    ops.workspace(0, part.width === grad.width ? bytes : 2 * bytes);
    return [rest, slice];
  });
}
