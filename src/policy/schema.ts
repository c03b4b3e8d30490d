import { RULE_IDS, RULES } from "./rules.ts";
import { SEVERITIES } from "./types.ts";
import { DEFAULT_DAYS } from "./waiver.ts";

/*
 * The JSON Schema of a policy file, for editors. What it cannot say the reader says: whether a day is in the calendar,
 * whether a waiver is in force, what a misspelled key was meant to be.
 */

const DAY = { type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}$" } as const;
const TEXT = { type: "string", pattern: "\\S" } as const;
const ELSEWHERE = { not: { pattern: "^(admission|budget|policy)/" } } as const;

function globs(description: string) {
  return { description, anyOf: [TEXT, { type: "array", items: TEXT, minItems: 1 }] };
}

const WAIVER = {
  type: "object",
  additionalProperties: false,
  required: ["rule", "owner"],
  anyOf: [{ required: ["created"] }, { required: ["expires"] }],
  properties: {
    rule: {
      description: "The rule whose refusals become warnings.",
      type: "string",
      anyOf: [{ enum: RULE_IDS.filter((id) => RULES[id].waivable) }, ELSEWHERE],
    },
    owner: { ...TEXT, description: "Who answers for it. Quote a name that begins with @." },
    reason: { type: "string", description: "Why, for those who read the warning." },
    created: { ...DAY, description: "The first day on which it holds." },
    expires: {
      ...DAY,
      description: `The last day on which it holds; without it ${DEFAULT_DAYS} days after created.`,
    },
    model: globs("Only for these models: a glob, or a list of them."),
    path: globs("Only for these files of jobs, as seen from this file's folder."),
    cluster: globs("Only on these clusters."),
  },
} as const;

export const POLICY_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "A repository's rules for its GPU jobs (.neurarch.yml)",
  type: "object",
  additionalProperties: false,
  properties: {
    $schema: { type: "string" },
    version: { const: 1 },
    waivers: { description: "Refusals that are let through for a time.", type: "array", items: WAIVER },
    budget: {
      description: "What a run may take at most.",
      type: "object",
      additionalProperties: false,
      properties: {
        cards_allowed: {
          description: "Names of cards; a request for another one is refused.",
          anyOf: [TEXT, { type: "array", items: TEXT, minItems: 1 }],
        },
        max_cost_per_run_usd: {
          description: "US dollars at list price.",
          anyOf: [
            { type: "number", minimum: 0 },
            { type: "string", pattern: "^\\d[\\d_]*(\\.\\d+)?$" },
          ],
        },
        max_params: {
          description: "Parameters of the model: 500K, 7B.",
          anyOf: [
            { type: "number", minimum: 0 },
            { type: "string", pattern: "^\\d[\\d_]*(\\.\\d+)?\\s*[kKmMbBtT]?$" },
          ],
        },
      },
    },
    rules: {
      description: "What a finding comes to: it refuses, it is said, or it is not.",
      type: "object",
      propertyNames: { anyOf: [{ enum: RULE_IDS }, ELSEWHERE] },
      properties: Object.fromEntries(RULE_IDS.map((id) => [id, { enum: SEVERITIES }])),
    },
    policy: { description: "Another tool's." },
    models: { description: "Another tool's." },
  },
} as const;
