/** Classes of one half of a model of two, as transformers names them; their families are read as the whole. */
const HALVES: ReadonlySet<unknown> = new Set([
  "BartForCausalLM",
  "CLIPForImageClassification",
  "MBartForCausalLM",
  "Siglip2ForImageClassification",
  "SiglipForImageClassification",
  "WhisperForAudioClassification",
  "WhisperForCausalLM",
]);

/** What is assumed of a config whose `architectures` name half of a model; null for any other. */
export function saidOfHalf(architectures: unknown): string | null {
  const named: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  return HALVES.has(named) ? `${named} leaves out a part of the model; the whole is counted` : null;
}
