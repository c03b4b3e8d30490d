/** Characters of one directive line that are read; slurmctld takes no option value near that long. */
const MAX_LINE = 131_072;

/** `#SLURM`: a shorter comment is no directive, nor meant as one. */
const SHORTEST_DIRECTIVE = 6;

/**
 * The `#NEURARCH` lines of a batch script, by the rule of `readScript`: at submit time the filter hands over what sbatch made of
 * the `#SBATCH` lines, and every submit waits for this.
 */
export function readDirectives(text: string): { readonly text: string; readonly line: number }[] {
  const found: { text: string; line: number }[] = [];
  eachComment(text, text.startsWith("\uFEFF") ? 1 : 0, (comment, line) => {
    const ours = neurarchText(comment);
    if (ours !== null) found.push({ text: ours, line });
  });
  return found;
}

/** What follows `#NEURARCH` in a comment that begins with it; else null. */
export function neurarchText(comment: string): string | null {
  if (!comment.startsWith("#NEURARCH")) return null;
  const rest = comment.slice("#NEURARCH".length);
  return rest === "" || /^\s/.test(rest) ? rest.trim() : null;
}

/** Visits the comments of a script's head, up to the first command; says where that stands. */
export function eachComment(
  text: string,
  start: number,
  visit: (comment: string, line: number) => void,
): { end: number; line: number } {
  let at = start;
  let line = 0;
  while (at < text.length) {
    line++;
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    const first = firstInk(text, at, end);
    const isComment = first < end && text.charCodeAt(first) === 35;
    if (first < end && !isComment) return { end: at, line };
    if (isComment && end - first >= SHORTEST_DIRECTIVE) visit(lineAt(text, at, end), line);
    at = end + 1;
  }
  return { end: text.length, line };
}

/** Offset of the first character that is not blank, or `end`. */
function firstInk(text: string, at: number, end: number): number {
  let first = at;
  while (first < end && isBlank(text.charCodeAt(first))) first++;
  // A C string ends at a null character.
  return first < end && text.charCodeAt(first) === 0 ? end : first;
}

/** One line without its DOS line end, as the C string that sbatch sees: it ends at a null character. */
function lineAt(text: string, at: number, end: number): string {
  const whole = text.slice(at, Math.min(end, at + MAX_LINE)).replace(/\r$/, "");
  const nul = whole.indexOf("\0");
  return nul < 0 ? whole : whole.slice(0, nul);
}

/** `isspace` of the C locale. */
export function isBlank(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13);
}
