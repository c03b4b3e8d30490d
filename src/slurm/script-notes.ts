import type { WordProblem } from "./sbatch-words.ts";

/** Something about a script worth telling. */
export interface ScriptNote {
  readonly code:
    | WordProblem["code"]
    | "directive-ignored"
    | "option-repeated"
    | "dos-line-endings"
    | "byte-order-mark"
    | "no-interpreter"
    | "null-character"
    | "foreign-directives"
    | "too-many-components";
  /** 1-based; null when it is about the whole script. */
  readonly line: number | null;
  readonly message: string;
}

/** Notes of one kind that are told; a script of a million stray lines is not worth a million sentences. */
const MAX_NOTES = 20;
/** How many characters behind the header are looked through for directives that sbatch does not see. */
const MAX_BEHIND = 1_048_576;
/** Characters at the beginning of a line that tell whether it is meant as a directive. */
const MAX_HEAD = 200;

/** The notes of one script, at most some of a kind, and one about the whole script only once. */
export class ScriptNotes {
  readonly #notes: ScriptNote[] = [];
  readonly #counts = new Map<ScriptNote["code"], number>();

  add(code: ScriptNote["code"], line: number | null, message: string): void {
    this.take({ code, line, message });
  }

  /** The same for a note whose message is made when it is read. */
  take(note: ScriptNote): void {
    const { code, line } = note;
    const count = this.#counts.get(code) ?? 0;
    if (count >= (line === null ? 1 : MAX_NOTES)) return;
    this.#counts.set(code, count + 1);
    this.#notes.push({ code, line, message: note.message });
  }

  /** In the order of their lines, those about the whole script first. */
  list(): readonly ScriptNote[] {
    return this.#notes.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0));
  }
}

/** The word of a comment that looks meant as a directive (`##SBATCH --gres=...`, `# NEURARCH model=...`); else null. */
function meantDirective(line: string): "#SBATCH" | "#NEURARCH" | null {
  const head = line.slice(0, MAX_HEAD);
  if (/^\s*#+\s*SBATCH\s*(?:-|hetjob\b|packjob\b)/i.test(head)) return "#SBATCH";
  if (/^\s*#+\s*NEURARCH\s*:?\s*[\w-]+\s*=/i.test(head)) return "#NEURARCH";
  return null;
}

/** Notes a comment line that someone may take for a directive and that is none. */
export function noteIgnored(line: string, number: number, notes: ScriptNotes): void {
  const word = meantDirective(line);
  if (word === null) return;
  const why = `only ${word} and a blank at the very beginning of a line count`;
  notes.add("directive-ignored", number, `The ${word} line ${number} is ignored: ${why}`);
}

/**
 * Notes directives behind the first command, which sbatch ignores. Lines of a here-document belong to the file that
 * the script writes, so they are passed over.
 */
export function noteIgnoredBehind(text: string, from: number, firstLine: number, notes: ScriptNotes): void {
  const end = Math.min(text.length, from + MAX_BEHIND);
  let at = from;
  let line = firstLine - 1;
  let document: string | null = null;
  while (at < end) {
    line++;
    const newline = text.indexOf("\n", at);
    const stop = newline < 0 ? text.length : newline;
    const head = text.slice(at, Math.min(stop, at + MAX_HEAD));
    if (document !== null) {
      if (head.trim() === document) document = null;
    } else if (/^\s*#/.test(head)) {
      const word = meantDirective(head);
      if (word !== null) {
        const why = `the script's commands begin on line ${firstLine}`;
        notes.add("directive-ignored", line, `The ${word} line ${line} is ignored: ${why}`);
      }
    } else
      document =
        /(?:^|[^<])<<-?\s*(?:(['"])([^'"]+)\1|\\?([\w.-]+))/.exec(head)?.slice(2).find(Boolean) ?? null;
    at = stop + 1;
  }
}
