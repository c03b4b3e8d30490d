import { nearest } from "../lib/nearest.ts";
import { shown } from "../lib/shown.ts";
import { addDays, isDay } from "./dates.ts";
import { globProblem, matchesName, matchesPath } from "./glob.ts";
import { misspelledRule, ruleOf } from "./rules.ts";
import type { BadWaiver, Tree, TreeEntry, Waiver, WaiverScope } from "./types.ts";

/** A waiver without `expires` holds this many days from `created`: none holds for ever. */
export const DEFAULT_DAYS = 30;

export const WAIVER_KEYS = [
  "rule",
  "owner",
  "reason",
  "created",
  "expires",
  "model",
  "path",
  "cluster",
] as const;
type Key = (typeof WAIVER_KEYS)[number];
const SCOPES = ["model", "path", "cluster"] as const;

/** Thrown inside the reader of one waiver, and caught at its door. */
class Bad extends Error {
  constructor(
    readonly why: string,
    readonly fix: string,
  ) {
    super(why);
  }
}

/**
 * Reads one entry of `waivers`. Whatever about it cannot be read makes it no waiver at all, an unknown key too: it
 * may be a misspelled scope, and then the waiver would hold where nobody meant it to.
 */
export function readWaiver(tree: Tree): Waiver | BadWaiver {
  const entries = tree.kind === "map" ? tree.entries : [];
  const rule = entries.find(({ key }) => key === "rule")?.value;
  const named = rule?.kind === "text" ? rule.text.trim() : null;
  const bad = (why: string, fix: string, scope: WaiverScope = NO_SCOPE): BadWaiver => ({
    rule: named,
    scope,
    place: tree.place,
    why,
    fix,
  });
  if (tree.kind !== "map") return bad("it is not a mapping", "Write rule:, owner:, reason: and expires:.");
  let scope = NO_SCOPE;
  try {
    scope = scopeOf(entries);
    refuseUnknown(entries);
    const { owner, reason, created, expires } = fieldsOf(entries);
    const id = ruleField(entries);
    if (owner === null) throw new Bad("it has no owner", "Write owner: and who answers for it.");
    for (const [key, day] of [
      ["created", created],
      ["expires", expires],
    ] as const) {
      if (day !== null && !isDay(day)) {
        throw new Bad(`its \`${key}\` is \`${shown(day)}\`, which is not a day`, "Write it as 2026-11-30.");
      }
    }
    if (created === null && expires === null) {
      throw new Bad(
        "it has neither `created` nor `expires`",
        `Write expires: and a day, or created: and it holds ${DEFAULT_DAYS} days.`,
      );
    }
    if (created !== null && expires !== null && expires < created) {
      throw new Bad(`it expires on ${expires}, before it was created on ${created}`, "Correct the dates.");
    }
    return {
      rule: id,
      owner,
      reason: reason ?? "no reason given",
      created,
      expires: expires ?? addDays(created!, DEFAULT_DAYS),
      scope,
      place: tree.place,
    };
  } catch (error) {
    if (error instanceof Bad) return bad(error.why, error.fix, scope);
    throw error;
  }
}

export function isBad(waiver: Waiver | BadWaiver): waiver is BadWaiver {
  return "why" in waiver;
}

/** What a waiver is on a day: it holds up to and on the day it expires, and not before it was created. */
export function stateOf(waiver: Waiver, today: string): "in-force" | "expired" | "not-yet" {
  if (waiver.created !== null && waiver.created > today) return "not-yet";
  return waiver.expires < today ? "expired" : "in-force";
}

/**
 * The day to read a file's waivers on: the host's own, which is at most one day from that in UTC. It is asked for only
 * where that day matters to one of them, as it costs a submit some milliseconds.
 */
export function dayFor(waivers: readonly Waiver[], utcDay: string, localDay: () => string): string {
  const [first, last] = [addDays(utcDay, -1), addDays(utcDay, 1)];
  const isNear = (day: string | null) => day !== null && first <= day && day <= last;
  return waivers.some(({ created, expires }) => isNear(created) || isNear(expires)) ? localDay() : utcDay;
}

