/** Classes of one half of a model of two, as transformers names them; their families are read as the whole. */
const HALVES: ReadonlySet<unknown> = new Set([
  "BartForCausalLM",
  "CLIPForImageClassification",
  "MBartForCausalLM",
  "MarianForCausalLM",
  "PegasusForCausalLM",
  "Siglip2ForImageClassification",
  "SiglipForImageClassification",
  "WhisperForAudioClassification",
  "WhisperForCausalLM",
]);

/** Heads of decoders that are counted and walked for what they are; a name may also be absent. */
const HEADS =
  /^$|(?:ForCausalLM|ForMaskedLM|LMHeadModel|ForConditionalGeneration|ForSequenceClassification|ForTokenClassification|ForQuestionAnswering)$|(?<!DoubleHeads|Reward)Model$/;

/** Classes of stacks whose head is none of those that are counted. */
const OTHER_HEADS: ReadonlySet<unknown> = new Set(["BartForQuestionAnswering", "MBartForQuestionAnswering"]);

/** What is assumed of a config whose `architectures` name a head that is not known; null where it is. */
export function saidOfHead(architectures: unknown, isDecoder: boolean): string | null {
  const named: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  if (typeof named !== "string") return null;
  if (isDecoder ? HEADS.test(named) : !OTHER_HEADS.has(named)) return null;
  return `the head of ${named.slice(0, 80)} is not known; a usual one of the family is counted and sized`;
}

/** What is assumed of a config whose `architectures` name half of a model; null for any other. */
export function saidOfHalf(architectures: unknown): string | null {
  const named: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  return HALVES.has(named) ? `${named} leaves out a part of the model; the whole is counted` : null;
}
