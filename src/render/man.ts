import type { CommandNode, CommandTree } from "./command-tree.ts";

/** A section that is not made from the commands: paragraphs, or a list of terms. */
export interface ManSection {
  readonly title: string;
  readonly text?: string;
  readonly terms?: readonly (readonly [term: string, about: string])[];
}

/** The manual page, section 1, in the macros of `man`. `date` is the day of the build, `2026-11-30`. */
export function manPage(tree: CommandTree, date: string, sections: readonly ManSection[]): string {
  const { program, version, about, commands } = tree;
  const synopsis = commands.map(({ name, words }) => {
    const own = words.map(
      (word) => ` ${word.required ? "" : "["}\\fI${roff(upper(word.name))}\\fP${word.required ? "" : "]"}`,
    );
    return `.B ${roff(`${program} ${name}`)}\n[\\fIflags\\fP]${own.join("")}\n.br\n`;
  });
  return [
    `.TH ${roff(program.toUpperCase())} 1 "${date}" "${roff(`${program} ${version}`)}" "User Commands"\n`,
    `.SH NAME\n${roff(program)} \\- ${roff(lowered(about))}\n`,
    `.SH SYNOPSIS\n${synopsis.join("").replace(/\.br\n$/, "")}`,
    ...sections.slice(0, 1).map(sectionText),
    `.SH COMMANDS\n${commands.map((command) => commandText(command, program)).join("")}`,
    ...sections.slice(1).map(sectionText),
  ].join("");
}

function commandText({ name, about, flags, words, examples }: CommandNode, program: string): string {
  const listed = words.map(
    (word) => `.TP\n.I ${roff(upper(word.name))}\n${roff(sentence(word.about || word.name))}\n`,
  );
  const options = flags.map(({ name: flag, about: text, values, hint }) => {
    const value = values === null ? "" : ` \\fI${roff(hint || "VALUE")}\\fP`;
    return `.TP\n\\fB${roff(`--${flag}`)}\\fP${value}\n${roff(sentence(text))}\n`;
  });
  const shown = examples.map(
    ([line, what]) => `.PP\n.nf\n\\fB${roff(line)}\\fP\n.fi\n.RS\n${roff(what)}\n.RE\n`,
  );
  return `.SS ${roff(`${program} ${name}`)}\n${roff(sentence(about))}\n${[...shown, ...listed, ...options].join("")}`;
}

function sectionText({ title, text, terms }: ManSection): string {
  const paragraphs = (text ?? "").split("\n\n").filter((one) => one !== "");
  const list = (terms ?? []).map(([term, about]) => `.TP\n.B ${roff(term)}\n${roff(sentence(about))}\n`);
  return `.SH ${roff(title)}\n${paragraphs.map((one) => `${roff(one)}\n`).join(".PP\n")}${list.join("")}`;
}

/** A text that troff prints as it is: no escape, no hyphen for a dash, no line that begins a request. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/gm, "\\&$1");
}

function sentence(text: string): string {
  const first = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
  return /[.?!]$/.test(first) ? first : `${first}.`;
}

function lowered(text: string): string {
  return `${text.slice(0, 1).toLowerCase()}${text.slice(1)}`.replace(/\.$/, "");
}

function upper(name: string): string {
  return name.toUpperCase();
}