/** What a scope is held against. */
export interface Subject {
  readonly model: string;
  readonly paths: readonly string[];
  readonly cluster: string | null;
}

/** The last answer on a scope: the candidates of one job ask the same of it. */
const ANSWERS = new WeakMap<WaiverScope, { readonly key: string; readonly answer: boolean }>();

/** Whether every scope that is named matches; what is not known matches no glob. */
export function inScope(scope: WaiverScope, subject: Subject): boolean {
  const key = JSON.stringify(subject);
  const known = ANSWERS.get(scope);
  if (known?.key === key) return known.answer;
  const answer = matchesScope(scope, subject);
  ANSWERS.set(scope, { key, answer });
  return answer;
}

function matchesScope(scope: WaiverScope, { model, paths, cluster }: Subject): boolean {
  const named = (globs: readonly string[] | null, text: string | null) =>
    globs === null || (text !== null && globs.some((glob) => matchesName(glob, text)));
  return (
    named(scope.model, model) &&
    named(scope.cluster, cluster) &&
    (scope.path === null || scope.path.some((glob) => paths.some((path) => matchesPath(glob, path))))
  );
}

const NO_SCOPE: WaiverScope = { model: null, path: null, cluster: null };

function scopeOf(entries: readonly TreeEntry[]): WaiverScope {
  const read = (name: (typeof SCOPES)[number]): readonly string[] | null => {
    const value = entries.find(({ key }) => key === name)?.value;
    if (value === undefined) return null;
    const globs = value.kind === "list" ? value.items : [value];
    if (globs.length === 0) throw new Bad(`its \`${name}\` is an empty list`, "Name one, or take it out.");
    return globs.map((glob) => {
      if (glob.kind !== "text") throw new Bad(`its \`${name}\` is empty`, "Name one, or take it out.");
      const problem = globProblem(glob.text);
      if (problem !== null) throw new Bad(`its \`${name}\` ${problem}`, "Correct the pattern.");
      return glob.text;
    });
  };
  return { model: read("model"), path: read("path"), cluster: read("cluster") };
}

function refuseUnknown(entries: readonly TreeEntry[]): void {
  for (const { key } of entries) {
    if ((WAIVER_KEYS as readonly string[]).includes(key)) continue;
    const near = nearest(key, WAIVER_KEYS);
    throw new Bad(
      `it has the unknown key \`${shown(key)}\``,
      near === null ? `Known keys: ${WAIVER_KEYS.join(", ")}.` : `Did you mean \`${near}\`?`,
    );
  }
}

function fieldsOf(entries: readonly TreeEntry[]) {
  const text = (name: Key): string | null => {
    const value = entries.find(({ key }) => key === name)?.value;
    if (value === undefined || value.kind === "empty") return null;
    if (value.kind !== "text") throw new Bad(`its \`${name}\` is not a text`, "Write one value.");
    return value.text.trim() === "" ? null : value.text.trim();
  };
  return { owner: text("owner"), reason: text("reason"), created: text("created"), expires: text("expires") };
}

function ruleField(entries: readonly TreeEntry[]): string {
  const value = entries.find(({ key }) => key === "rule")?.value;
  if (value?.kind !== "text")
    throw new Bad("it names no rule", "Write rule: and the id that a verdict shows.");
  const id = value.text.trim();
  const misspelled = misspelledRule(id);
  if (misspelled !== null) {
    throw new Bad(
      `its rule \`${shown(id)}\` is not known`,
      misspelled.near === null ? "`policy explain` lists the rules." : `Did you mean \`${misspelled.near}\`?`,
    );
  }
  if (ruleOf(id)?.waivable === false) {
    const cap = id === "admission/cost-cap";
    throw new Bad(
      cap ? "the site's cost cap is not a repository's to waive" : `findings of ${id} cannot be waived`,
      cap ? "Ask whoever runs the site." : "Correct the waiver that they are about.",
    );
  }
  return id;
}
