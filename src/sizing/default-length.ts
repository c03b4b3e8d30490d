/** Tokens a sample where the job does not say: 2048, or the model's context where that is shorter. */
export const USUAL_TOKENS = 2048;

export function defaultSeqLen(contextTokens: number | null): number {
  return contextTokens === null ? USUAL_TOKENS : Math.min(USUAL_TOKENS, contextTokens);
}
