import { messagesOf } from "../../src/render/messages.ts";
import type { Telling, Words } from "../../src/render/types.ts";
import type { AnyCandidate, GpuRequest } from "../../src/request/types.ts";
import type { Sizing } from "../../src/sizing/types.ts";
import { judgeRequest } from "../../src/verdict/decide.ts";
import type { JudgeSettings, RequestVerdict, Resize } from "../../src/verdict/types.ts";
import { candidateOf, factsOf, jobOf, requestOf, settingsOf } from "../verdict/support.ts";

export const SKYPILOT: Words = {
  requestField: "`accelerators:`",
  batchField: "`NEURARCH_BATCH`",
  namingModel: "Name it.",
};
export const SLURM: Words = {
  requestField: "--gres",
  batchField: "batch= in #NEURARCH",
  namingModel: "Name it.",
};

/** One judged request and what it is told from. */
export interface Case {
  readonly sizing: Sizing;
  readonly facts?: Parameters<typeof factsOf>[0];
  readonly request: readonly (string | AnyCandidate)[];
  readonly choice?: GpuRequest["choice"];
  readonly settings?: Partial<JudgeSettings>;
  readonly words?: Words;
  readonly resize?: Resize;
  readonly failsClosed?: boolean;
}

export interface Outcome {
  readonly result: RequestVerdict;
  readonly request: GpuRequest;
  readonly telling: Telling;
  readonly messages: string[];
}

/** Judges a case and tells it. */
export function outcomeOf(given: Case): Outcome {
  const settings = settingsOf(given.settings);
  const request = requestOf(
    given.request.map((one) => (typeof one === "string" ? candidateOf(one, settings.table) : one)),
    given.choice,
  );
  const facts = factsOf(given.facts);
  const result = judgeRequest(jobOf(given.sizing, given.facts, given.resize), request, settings);
  const telling: Telling = {
    facts,
    sizing: given.sizing,
    settings,
    words: given.words ?? SKYPILOT,
    admitsUnjudged: given.failsClosed !== true,
  };
  return { result, request, telling, messages: messagesOf(result, request, telling) };
}
