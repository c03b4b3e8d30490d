// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a unit's line cannot hold
const CONTROL = /[\x01-\x1f\x7f]/g;

/** A word of an ExecStart line: quoted as systemd.syntax(7) has it, with `%` and `$` doubled. */
export function unitWord(word: string): string {
  return assignmentWord(word.replaceAll("$", "$$$$"));
}

/** As `unitWord` for `Environment=` and paths, where a `$` is a `$` (systemd.exec(5)). */
export function assignmentWord(word: string): string {
  const plain = word.replaceAll("%", "%%");
  if (/^[\w@%+=:,./[\]$-]+$/.test(plain)) return plain;
  const escaped = plain
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    // systemd ends a line at CR and NUL as well.
    .replace(CONTROL, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `"${escaped}"`;
}
