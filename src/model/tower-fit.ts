import type { Tower } from "./tower-types.ts";

/**
 * A tower for samples of `tokens` tokens: an image of any size is as large as its own bound or as the sample has room
 * for. Null where an image of a fixed size has none.
 */
export function fitTower(tower: Tower, tokens: number): Tower | null {
  const { joinedSide, windowSide, stack } = tower;
  if (joinedSide === null) return tower.tokens <= tokens ? tower : null;
  const joined = Math.min(Math.sqrt(tower.tokens), Math.floor(Math.sqrt(tokens)));
  if (joined < 1 || stack.input.kind !== "patches") return null;
  const patches = (joined * joinedSide) ** 2;
  const chunk = windowSide === null ? patches : windowTokens(joined, windowSide) * joinedSide ** 2;
  const runs = stack.runs.map((run) => (run.chunk === undefined ? run : { ...run, chunk }));
  const image = patches * stack.input.pixels;
  const input = { ...stack.input, patches, image };
  return { ...tower, tokens: joined ** 2, stack: { ...stack, input, runs } };
}

/** Tokens that a token sees within windows of `across` a side, those at the edges being cut: the mean over all. */
function windowTokens(side: number, across: number): number {
  let squares = 0;
  for (let at = 0; at < side; at += across) squares += Math.min(across, side - at) ** 2;
  return (squares / side) ** 2;
}
