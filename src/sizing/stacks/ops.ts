import { KINDS } from "../memory.ts";
import { FP32, HALF, Ops } from "../ops.ts";
import type { Leaf, Tensor } from "../tape.ts";

/**
 * Operators of models whose stacks differ in length: how many rows a matrix product has follows from its input, and
 * not from one length for all.
 */
export class StackOps extends Ops {
  private rows = 0;
  private fixedRows = 0;
  /** What names of a layer's part hold until it returns. */
  private named: Tensor[] = [];

  /** Holds a tensor, now the callee's, until `partEnded`. */
  name(x: Tensor): void {
    this.named.push(x);
  }

  partEnded(): void {
    this.dropAll(this.named);
    this.named = [];
  }

  private inCache: { readonly tensor: Tensor; readonly times: number }[] = [];
  /** Layers alike to the one that runs and that are not run themselves. */
  unrun = 0;

  /** A copy of keys or values that the cache of a decoder holds until the model has returned. */
  throughCache(x: Tensor): Tensor {
    const tensor = this.copy(x);
    this.inCache.push({ tensor: this.alias(tensor), times: this.unrun });
    return tensor;
  }

  /** The cache is let go, for layers that were not run too where nothing else holds what it does. */
  cacheEnded(): void {
    for (const { tensor, times } of this.inCache) {
      const { fixed, per, refs } = tensor.storage;
      if (refs === 1) this.shift("attention", -fixed * times, -per * times);
      this.drop(tensor);
    }
    this.inCache = [];
  }

  override linear(x: Tensor, weight: Leaf, bias: Leaf | null, features: number): Tensor {
    const inputs = weight.fixed / features;
    this.rows = x.per / inputs;
    this.fixedRows = x.fixed / inputs;
    return super.linear(x, weight, bias, features);
  }

  override perToken(features: number, bytes: number): Tensor {
    return this.tensor(this.fixedRows * features, this.rows * features, bytes);
  }

  /** A parameter as an operand of a kernel, cast as autocast wants it; let go by `released`. */
  operand(leaf: Leaf): Tensor {
    return this.parameter(leaf);
  }

  released(leaf: Leaf, operand: Tensor): void {
    this.dropOperand(leaf, operand);
  }

  /** What the model is fed, so many values a sample: counted with the inputs. */
  fed(per: number, width: number): Tensor {
    const storage = { fixed: 0, per: 0, refs: 1, kind: KINDS.inputs };
    return { storage, fixed: 0, per, width, node: null, slot: 0 };
  }

  /** Rows of a table by ids that the caller holds: so many for the batch, or so many a sample. */
  lookup(table: Leaf, features: number, rows: number, perSample: boolean): Tensor {
    const out = perSample
      ? this.tensor(0, features * rows, table.width)
      : this.tensor(features * rows, 0, table.width);
    return this.record(out, [table], [], (grad) => [this.like(table, grad.width)]);
  }

  /** A tensor that is the same for all samples, seen once for each; its gradient is summed over them. */
  expanded(x: Tensor, times = 1): Tensor {
    return this.record(this.view(x, 0, x.fixed * times), [x], [], (grad) => [
      this.tensor(x.fixed, 0, grad.width),
    ]);
  }

  /** `torch.where(mask, x, number)`; `wide` where the mask is one of each sample and `x` is not. */
  chosen(x: Tensor, mask: Tensor, wide: boolean): Tensor {
    const out = wide ? this.tensor(0, x.fixed + x.per, x.width) : this.like(x);
    return this.record(out, [x], [mask.storage], (grad) => [this.like(grad)]);
  }

  /** One row in so many of each sample, as a view; its gradient is written into zeros of the whole. */
  picked(x: Tensor, features: number): Tensor {
    return this.record(this.view(x, 0, features), [x], [], (grad) => [this.like(x, grad.width)]);
  }

  /** Sum over the rows of each sample, `features` wide. */
  rowSum(x: Tensor, features: number): Tensor {
    return this.record(this.tensor(0, features, x.width), [x], [], () => [this.like(x)]);
  }

  /** A sum with what is one for all samples and needs no gradient, in the wider dtype of the two. */
  widened(x: Tensor, width: number): Tensor {
    return this.record(this.like(x, width), [x], [], (grad) => [this.passed(grad)]);
  }

  /** Mean over all elements: a scalar. */
  mean(x: Tensor): Tensor {
    return this.record(this.tensor(1, 0, x.width), [x], [], () => [this.like(x)]);
  }

  /** `nll_loss(log_softmax(scores))`: under autocast the first takes fp32, the second runs as the scores are. */
  classLoss(scores: Tensor): Tensor {
    const logProbs = this.like(scores);
    const probs = this.record(logProbs, [scores], [logProbs.storage], this.alike);
    const handed = this.raised(probs);
    const loss = this.record(this.tensor(1, 0, handed.width), [handed], [handed.storage], () => [
      this.like(handed),
    ]);
    this.drop(probs, handed);
    return loss;
  }

  /** Loss of one yes or no an element: the labels in fp32 are kept too. */
  binaryLoss(scores: Tensor): Tensor {
    const labels = this.like(scores, FP32);
    const handed = this.raised(scores);
    const loss = this.record(
      this.tensor(1, 0, handed.width),
      [handed],
      [handed.storage, labels.storage],
      () => [this.like(handed)],
    );
    this.drop(labels, handed);
    return loss;
  }

  /** Bytes an element that kernels of attention get. */
  kernelWidth(x: Tensor): number {
    return this.autocast ? HALF : x.width;
  }
}
