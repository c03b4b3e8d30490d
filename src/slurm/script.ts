import { shown } from "../lib/shown.ts";
import { eachComment, neurarchText } from "./comments.ts";
import { longOption } from "./sbatch-options.ts";
import { isSeparator, readSbatchWords, type SbatchWord, splitSbatchLine } from "./sbatch-words.ts";
import { noteIgnored, noteIgnoredBehind, type ScriptNote, ScriptNotes } from "./script-notes.ts";

export type { ScriptNote } from "./script-notes.ts";

/** What one component of a job asks for: Slurm's long names, values as written, and the line each stands on. */
export interface ScriptComponent {
  readonly options: Readonly<Record<string, string>>;
  readonly lines: Readonly<Record<string, number>>;
  /** The columns that their words begin at. */
  readonly columns: Readonly<Record<string, number>>;
}

export interface Script {
  /** One, or several of a heterogeneous job (`#SBATCH hetjob`). */
  readonly components: readonly ScriptComponent[];
  /** What follows `#NEURARCH`, with its line. */
  readonly neurarch: readonly { readonly text: string; readonly line: number }[];
  readonly notes: readonly ScriptNote[];
}

/**
 * Reads a batch script offline by sbatch's own rules (`_opt_batch_script` in Slurm's `src/sbatch/opt.c`): `#SBATCH`
 * (and `#SLURM`) in column one, up to the first line that is neither blank nor a comment; `hetjob` or `packjob`
 * begins a new component. `#NEURARCH` lines follow the same rule. Values never carry a `\r`.
 *
 * Scripts that sbatch would refuse (DOS line ends, no `#!`, a stray word) are read all the same, and the note says so.
 */
export function readScript(text: string): Script {
  const notes = new ScriptNotes();
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  if (start === 1) {
    notes.add(
      "byte-order-mark",
      1,
      "The script begins with a byte order mark, so sbatch sees no #! and refuses it",
    );
  }
  if (!text.startsWith("#!", start)) {
    notes.add(
      "no-interpreter",
      1,
      "The first line is not #! and the path of an interpreter, which sbatch refuses",
    );
  }
  if (text.includes("\r\n"))
    notes.add("dos-line-endings", null, "The script has DOS line ends (\\r\\n), which sbatch refuses");
  if (text.includes("\0"))
    notes.add("null-character", null, "The script holds a null character, which sbatch refuses");
  const header = readHeader(text, start, notes);
  noteIgnoredBehind(text, header.end, header.line, notes);
  const components: ScriptComponent[] = [];
  for (const words of header.components.slice(0, MOST_COMPONENTS))
    components.push(readComponent(words, components.at(-1) ?? null, notes));
  return { components, neurarch: header.neurarch, notes: notes.list() };
}

/** Components of a heterogeneous job: `MAX_HET_JOB_COMPS`. */
const MOST_COMPONENTS = 128;

interface Header {
  readonly components: readonly (readonly SbatchWord[])[];
  readonly neurarch: { text: string; line: number }[];
  /** Where the first command stands: offset and 1-based line. */
  readonly end: number;
  readonly line: number;
}

function readHeader(text: string, start: number, notes: ScriptNotes): Header {
  const components: SbatchWord[][] = [[]];
  const neurarch: { text: string; line: number }[] = [];
  const { end, line } = eachComment(text, start, (comment, number) => {
    const sbatch = /^#(?:SBATCH|SLURM)/.exec(comment);
    const ours = neurarchText(comment);
    if (sbatch !== null) readSbatch(comment, sbatch[0].length, number, components, notes);
    else if (ours !== null) neurarch.push({ text: ours, line: number });
    else if (/^#(?:PBS|BSUB)\s/.test(comment)) {
      notes.add(
        "foreign-directives",
        number,
        `Line ${number} is for another scheduler; sbatch may translate it, here it is not read`,
      );
    } else noteIgnored(comment, number, notes);
  });
  return { components, neurarch, end, line };
}

/** `from` is where the options begin, behind `#SBATCH`. */
function readSbatch(
  comment: string,
  from: number,
  line: number,
  components: SbatchWord[][],
  notes: ScriptNotes,
): void {
  const text = comment.slice(from);
  if (isSeparator(text)) {
    components.push([]);
    if (components.length <= MOST_COMPONENTS) return;
    const rest = `only the first ${MOST_COMPONENTS} are read`;
    notes.add("too-many-components", null, `The script has more components than a job can have; ${rest}`);
    return;
  }
  const { words, problem } = splitSbatchLine(text, line);
  const component = components.at(-1)!;
  for (const word of words) component.push({ ...word, column: from + (word.column ?? 1) });
  if (problem !== null) notes.add(problem.code, problem.line, problem.message);
}

function readComponent(
  words: readonly SbatchWord[],
  before: ScriptComponent | null,
  notes: ScriptNotes,
): ScriptComponent {
  const options: Record<string, string> = {};
  const lines: Record<string, number> = {};
  const columns: Record<string, number> = {};
  const { set, problems } = readSbatchWords(words);
  for (const problem of problems) notes.take(problem);
  for (const { option, value, line, column } of set) {
    const earlier = options[option.name];
    if (earlier !== undefined && earlier !== value) {
      const first = lines[option.name];
      const where = first === line ? `line ${line}` : `lines ${first} and ${line}`;
      notes.add(
        "option-repeated",
        line,
        `--${option.name} is given twice (${where}): the last one, ${shown(value)}, holds`,
      );
    }
    options[option.name] = value;
    lines[option.name] = line;
    columns[option.name] = column;
  }
  const own = { options, lines, columns };
  return before === null ? own : inherit(before, own);
}

/** What sbatch does not reset between components stays set for the next ones: `--time` does, `--gres` does not. */
function inherit(before: ScriptComponent, own: ScriptComponent): ScriptComponent {
  const kept = Object.keys(before.options).filter((name) => longOption(name)?.inherited === true);
  const under = <T>(theirs: Readonly<Record<string, T>>, ours: Readonly<Record<string, T>>) => ({
    ...Object.fromEntries(kept.map((name) => [name, theirs[name]!])),
    ...ours,
  });
  return {
    options: under(before.options, own.options),
    lines: under(before.lines, own.lines),
    columns: under(before.columns, own.columns),
  };
}
