/** What a finding of a rule comes to: it refuses, it is said, or it is not said. */
export const SEVERITIES = ["block", "warn", "off"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What a site lets a policy file do: everything, only refuse more, or nothing. */
export const REPO_POLICIES = ["honour", "tighten-only", "ignore"] as const;
export type RepoPolicy = (typeof REPO_POLICIES)[number];

/** A place in the file, both from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** The file's YAML as text and places: nothing is typed, so `off` and dates stay as they were written. */
export type Tree =
  | { readonly kind: "text"; readonly text: string; readonly place: Place }
  | { readonly kind: "empty"; readonly place: Place }
  | { readonly kind: "list"; readonly items: readonly Tree[]; readonly place: Place }
  | { readonly kind: "map"; readonly entries: readonly TreeEntry[]; readonly place: Place };

export interface TreeEntry {
  readonly key: string;
  readonly keyPlace: Place;
  readonly value: Tree;
}

/** Where a waiver holds: every scope that is named has to match, by one of its globs. Null = not named. */
export interface WaiverScope {
  readonly model: readonly string[] | null;
  readonly path: readonly string[] | null;
  readonly cluster: readonly string[] | null;
}

/** A waiver that can be read. Whether it is in force is a question of the day. */
export interface Waiver {
  readonly rule: string;
  readonly owner: string;
  /** `no reason given` where the file gives none. */
  readonly reason: string;
  readonly created: string | null;
  /** The last day on which it holds, `2026-11-30`; 30 days after `created` where the file names none. */
  readonly expires: string;
  readonly scope: WaiverScope;
  readonly place: Place;
}

/** A waiver that cannot be read: it does not apply. */
export interface BadWaiver {
  /** As far as it can be read. */
  readonly rule: string | null;
  readonly scope: WaiverScope;
  readonly place: Place;
  /** The end of a sentence that begins with the waiver: `it has no owner`. */
  readonly why: string;
  readonly fix: string;
}

export interface Budget {
  /** Names of cards; null = any. */
  readonly cardsAllowed: readonly string[] | null;
  readonly maxCostPerRunUsd: number | null;
  readonly maxParams: number | null;
}

/** A policy file that can be read. */
export interface Policy {
  readonly waivers: readonly Waiver[];
  readonly badWaivers: readonly BadWaiver[];
  readonly budget: Budget;
  /** Severities by rule id, as far as the file sets them. */
  readonly rules: ReadonlyMap<string, Severity>;
  /** Where things stand that a linter points at: `rules/RULE`, `cards_allowed/0`. */
  readonly places: ReadonlyMap<string, Place>;
}

/**
 * Something about the file itself. `error` = a part of it, or all, does not do what it was written for; `warning` =
 * it may not do what was meant.
 */
export interface FileProblem {
  readonly severity: "error" | "warning";
  /** The rule it is reported under; null for what no rule is about (the YAML, an unknown key). */
  readonly rule: "policy/waiver-invalid" | "policy/waiver-expired" | null;
  /** One sentence without its full stop. */
  readonly message: string;
  readonly fix: string | null;
  readonly place: Place | null;
}

/** A file as read: `policy` is null where nothing of it can be applied, and the last problem then says why. */
export interface PolicyReading {
  readonly policy: Policy | null;
  readonly problems: readonly FileProblem[];
}

/** What a policy is applied under: the day and the place, handed in. */
export interface Circumstances {
  /** The day, `2026-11-30`. */
  readonly today: string;
  /** The cluster's name; null when nobody said. */
  readonly cluster: string | null;
  readonly repoPolicy: RepoPolicy;
}

/** Something a checker found, before the policy has its say. */
export interface Finding {
  readonly checker: string;
  readonly rule: string;
  readonly severity: Exclude<Severity, "off">;
  readonly title: string;
  readonly model: string;
  /** Paths it is about, for waivers scoped by path: relative to the policy file's folder, and absolute. */
  readonly paths: readonly string[];
  /** Index of the verdict it belongs to; null = none. */
  readonly ref: number | null;
}

/** What a budget line is held against, of one verdict. */
export interface RunFacts {
  readonly model: string;
  readonly paths: readonly string[];
  readonly cards: readonly string[];
  /** USD of the run at list price; null = not known. */
  readonly costUsd: number | null;
  /** The cost is an upper bound only (spot): over a limit is then a warning. */
  readonly upperBound: boolean;
  readonly params: number | null;
  readonly ref: number | null;
}

/** A finding after the policy had its say. */
export interface Ruled {
  readonly checker: string;
  readonly rule: string;
  /** It refuses. */
  readonly gates: boolean;
  readonly effective: Severity;
  readonly ref: number | null;
  /** A sentence without its full stop. */
  readonly title: string;
  /** A whole sentence. */
  readonly fix: string | null;
  readonly waiver: Waiver | null;
  /** A waiver that would apply, but this site lets a file only tighten. */
  readonly withheld: Waiver | null;
}
