/** The file beside a snapshot's content that hands an evaluation its environment; read by `sh`, then removed. */
export const ENVIRONMENT_FILE = ".neurarch-environment";

/** A variable's name that a shell takes. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** What an evaluation gets, and what was allowed and is not set here. */
export interface EnvironmentValues {
  readonly values: Readonly<Record<string, string>>;
  readonly unset: readonly string[];
}

/** The allowed variables of our own environment, and those that the campaign sets. */
export function environmentValues(
  environment: { readonly allow: readonly string[]; readonly set: Readonly<Record<string, string>> },
  own: Readonly<Record<string, string | undefined>>,
): EnvironmentValues {
  const allowed = environment.allow.flatMap((name) => {
    const value = Object.hasOwn(own, name) ? own[name] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  const values = { ...Object.fromEntries(allowed), ...environment.set };
  return { values, unset: environment.allow.filter((name) => !Object.hasOwn(values, name)) };
}

/**
 * The file's text: one assignment a variable, in single quotes, in which a POSIX shell leaves everything as it is, line
 * ends included. Names that no shell takes are left out: the campaign's reader refuses them by name.
 */
export function environmentText(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .filter(([name, value]) => NAME.test(name) && !value.includes("\0"))
    .map(([name, value]) => `${name}='${value.toWellFormed().replaceAll("'", `'\\''`)}'\nexport ${name}\n`)
    .join("");
}
