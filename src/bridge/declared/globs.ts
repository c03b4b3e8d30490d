import type { Declared } from "../types.ts";

/** Most patterns of a request: they share its 4,096 bytes with everything else. */
export const MOST_GLOBS = 16;
/** Most characters of one. */
const MOST_CHARACTERS = 200;
/** Files and bytes that a request may ask for at most, and what it asks for unless it says so. */
export const MOST_FILES = 1000;
export const MOST_FILE_BYTES = 1_073_741_824;
export const USUAL_FILES = 100;
export const USUAL_FILE_BYTES = 67_108_864;
/** Longest path of a file that is returned, bytes (PATH_MAX of Linux). */
const MOST_PATH_BYTES = 4096;

/**
 * What is wrong with a pattern of files to be returned; null = nothing. Patterns are relative to the job's folder, and
 * whatever would lead out of it is refused by name. The text ends the sentence "the pattern GLOB ...".
 */
export function globProblem(glob: string): string | null {
  if (glob === "") return "is empty";
  if (glob.length > MOST_CHARACTERS) return `has more than ${MOST_CHARACTERS} characters`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\x00-\x1f\x7f]/.test(glob) || !glob.isWellFormed()) return "has a control character";
  if (glob.startsWith("/")) return "is absolute; write it from the evaluation's own folder on";
  const parts = glob.split("/");
  if (parts.includes("..")) return "has a .. part, and nothing outside the evaluation's folder is returned";
  if (parts.includes(".") || parts.includes("")) return "has an empty part or a . part";
  if (parts.some((part) => part !== "**" && part.includes("**"))) return "has ** within a name";
  return null;
}

/** Whether a path is one that a file may be returned under: relative, plain, within the folder. */
export function isPlainPath(path: string): boolean {
  if (path === "" || path.startsWith("/") || !path.isWellFormed()) return false;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\x00-\x1f\x7f]/.test(path) || new TextEncoder().encode(path).length > MOST_PATH_BYTES) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/**
 * A pattern as an extended regular expression without its anchors (POSIX XBD 9.4, and JavaScript's as well): `*` and
 * `?` stay inside one name, `**` as a whole part stands for folders, every other letter means itself. Both sides
 * match bytes, so `?` is one byte of a letter beyond ASCII.
 */
export function globExpression(glob: string): string {
  const parts = glob.split("/");
  return parts
    .map((part, index) => {
      const last = index === parts.length - 1;
      if (part === "**") return last ? ".+" : "([^/]+/)*";
      return `${Array.from(part, letterExpression).join("")}${last ? "" : "/"}`;
    })
    .join("");
}

function letterExpression(letter: string): string {
  if (letter === "*") return "[^/]*";
  if (letter === "?") return "[^/]";
  // In brackets every letter is itself, but for these two.
  if (letter === "^" || letter === "\\") return `\\${letter}`;
  return /[A-Za-z0-9_ ~@%=:,/\]-]/.test(letter) || letter > "\x7f" ? letter : `[${letter}]`;
}

/** The folders on a pattern's way, as expressions: a link in their place leads elsewhere. Up to the first `**`. */
export function folderExpressions(glob: string): readonly string[] {
  const parts = glob.split("/");
  const until = parts.indexOf("**");
  const folders = until === -1 ? parts.slice(0, -1) : parts.slice(0, until);
  return folders.map((_, index) => globExpression(folders.slice(0, index + 1).join("/")));
}

const bytesOf = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

/** Whether a path is among those that were asked for. */
export function isDeclared(path: string, globs: readonly string[]): boolean {
  const bytes = bytesOf(path);
  return globs.some((glob) => new RegExp(`^${globExpression(bytesOf(glob))}$`, "s").test(bytes));
}

/** What is wrong with a declaration as a whole; null = nothing. The text is a sentence without its end. */
export function declaredProblem({ globs, maxFiles, maxBytes }: Declared): string | null {
  if (globs.length === 0) return "no pattern of files is named";
  if (globs.length > MOST_GLOBS) return `more than ${MOST_GLOBS} patterns of files are named`;
  for (const glob of globs) {
    const problem = globProblem(glob);
    if (problem !== null) return `the pattern ${JSON.stringify(glob.slice(0, 80))} ${problem}`;
  }
  if (maxFiles < 1 || maxFiles > MOST_FILES) return `the most files are not from 1 to ${MOST_FILES}`;
  if (maxBytes < 1 || maxBytes > MOST_FILE_BYTES)
    return `the most bytes are not from 1 to ${MOST_FILE_BYTES}`;
  return null;
}
