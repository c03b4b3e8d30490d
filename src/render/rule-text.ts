import type { RuleId } from "../verdict/types.ts";
import { NOT_JUDGED, NOTE, UNREADABLE_FACT, UNREADABLE_INPUT } from "./findings.ts";
import { RULE_TEXTS } from "./policy-rules.ts";

/** What is about the policy file as a whole, or about a key that is not known, goes by this id. */
export const FILE_RULE = "policy/file";

const OTHERS: Readonly<Record<string, string>> = {
  [FILE_RULE]: "A part of the policy file does not do what it was written for.",
  [NOT_JUDGED]: "The request was not judged, so it is neither refused nor cleared.",
  [UNREADABLE_FACT]: "A value that says how the job trains cannot be read.",
  [UNREADABLE_INPUT]: "The file cannot be read as what it was named for.",
  [NOTE]: "Worth knowing; it changes no verdict.",
};

/** What an id of a finding is about, in one sentence. */
export function ruleText(id: string): string {
  return OTHERS[id] ?? (Object.hasOwn(RULE_TEXTS, id) ? RULE_TEXTS[id as RuleId].means : "A finding.");
}
