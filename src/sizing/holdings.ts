import { KINDS, rounded } from "./memory.ts";
import { FP32, type Ops } from "./ops.ts";
import type { Plan } from "./recipe.ts";
import type { Leaf } from "./tape.ts";

const FEWEST_OF_EIGHT_BITS = 4096;
const BLOCK_OF_EIGHT_BITS = 256;
/** What a byte stands for, once for each state. */
const CODE_BOOKS_BYTES = 2 * 256 * FP32;

/**
 * Two states of a byte with a scale in fp32 for each block; in fp32 for few numbers, and for embeddings, as Trainer
 * asks. Source: bitsandbytes/optim/optimizer.py, `Optimizer2State.init_state`; transformers/trainer.py,
 * `create_optimizer`.
 */
function eightBits({ fixed: whole, isTable }: Leaf, cards: number): number {
  const fixed = Math.ceil(whole / cards);
  if (isTable || fixed < FEWEST_OF_EIGHT_BITS) return 2 * rounded(fixed * FP32);
  return 2 * (rounded(fixed) + rounded(Math.ceil(fixed / BLOCK_OF_EIGHT_BITS) * FP32));
}

/** The parameters of a model as they are made: how many, what they weigh, and what training adds to them. */
export class Holdings {
  params = 0;
  trainable = 0;
  weightBytes = 0;
  /** Bytes of the trained parameters, and so of their gradients. */
  trainableBytes = 0;
  /** What this card keeps of the gradients, and of states as wide as they are. */
  gradientBytes = 0;
  private stateBytes = 0;
  private trainableTensors = 0;
  private factoredBytes = 0;
  private eightBitBytes = 0;
  /** Quantised matrices: their elements, and their bytes with their scales. */
  packedParams = 0;
  packedBytes = 0;
  /** Where the parameters after the last layer begin and end among those made; an optimizer comes to them last. */
  headFrom = 0;
  headTo = 0;
  private outside: Leaf | null = null;

  constructor(
    private readonly ops: Ops,
    private readonly plan: Plan,
  ) {}

  /** Counts the parameters made since the `from`-th, `times` over. */
  count(from: number, times: number): void {
    const { leaves } = this.ops;
    const { stateCards, gradientCards } = this.plan;
    for (let i = from; i < leaves.length; i++) {
      const leaf = leaves[i]!;
      const bytes = (leaf.packedBytes || rounded(leaf.fixed * leaf.width)) * times;
      this.params += leaf.fixed * times;
      this.weightBytes += bytes;
      if (leaf.packedBytes > 0) {
        this.packedParams += leaf.fixed * times;
        this.packedBytes += bytes;
      }
      if (!leaf.trainable) continue;
      if (this.plan.eightBitStates) this.eightBitBytes += eightBits(leaf, stateCards) * times;
      this.trainable += leaf.fixed * times;
      this.trainableBytes += bytes;
      this.trainableTensors += times;
      this.gradientBytes += gradientCards === 1 ? bytes : shareBytes(leaf, gradientCards) * times;
      this.stateBytes += stateCards === 1 ? bytes : shareBytes(leaf, stateCards) * times;
      this.factoredBytes += rounded(Math.ceil(leaf.factored / stateCards) * FP32) * times;
    }
  }

  /** Parameters that no activation is walked for: weights like the rest. */
  countOutside(params: number): void {
    if (params === 0) return;
    const from = this.ops.leaves.length;
    // Matrices of unknown sides, whose row and column means are next to nothing.
    this.outside = this.ops.leaf(params, this.plan.weightWidth, this.plan.trainBase, 0);
    this.count(from, 1);
  }

  /** States as wide as their parameters, and the optimizer's step as a scalar a tensor. */
  optimizerBytes(): number {
    const { plan } = this;
    if (plan.eightBitStates) return this.eightBitBytes + CODE_BOOKS_BYTES;
    const scalars = plan.stepScalars || plan.factoredStates ? rounded(FP32) * this.trainableTensors : 0;
    return this.stateBytes * plan.states + (plan.factoredStates ? this.factoredBytes : 0) + scalars;
  }

  /**
   * The most that the optimizer's step takes beside what it keeps. Adafactor and Lion go from parameter to parameter,
   * each with two tensors as large as it: Lion in its dtype (a copy of the momentum and the sum with the gradient),
   * Adafactor in fp32 (squares and their sum with epsilon, the update before and after, the update and its negative),
   * beside fp32 copies of 16-bit parameters and gradients; and a name still holds the update of the parameter before.
   * Source: transformers/optimization.py, `Adafactor.step`.
   */
  updateBytes(): number {
    const { plan } = this;
    if (plan.update === "in-place") return 0;
    if (plan.update === "copies") return this.stateBytes;
    let most = 0;
    let before = 0;
    for (const { fixed: whole, width, factored } of this.inTurn()) {
      const fixed = Math.ceil(whole / plan.stateCards);
      if (plan.update === "lion") {
        most = Math.max(most, 2 * rounded(fixed * width));
        continue;
      }
      const update = rounded(fixed * FP32);
      const means = factored === whole ? 0 : rounded(factored * FP32);
      most = Math.max(most, (width === FP32 ? 2 : 4) * update + Math.max(before, means));
      before = update;
    }
    return most;
  }

  /** Trained parameters as the optimizer comes to them: Trainer's groups, matrices with weight decay before the rest. */
  private inTurn(): Leaf[] {
    const { leaves } = this.ops;
    const { headFrom, headTo } = this;
    const trained = [
      ...leaves.slice(0, headFrom),
      ...leaves.slice(headTo),
      ...leaves.slice(headFrom, headTo),
    ].filter((leaf) => leaf.trainable && leaf !== this.outside);
    const isMatrix = ({ fixed, factored }: Leaf) => factored !== fixed;
    return [...trained.filter(isMatrix), ...trained.filter((leaf) => !isMatrix(leaf))];
  }

  /** What is there before the step: weights, optimizer state, and gradients where they accumulate over steps. */
  account(): void {
    const { ops, plan } = this;
    if (!plan.offloaded) ops.shift("weights", this.weightBytes, 0);
    ops.shift("optimizer", this.optimizerBytes(), 0);
    // The loss's scale and the count of steps since it last changed.
    if (plan.fp16) ops.shift("optimizer", 2 * rounded(FP32), 0);
    if (plan.buckets) ops.shift("buckets", this.trainableBytes, 0);
    if (!plan.accumulates) return;
    if (plan.offloaded) {
      // Kept whole until the last micro-batch reduces them.
      ops.shift("gradients", this.trainableBytes, 0);
      return;
    }
    let here = 0;
    for (const leaf of ops.leaves) {
      if (!leaf.trainable) continue;
      leaf.grad = ops.alloc(Math.ceil(leaf.fixed / plan.gradientCards) * leaf.width, 0, KINDS.gradients);
      here += leaf.grad.fixed;
    }
    ops.shift("gradients", this.gradientBytes - here, 0);
  }
}

/** Bytes of an even share of a parameter. */
function shareBytes({ fixed, width }: Leaf, cards: number): number {
  return rounded(Math.ceil(fixed / cards) * width);
}
