/** Fields that no verdict reads, and that hold most of a request's text: scripts, and the task once more. */
const SCRIPTS: ReadonlySet<string> = new Set(["setup", "run", "_user_specified_yaml"]);
/** Below this there is nothing to win. */
const SMALL_CHARS = 1_000;

/**
 * The task of an admin-policy request with its scripts taken out, for those who only read the rest; every other
 * value stays in its place. PyYAML's writer, whose text it is (`sky.utils.yaml_utils.dump_yaml_str`), starts a line
 * at the first column for a field of the task or an item of a list and for nothing else, and puts an empty line
 * between fields. A text of another form comes back as it is, and so does a script that is not quoted or a block.
 */
export function leanRequestText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: PyYAML refuses a text with one of these, wherever it stands
  if (text.length < SMALL_CHARS || /[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return text;
  const fields = fieldStarts(text);
  if (fields === null) return text;
  let lean = "";
  let copied = 0;
  fields.forEach((start, index) => {
    const colon = text.indexOf(": ", start);
    const end = fields[index + 1] ?? text.length;
    if (colon < 0 || colon >= end || !SCRIPTS.has(text.slice(start, colon))) return;
    const value = text.slice(colon + 2, end).trimEnd();
    if (!isWholeScalar(value)) return;
    // The line ends stay, so that places in what follows are those of the whole text.
    lean += `${text.slice(copied, colon + 2)}''${value.replace(/[^\n]+/g, "")}`;
    copied = colon + 2 + value.length;
  });
  return lean + text.slice(copied);
}

/** Where the task's fields start; null for a text that is not of the writer's form. */
function fieldStarts(text: string): number[] | null {
  const starts: number[] = [];
  for (let at = 0; at >= 0 && at < text.length; at = after(text.indexOf("\n", at))) {
    const char = text[at]!;
    if (char === " " || char === "\n") continue;
    if (char === "-" && text[at + 1] === " ") continue;
    if (!/[A-Za-z_]/.test(char) || (at > 0 && text[at - 2] !== "\n")) return null;
    starts.push(at);
  }
  return starts;
}

function after(lineEnd: number): number {
  return lineEnd < 0 ? -1 : lineEnd + 1;
}

/** Whether a value is one scalar from its first character to its last, in quotes or as a block. */
function isWholeScalar(value: string): boolean {
  // A line at the first column would be an item of a list.
  if (value.includes("\n-")) return false;
  if (value[0] === "'") {
    for (let at = value.indexOf("'", 1); at > 0; at = value.indexOf("'", at + 2)) {
      if (value[at + 1] !== "'") return at === value.length - 1;
    }
    return false;
  }
  if (value[0] === '"') {
    let at = 1;
    while (at < value.length && value[at] !== '"') at += value[at] === "\\" ? 2 : 1;
    return at === value.length - 1;
  }
  return /^[|>][-+]?\n/.test(value);
}
