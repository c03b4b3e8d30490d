import { basename, dirname } from "../host/paths.ts";
import { type CardIdentity, isAllowed } from "../policy/budget.ts";
import type { RepoPolicy } from "../policy/types.ts";
import { type AppliedPolicy, applyToVerdicts, type JudgedRequest } from "../policy/verdicts.ts";
import { dayFor } from "../policy/waiver.ts";
import { buildCardTable } from "../request/cards.ts";
import type { CardTable } from "../request/types.ts";
import { readPolicyFile, whyNotApplied } from "./policy-file.ts";
import { absolute } from "./policy-find.ts";

/** The names a rewrite may use; null = any. */
export type RewriteCards = readonly string[] | null;

/** A job's policy file, read. */
export interface TaskPolicy {
  readonly path: string;
  /** The cards a rewrite may use, so that it never ends on one that the file does not allow. */
  rewriteCards(names: RewriteCards): RewriteCards;
  apply(judged: Omit<JudgedRequest, "paths">): AppliedPolicy;
}

/** What a policy file is applied under. */
export interface PolicyContext {
  readonly utcDay: string;
  /** The day by the host's zone. */
  readonly localDay: () => string;
  readonly cluster: string | null;
  readonly repoPolicy: RepoPolicy;
  readonly table: CardTable;
  /** The job's file, from `/`. */
  readonly jobFile: string | null;
  readonly cwd: string;
}

/** Reads a policy file for a job. One that cannot be read changes nothing and is said in one note. */
export function openTaskPolicy(path: string, context: PolicyContext): TaskPolicy {
  const { cluster, repoPolicy, table, jobFile, cwd } = context;
  const file = basename(path);
  const reading = readPolicyFile(path);
  const { policy } = reading;
  if (policy === null) {
    const note = `${file} is not applied: ${whyNotApplied(reading)}; the verdict stands without it.`;
    return { path, rewriteCards: (names) => names, apply: ({ result }) => ({ result, notes: [note] }) };
  }
  const today = dayFor(policy.waivers, context.utcDay, context.localDay);
  const identity = cardIdentity(table);
  const allowed = policy.rules.get("budget/card-not-allowed") === "off" ? null : policy.budget.cardsAllowed;
  return {
    path,
    rewriteCards: (names) => {
      if (allowed === null) return names;
      const all = names ?? table.cards.map((card) => table.nameOf(card));
      return all.filter((name) => isAllowed(name, allowed, identity));
    },
    apply: (judged) => {
      const paths = pathsOf(jobFile, judged.facts.model.value, dirname(path), cwd);
      return applyToVerdicts({ ...judged, paths }, { policy, file, identity, today, cluster, repoPolicy });
    },
  };
}

/** A card by any of its names: as the site calls it, else as everybody does. */
export function cardIdentity(table: CardTable): CardIdentity {
  let everybodys: CardTable | null = null;
  return (name) => {
    const card = table.find(name);
    if (card !== null) return card.id;
    everybodys ??= buildCardTable();
    return everybodys.find(name)?.id ?? null;
  };
}

/** The paths that a scope may mean: the job's file, and the model where it is one. */
export function pathsOf(jobFile: string | null, model: string, folder: string, cwd: string): string[] {
  const files = jobFile === null ? [] : [jobFile];
  if (/^(?:\.{0,2}\/|~\/)|\.json$/.test(model)) files.push(absolute(model, cwd, undefined));
  const above = folder === "/" ? "/" : `${folder}/`;
  return files.flatMap((path) => (path.startsWith(above) ? [path.slice(above.length), path] : [path]));
}
