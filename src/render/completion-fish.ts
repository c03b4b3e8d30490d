import {
  type CommandNode,
  type CommandTree,
  firstWords,
  negated,
  type Values,
  WordLists,
} from "./command-tree.ts";
import { identifier } from "./completion-bash.ts";

/** Completion for fish 3, to be sourced or put into `~/.config/fish/completions/neurarch-gate.fish`. */
export function fishCompletion(tree: CommandTree): string {
  const { program, version, commands } = tree;
  const name = `__${identifier(program)}`;
  const heads = firstWords(tree);
  const lists = new WordLists(name);
  const lines = [
    ...heads.map(
      ({ word, about }) => `complete -c ${program} -n '${name}_at' -a ${word} -d ${quoted(about)}`,
    ),
    `complete -c ${program} -n '${name}_at' -l version -d 'Print version, commit and target'`,
    `complete -c ${program} -l help -d 'Print what it does'`,
    ...heads.flatMap(({ word, group }) =>
      group.map(
        (one) => `complete -c ${program} -n '${name}_at ${word}' -a ${one.word} -d ${quoted(one.about)}`,
      ),
    ),
    ...commands.flatMap((command) => {
      const group = heads.find(({ word }) => word === command.name)?.group ?? [];
      return commandLines(
        command,
        conditionOf(
          command.name,
          group.map(({ word }) => word),
          name,
        ),
        { program, name, lists },
      );
    }),
  ];
  return `# fish completion for ${program} ${version}
function ${name}_at -d 'Whether exactly these words stand before the one that is typed'
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv"
end
function ${name}_in -d 'Whether the command line begins with these words'
    set -l words (commandline -opc)
    test (count $words) -gt (count $argv); or return 1
    set -l last (math (count $argv) + 1)
    test "$words[2..$last]" = "$argv"
end
function ${name}_off
    string match -q -- '--no-*' (commandline -ct)
end
${lists
  .all()
  .map((list) => `function ${list.name}\n    string split ' ' '${list.words}'\nend\n`)
  .join("")}complete -c ${program} -f
${lines.join("\n")}
`;
}

/** When the flags of a command are offered: behind its words, and not behind those of a sub-command. */
function conditionOf(command: string, group: readonly string[], name: string): string {
  return [`${name}_in ${command}`, ...group.map((word) => `not ${name}_in ${command} ${word}`)].join(
    "; and ",
  );
}

function commandLines(
  command: CommandNode,
  condition: string,
  { program, name, lists }: { readonly program: string; readonly name: string; readonly lists: WordLists },
): string[] {
  const head = `complete -c ${program} -n '${condition}'`;
  const flags = command.flags.map(
    ({ name: flag, about, values }) => `${head} -l ${flag}${takes(values, lists)} -d ${quoted(about)}`,
  );
  const words = command.words
    .slice(0, 1)
    .flatMap(({ values }) => (values.kind === "any" ? [] : [`${head}${wordOf(values, lists)}`]));
  const off = negated(command).map(
    (flag) => `complete -c ${program} -n '${condition}; and ${name}_off' -l ${flag}`,
  );
  return [...flags, ...words, ...off];
}

function takes(values: Values | null, lists: WordLists): string {
  if (values === null) return "";
  switch (values.kind) {
    case "words":
      return ` -x -a ${listed(values.words, lists)}`;
    case "words-or-files":
      return ` -r -F -a ${listed(values.words, lists)}`;
    case "files":
      return " -r -F";
    case "folders":
      return " -x -a '(__fish_complete_directories)'";
    case "any":
      return " -x";
  }
}

function wordOf(values: Values, lists: WordLists): string {
  switch (values.kind) {
    case "words":
      return ` -a ${listed(values.words, lists)}`;
    case "words-or-files":
      return ` -F -a ${listed(values.words, lists)}`;
    case "folders":
      return " -a '(__fish_complete_directories)'";
    default:
      return " -F";
  }
}

function listed(words: readonly string[], lists: WordLists): string {
  const list = lists.nameOf(words);
  return quoted(list === null ? words.join(" ") : `(${list})`);
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
