import { FP32 } from "../ops.ts";
import type { Tensor } from "../tape.ts";
import type { AttentionMode, Context } from "./context.ts";
import type { Rotary } from "./rotary.ts";

/** What a layer is called with beside its input. */
export interface Surroundings {
  readonly rotary: Rotary | null;
  readonly mask: Tensor | null;
  readonly mode: AttentionMode;
}

/** Cosines and sines for the positions, in the dtype of the embedding's output; olmo2 keeps them in fp32. */
export function rotaryOf({ ops, shape }: Context, embedded: Tensor): Rotary | null {
  if (shape.rotary === 0) return null;
  const width = (shape.rotaryFull ?? shape.norm === "rms-late") ? FP32 : embedded.width;
  const paired = shape.rotaryPaired ?? false;
  const elements = (shape.headDim * shape.rotary * ops.tokens) / (paired ? 2 : 1);
  const made = () =>
    shape.rotaryPerSample ? ops.tensor(0, elements, width) : ops.tensor(elements, 0, width);
  return ops.within("attention", () => ({
    cos: made(),
    sin: made(),
    fraction: shape.rotary,
    concatenates: shape.rotaryConcatenates ?? (paired || shape.rotary < 1),
    paired,
  }));
}

/** The masks of a forward: one for all full layers and one for all windowed ones, made when first needed. */
export class Masks {
  private ofFull: Tensor | null = null;
  private ofWindowed: Tensor | null = null;

  constructor(
    private readonly context: Context,
    private readonly implementation: AttentionMode["implementation"],
    private readonly padding: boolean,
    private readonly embedded: Tensor,
    /** Windowed layers have a mask of their own even where the window is no shorter than the sample. */
    private readonly apart: boolean = false,
  ) {}

  /** The mask of layers with this window, or null where the kernel needs none. */
  of(window: number | null): { readonly mask: Tensor | null; readonly mode: AttentionMode } {
    const { context, implementation } = this;
    const windowed = window !== null && (this.apart || context.ops.tokens >= window);
    const needed =
      implementation === "eager" || this.padding || windowed || (context.shape.alwaysMasked ?? false);
    // flash_attn is told lengths and windows instead.
    const masked = implementation !== "flash" && needed;
    const mode: AttentionMode = { implementation, masked };
    if (!masked) return { mask: null, mode };
    if (windowed) {
      this.ofWindowed ??= this.make();
      return { mask: this.ofWindowed, mode };
    }
    this.ofFull ??= this.make();
    return { mask: this.ofFull, mode };
  }

  /** Bool for sdpa, and without padding one for all samples; numbers of the embedding's dtype for eager and ALiBi. */
  private make(): Tensor {
    const { ops, shape } = this.context;
    const square = ops.tokens * ops.tokens;
    return ops.within("mask", () => {
      if (shape.alibi && shape.alwaysMasked) return ops.tensor(0, shape.heads * square, this.embedded.width);
      if (this.implementation === "eager") return ops.tensor(0, square, this.embedded.width);
      return this.padding ? ops.tensor(0, square, 1) : ops.tensor(square, 0, 1);
    });
  }

  drop(): void {
    this.context.ops.drop(this.ofFull, this.ofWindowed);
  }
}
