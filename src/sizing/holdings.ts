import { KINDS, rounded } from "./memory.ts";
import { FP32, type Ops } from "./ops.ts";
import type { Plan } from "./recipe.ts";

/** The parameters of a model as they are made: how many, what they weigh, and what training adds to them. */
export class Holdings {
  params = 0;
  trainable = 0;
  weightBytes = 0;
  /** Bytes of the trained parameters, and so of their gradients. */
  trainableBytes = 0;
  private trainableTensors = 0;

  constructor(
    private readonly ops: Ops,
    private readonly plan: Plan,
  ) {}

  /** Counts the parameters made since the `from`-th, `times` over. */
  count(from: number, times: number): void {
    const { leaves } = this.ops;
    for (let i = from; i < leaves.length; i++) {
      const leaf = leaves[i]!;
      const bytes = rounded(leaf.fixed * leaf.width) * times;
      this.params += leaf.fixed * times;
      this.weightBytes += bytes;
      if (!leaf.trainable) continue;
      this.trainable += leaf.fixed * times;
      this.trainableBytes += bytes;
      this.trainableTensors += times;
    }
  }

  /** Parameters that no activation is walked for: weights like the rest. */
  countOutside(params: number): void {
    if (params === 0) return;
    const from = this.ops.leaves.length;
    this.ops.leaf(params, this.plan.weightWidth, this.plan.trainBase);
    this.count(from, 1);
  }

  /** States as wide as their parameters, and the optimizer's step as a scalar a tensor. */
  optimizerBytes(): number {
    const { plan } = this;
    return this.trainableBytes * plan.states + (plan.stepScalars ? rounded(FP32) * this.trainableTensors : 0);
  }

  /** What is there before the step: weights, optimizer state, and gradients where they accumulate over steps. */
  account(): void {
    const { ops, plan } = this;
    ops.shift("weights", this.weightBytes, 0);
    ops.shift("optimizer", this.optimizerBytes(), 0);
    if (plan.buckets) ops.shift("buckets", this.trainableBytes, 0);
    if (!plan.accumulates) return;
    let here = 0;
    for (const leaf of ops.leaves) {
      if (!leaf.trainable) continue;
      leaf.grad = ops.alloc(leaf.fixed * leaf.width, 0, KINDS.gradients);
      here += leaf.grad.fixed;
    }
    ops.shift("gradients", this.trainableBytes - here, 0);
  }
}
