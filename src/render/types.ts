import type { JobFacts } from "../facts/types.ts";
import type { Sizing } from "../sizing/types.ts";
import type { JudgeSettings } from "../verdict/types.ts";

/** Only these words differ between the schedulers; everything else of a sentence is the same. */
export interface Words {
  /** Where the request is written: "`accelerators:`" or "--gres". */
  readonly requestField: string;
  /** Where the batch is written: "`NEURARCH_BATCH`", "batch= in #NEURARCH". */
  readonly batchField: string;
  /** How a job names its model, for one that names none: "Write #NEURARCH model=ID into the script". */
  readonly namingModel: string;
}

/** What the sentences on a verdict are told from. */
export interface Telling {
  readonly facts: JobFacts;
  /** Null where the job could not be sized. */
  readonly sizing: Sizing | null;
  readonly settings: Pick<JudgeSettings, "headroom" | "maxCostUsd" | "table" | "mutate">;
  readonly words: Words;
  /** What is done with a request that is not judged; false where the site fails closed. Default true. */
  readonly admitsUnjudged?: boolean;
}
