import { RULES } from "../policy/rules.ts";
import type { RuleId } from "../verdict/types.ts";
import { USUAL_WIDTH } from "./human.ts";
import { wrap } from "./text.ts";

/** What `policy explain` says of a rule. */
export interface RuleText {
  readonly means: string;
  readonly fires: string;
  readonly effect: string;
  /** How to live with it. */
  readonly waive: string;
}

const WAIVER = (id: string, more = "") =>
  `A waiver in .neurarch.yml turns the refusal into a warning that names its owner and its last day: rule: ${id}, an owner, a reason, and expires (or created: it then holds 30 days); model, path and cluster narrow it.${more}`;
const SEVERITY = (id: string) => `Under rules:, ${id}: off silences it, block makes it refuse.`;

export const RULE_TEXTS: Readonly<Record<RuleId, RuleText>> = {
  "admission/request-does-not-fit": {
    means: "The cards asked for cannot hold the job.",
    fires: "The training peak times the headroom (1.15, or the site's) is above the memory asked for.",
    effect: "The request is refused; in Slurm's warn mode the job is submitted with the message.",
    waive: WAIVER(
      "admission/request-does-not-fit",
      " Under rules:, warn lets every such job through with the message.",
    ),
  },
  "admission/cost-cap": {
    means: "The run costs more than the site allows.",
    fires:
      "Cards x hours x list price (x array tasks) is above --max-cost-usd or the site file's max_cost_usd.",
    effect:
      "The request is refused. With spot instances the list price is only an upper bound, so it is a warning.",
    waive: "Not by a file: the cap is the site's. Ask whoever runs it, or ask for less.",
  },
  "admission/over-requested": {
    means: "The request is far larger than the job needs.",
    fires: "It is more than one size above the smallest request that holds the job.",
    effect:
      "A warning that names a request that is enough; with --mutate the request is rewritten to the cheapest such one.",
    waive: SEVERITY("admission/over-requested"),
  },
  "admission/borderline-fit": {
    means: "The job fits, with little room for the estimate's error.",
    fires:
      "The need is above 85 % of the memory asked for, or measured runs of its kind took more than there is.",
    effect: "A warning with the largest batch that has headroom.",
    waive: SEVERITY("admission/borderline-fit"),
  },
  "budget/card-not-allowed": {
    means: "The request names a card that the repository does not use.",
    fires: "The card is not in budget: cards_allowed, under any of its names.",
    effect: "The request is refused, and no rewrite ends on such a card.",
    waive: WAIVER("budget/card-not-allowed"),
  },
  "budget/cost-per-run": {
    means: "The run costs more than the repository allows itself.",
    fires:
      "Cards x hours x list price is above budget: max_cost_per_run_usd. Without hours it is not checked, and that is said.",
    effect: "The request is refused; a warning where the price is only an upper bound (spot).",
    waive: WAIVER("budget/cost-per-run"),
  },
  "budget/params": {
    means: "The model is larger than the repository allows itself.",
    fires: "Its number of parameters is above budget: max_params (500K, 7B).",
    effect: "The request is refused.",
    waive: WAIVER("budget/params"),
  },
  "policy/waiver-expired": {
    means: "A waiver is past its last day.",
    fires: "Today is after its expires, or more than 30 days after its created where it has no expires.",
    effect: "It does not apply; a note says so on every job that it would concern. policy check reports it.",
    waive:
      "Renew the waiver or take it out. policy/waiver-expired: block makes policy check fail, off silences the note.",
  },
  "policy/waiver-invalid": {
    means: "A waiver cannot be read, or may not be what it says.",
    fires:
      "It has no rule, no owner, neither created nor expires, a date that is none or that is still to come, an unknown key, or is about something that cannot be waived.",
    effect:
      "It does not apply; a note says so on every job that it would concern. policy check reports it as an error.",
    waive:
      "Correct the waiver. policy/waiver-invalid: warn makes it a warning for policy check, off silences the note.",
  },
};

/** One rule for people. */
export function explainRule(id: RuleId, width = USUAL_WIDTH): string {
  const { means, fires, effect, waive } = RULE_TEXTS[id];
  const block = (label: string, text: string) =>
    wrap(text, Math.max(30, width - 10)).map(
      (part, index) => `  ${(index === 0 ? label : "").padEnd(8)}${part}`,
    );
  const lines = [
    id,
    ...block("means", means),
    ...block("when", fires),
    ...block("then", effect),
    ...block("waive", waive),
    ...block("default", RULES[id].severity),
  ];
  return `${lines.join("\n")}\n`;
}

/** What `policy explain --json` prints. */
export function rulesDocument(ids: readonly RuleId[]) {
  return {
    schema: "neurarch-gate/policy-rules",
    version: 1,
    rules: ids.map((id) => ({ rule: id, ...RULES[id], ...RULE_TEXTS[id] })),
  };
}
