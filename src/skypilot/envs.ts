import type { Origin } from "../facts/types.ts";
import { shown } from "../lib/shown.ts";
import { readDotenv } from "./dotenv.ts";
import { linesOf, Unreadable, unreadableAt } from "./problem.ts";
import { entryOf, pyText, type YamlMap } from "./value.ts";

/** What `sky launch` may lay over a file. */
export interface TaskOverrides {
  /** `--env` values in order: `KEY=VALUE`, or `KEY` to take it from the caller's environment. */
  readonly env?: readonly string[];
  /** Contents of the `--env-file` files, in the order they were given. */
  readonly envFiles?: readonly string[];
  readonly gpus?: string | null;
  readonly numNodes?: number | null;
  /** The caller's environment, read for `--env KEY` and for `${NAME}` in an env file only. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** Variables by name, each with where it was read. */
export type Envs = ReadonlyMap<string, { readonly value: string; readonly from: Origin }>;

/** Variables that flags set; null = the env file names one without a value. */
export type EnvFlags = ReadonlyMap<string, { readonly value: string | null; readonly from: Origin }>;

const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/**
 * The variables of a task as Python's `str()` writes them, with the flags' laid over. One without a value is
 * refused, as SkyPilot refuses it.
 *
 * @param strict a name that no shell takes, or an empty `envs:`, is refused as in a file.
 * @throws Unreadable
 */
export function readEnvs(text: string, map: YamlMap, flags: EnvFlags, strict: boolean): Envs {
  const lineOf = linesOf(text);
  const entry = entryOf(map, "envs");
  const envs = new Map<string, { value: string | null; from: Origin; at: number | null }>();
  if (entry !== null) {
    if (entry.value.kind !== "map") {
      if (entry.value.kind === "null" && !strict) return new Map();
      throw unreadableAt(text, entry.key.at, "`envs` must be a mapping; remove it when there is none.");
    }
    for (const { key, value } of entry.value.entries) {
      const name = pyText(key);
      if (strict && !NAME.test(name)) {
        throw unreadableAt(text, key.at, `'${shown(name)}' is not a name for a variable.`);
      }
      const from: Origin = { kind: "env", name, line: lineOf(key.at) };
      envs.set(name, { value: value.kind === "null" ? null : pyText(value), from, at: key.at });
    }
  }
  for (const [name, { value, from }] of flags) envs.set(name, { value, from, at: null });
  const given = new Map<string, { value: string; from: Origin }>();
  for (const [name, { value, from, at }] of envs) {
    if (value === null) {
      const message = `the variable ${shown(name)} has no value; set it in the file or with --env, or to "" for an empty one.`;
      throw at === null ? new Unreadable(`In ${from.name} ${message}`) : unreadableAt(text, at, message);
    }
    given.set(name, { value, from });
  }
  return given;
}

/**
 * The variables that flags set: `--env-file` (of several files `sky launch` keeps the last) under `--env`.
 *
 * @throws Unreadable with code `usage` when `--env KEY` names a variable that the caller has not set
 */
export function envFlags(overrides: TaskOverrides): EnvFlags {
  const envs = new Map<string, { value: string | null; from: Origin }>();
  const environment = overrides.environment ?? {};
  const file = overrides.envFiles?.at(-1);
  if (file !== undefined) {
    for (const [name, value] of readDotenv(file, environment)) {
      envs.set(name, { value, from: { kind: "flag", name: "--env-file" } });
    }
  }
  for (const flag of overrides.env ?? []) {
    const equals = flag.indexOf("=");
    const name = equals === -1 ? flag : flag.slice(0, equals);
    const value = equals === -1 ? ownValue(environment, name) : flag.slice(equals + 1);
    if (value === undefined || name === "") {
      throw usage(
        `--env ${shown(name)} is not set in this environment; give it as --env ${shown(name) || "NAME"}=VALUE.`,
      );
    }
    envs.set(name, { value, from: { kind: "flag", name: `--env ${name}` } });
  }
  return envs;
}

function ownValue(record: Readonly<Record<string, string | undefined>>, name: string): string | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

/** A flag is at fault. */
export function usage(message: string): Unreadable {
  return new Unreadable(message, null, null, null, "usage");
}
