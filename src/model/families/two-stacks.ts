/** Said where an encoder and its decoder are not walked for themselves. */
export const TWO_STACKS = "encoder and decoder walked as one stack, cross attention as more layers";

/** Layers that hold what decoder layers with cross attention hold. */
export function withCross(layers: number): number {
  return Math.ceil(1.5 * layers);
}
