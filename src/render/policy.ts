import type { FileProblem, Policy, Ruled, Waiver } from "../policy/types.ts";
import { stateOf } from "../policy/waiver.ts";
import type { LocatedFinding } from "./findings.ts";
import { FILE_RULE } from "./rule-text.ts";
import { counted, cut, printable } from "./text.ts";

/** A linted policy file. */
export interface Checked {
  /** As the user named it. */
  readonly file: string;
  readonly today: string;
  readonly policy: Policy | null;
  readonly problems: readonly FileProblem[];
}

/** A problem as one sentence, with what to do about it. */
function sentence({ message, fix }: FileProblem): string {
  const text = `${message.slice(0, 1).toUpperCase()}${message.slice(1)}`;
  return printable(fix === null ? `${text}.` : `${text}. ${fix}`);
}

/** `policy check` for people: a line a problem, as compilers write them, then the waivers that count. */
export function humanCheck({ file, today, policy, problems }: Checked): string {
  const name = printable(file);
  const lines = problems.map((problem) => {
    const { place, severity, rule } = problem;
    const at = place === null ? name : `${name}:${place.line}:${place.column}`;
    return `${at}: ${severity}: ${sentence(problem)}${rule === null ? "" : ` [${rule}]`}`;
  });
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const warnings = problems.length - errors;
  const inForce = (policy?.waivers ?? []).filter((waiver) => stateOf(waiver, today) === "in-force");
  if (policy === null) lines.push(`${name} is not applied: all verdicts stand without it.`);
  else {
    const count = inForce.length === 0 ? "no waiver" : counted(inForce.length, "waiver");
    lines.push(
      `${name}: ${counted(errors, "error")}, ${counted(warnings, "warning")}; ${count} in force on ${today}.`,
    );
    lines.push(...inForce.map((waiver) => `  ${waiverLine(waiver)}`));
  }
  return `${lines.join("\n")}\n`;
}

function waiverLine({ rule, owner, expires, reason, scope }: Waiver): string {
  const scopes = Object.entries(scope).flatMap(([name, globs]) =>
    globs === null ? [] : [`${name} ${globs.join(" or ")}`],
  );
  const where = scopes.length === 0 ? "" : `, ${scopes.join(", ")}`;
  return cut(`${rule} by ${owner} until ${expires}${where}: ${reason}`, 400);
}

/** `policy check` as findings, for SARIF and for GitHub. */
export function checkFindings({ problems }: Checked, file: string | null): LocatedFinding[] {
  return problems.map((problem) => ({
    level: problem.severity,
    rule: problem.rule ?? FILE_RULE,
    message: sentence(problem),
    file,
    place: problem.place,
  }));
}

/** What `policy check --json` prints. */
export function checkDocument({ file, today, policy, problems }: Checked) {
  return {
    schema: "neurarch-gate/policy-check",
    version: 1,
    file,
    today,
    applied: policy !== null,
    problems: problems.map(({ severity, rule, message, fix, place }) => ({
      severity,
      rule,
      message,
      fix,
      line: place?.line ?? null,
      column: place?.column ?? null,
    })),
    waivers: (policy?.waivers ?? []).map(({ place, scope, ...waiver }) => ({
      ...waiver,
      ...scope,
      state: stateOf({ place, scope, ...waiver }, today),
      line: place.line,
    })),
    budget:
      policy === null
        ? null
        : {
            cards_allowed: policy.budget.cardsAllowed,
            max_cost_per_run_usd: policy.budget.maxCostPerRunUsd,
            max_params: policy.budget.maxParams,
          },
    rules: policy === null ? null : Object.fromEntries(policy.rules),
  };
}

/** What `policy apply --json` prints: absent values are left out, as the published packages read them. */
export function applyDocument(file: string, findings: readonly Ruled[]) {
  return {
    policy: file,
    findings: findings.map(({ checker, rule, gates, effective, ref, title, fix, waiver }) => ({
      checker,
      rule,
      gates,
      effective,
      ...(ref === null ? {} : { ref }),
      title: printable(title),
      ...(fix === null ? {} : { fix: printable(fix) }),
      ...(waiver === null
        ? {}
        : {
            waiver: {
              owner: printable(waiver.owner),
              expires: waiver.expires,
              reason: printable(waiver.reason),
            },
          }),
    })),
  };
}

/** `policy apply` for people: a line a finding. */
export function humanApply(file: string, findings: readonly Ruled[]): string {
  if (findings.length === 0) return `${printable(file)}: nothing to say.\n`;
  const lines = findings.map(({ gates, effective, rule, title, waiver, fix }) => {
    const word = gates ? "block" : waiver === null ? effective : "waived";
    const by = waiver === null ? "" : ` Waived by ${waiver.owner} until ${waiver.expires}: ${waiver.reason}.`;
    const then = fix === null || !gates ? "" : ` ${fix}`;
    return printable(`${word.padEnd(7)} ${rule}: ${title.replace(/\.$/, "")}.${by}${then}`);
  });
  return `${lines.join("\n")}\n`;
}
