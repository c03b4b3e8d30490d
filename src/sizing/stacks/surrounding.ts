import type { Stack } from "../../model/stacks.ts";
import { catcher } from "../checkpoint.ts";
import type { Storage } from "../memory.ts";
import { FP32, HALF } from "../ops.ts";
import type { Plan } from "../recipe.ts";
import type { Leaf, Tensor } from "../tape.ts";
import type { Around } from "./attention.ts";
import { distanceIds } from "./disentangled.ts";
import { matrix, normalized, type Shop, type StackNormModule, stackNorm, tableOf } from "./modules.ts";
import type { StackOps } from "./ops.ts";
import { forEachSample, lookedUp } from "./position-bias.ts";

const INT64 = 8;

/** Modules that all layers of a stack share. */
export interface SharedModules {
  readonly biasTable: Leaf | null;
  readonly distanceTable: Leaf | null;
  readonly distanceNorm: StackNormModule | null;
}

export function sharedModules(shop: Shop, { block }: Stack): SharedModules {
  const { positionBias, disentangled } = block.attention;
  return {
    biasTable: positionBias === null ? null : matrix(shop, positionBias.buckets, block.heads),
    distanceTable: disentangled === null ? null : tableOf(shop, disentangled.rows, block.hidden),
    distanceNorm: disentangled?.normed ? stackNorm(shop, "layer", block.hidden) : null,
  };
}

/** What a stack's layers are called with beside their input, made when first needed and let go at its end. */
export class Surroundings {
  private full: Tensor | null = null;
  private windowed: Tensor | null = null;
  private readonly cross: Tensor | null;
  private readonly bias: Around["bias"];
  private readonly rotary: Around["rotary"];
  private readonly distances: Around["distances"];

  constructor(
    private readonly ops: StackOps,
    private readonly stack: Stack,
    private readonly plan: Plan,
    private readonly tokens: number,
    memoryTokens: number,
    /** Bytes an element of what the masks are made like. */
    private readonly width: number,
    modules: SharedModules,
  ) {
    const { block, crosses, causal } = stack;
    const { attention, heads, headDim } = block;
    const padded = plan.paddingMask && stack.input.kind === "text";
    this.cross = crosses && padded ? this.mask(memoryTokens, true) : null;
    this.bias = null;
    if (attention.positionBias !== null && modules.biasTable !== null) {
      // As wide as queries are, which 4-bit layers give back in the dtype of what they are fed.
      const lowered = ops.autocast && plan.quantised?.how !== "nf4";
      const zeros = crosses
        ? ops.within("scores", () => ops.tensor(heads * tokens * memoryTokens, 0, lowered ? HALF : width))
        : null;
      let own = lookedUp(ops, modules.biasTable, heads, tokens, !plan.checkpointing);
      if (attention.positionBias.perSample) own = ops.within("scores", () => forEachSample(ops, own));
      this.bias = {
        own,
        // Checkpointing asks for a gradient of the zeros too.
        cross: zeros !== null && plan.checkpointing ? { ...zeros, node: catcher() } : zeros,
        causal,
        tokens,
      };
    }
    const packed = attention.rotary === "packed";
    const angles = () =>
      ops.within("attention", () =>
        packed ? ops.tensor(0, headDim * tokens, FP32) : ops.tensor(headDim * tokens, 0, width),
      );
    this.rotary = attention.rotary ? { cos: angles(), sin: angles() } : null;
    this.distances = null;
    if (attention.disentangled !== null && modules.distanceTable !== null) {
      const { distanceTable: table, distanceNorm: norm } = modules;
      this.distances = {
        embeddings: norm === null ? ops.alias(table) : normalized(ops, table, norm),
        ids: distanceIds(ops, tokens),
        mask: ops.within("mask", () => ops.tensor(0, tokens * tokens, plan.paddingMask ? INT64 : FP32)),
      };
    }
  }

  /** For layers whose attention sees so many tokens to either side. */
  of(window: number | null): Around {
    const { stack, plan, tokens } = this;
    return {
      implementation: plan.implementation,
      causal: stack.causal,
      mask: this.own(window),
      crossMask: this.cross,
      rotary: this.rotary,
      bias: this.bias,
      distances: this.distances,
      caches: stack.block.attention.caches && !plan.checkpointing,
      tokens,
    };
  }

  private own(window: number | null): Tensor | null {
    const { plan, stack, tokens } = this;
    const { causal, block } = stack;
    if (plan.implementation === "flash" || block.attention.disentangled !== null) return null;
    // MPNet's mask is a row of each sample.
    if (block.attention.positionBias?.perSample) return null;
    const padded = plan.paddingMask && stack.input.kind === "text";
    const always = causal && (plan.implementation === "eager" || block.attention.alwaysMasked);
    if (window !== null && tokens >= window) {
      this.windowed ??= this.mask(tokens, padded);
      return this.windowed;
    }
    if (!padded && !always) return null;
    this.full ??= this.mask(tokens, padded || block.attention.alwaysMasked);
    return this.full;
  }

  /** Bool for kernels, and without padding one for all samples; numbers for eager attention. */
  private mask(keys: number, padded: boolean): Tensor | null {
    const { ops, plan, tokens, width } = this;
    if (plan.implementation === "flash") return null;
    return ops.within("mask", () => {
      if (plan.implementation === "eager") return ops.tensor(0, tokens * keys, width);
      return padded ? ops.tensor(0, tokens * keys, 1) : ops.tensor(tokens * keys, 0, 1);
    });
  }

  /** What of these needs a gradient, with the way to put others in its place. */
  inputs(around: Around): readonly Tensor[] {
    if (around.distances !== null) return [around.distances.embeddings];
    if (around.bias === null) return [];
    const { own, cross } = around.bias;
    return cross === null ? [own] : [own, cross];
  }

  /** The same with others in the place of `inputs`. */
  replaced(around: Around, inputs: readonly Tensor[]): Around {
    const [first, second] = inputs;
    if (first === undefined) return around;
    if (around.distances !== null)
      return { ...around, distances: { ...around.distances, embeddings: first } };
    if (around.bias === null) return around;
    return { ...around, bias: { ...around.bias, own: first, cross: second ?? null } };
  }

  /** Bytes of the ids of distances, which under checkpointing the first layer makes again. */
  idBytes(): number {
    return this.bias === null ? 0 : INT64 * this.tokens * this.tokens;
  }

  /** Storages that a layer under checkpointing keeps beside its inputs. */
  held({ mask, crossMask, rotary, distances }: Around): Storage[] {
    const all = [mask, crossMask, rotary?.cos, rotary?.sin, distances?.ids, distances?.mask];
    return all.flatMap((one) => (one ? [one.storage] : []));
  }

  drop(): void {
    const { ops, bias, rotary, distances } = this;
    ops.drop(this.full, this.windowed, this.cross);
    if (bias !== null) ops.drop(bias.own, bias.cross);
    if (rotary !== null) ops.drop(rotary.cos, rotary.sin);
    if (distances !== null) {
      ops.drop(distances.embeddings, distances.ids, distances.mask);
    }
  }
}
