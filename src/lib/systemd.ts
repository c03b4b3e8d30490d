/** A word of an ExecStart line: quoted as systemd.syntax(7) has it, with `%` and `$` doubled. */
export function unitWord(word: string): string {
  return assignmentWord(word.replaceAll("$", "$$$$"));
}

/** As `unitWord` for `Environment=` and paths, where a `$` is a `$` (systemd.exec(5)). */
export function assignmentWord(word: string): string {
  const plain = word.replaceAll("%", "%%");
  if (/^[\w@%+=:,./[\]$-]+$/.test(plain)) return plain;
  const escaped = plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
  return `"${escaped}"`;
}
