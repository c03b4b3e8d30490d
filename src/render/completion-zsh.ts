import {
  type CommandNode,
  type CommandTree,
  firstWords,
  negated,
  type Values,
  WordLists,
} from "./command-tree.ts";
import { identifier } from "./completion-bash.ts";

/** Completion for zsh, to be sourced after `compinit` or put into a folder of `$fpath` as `_neurarch-gate`. */
export function zshCompletion(tree: CommandTree): string {
  const name = `_${identifier(tree.program)}`;
  const heads = firstWords(tree);
  const groups = heads.filter(({ group }) => group.length > 0);
  const lists = new WordLists(name);
  const cases = tree.commands.map((command) => commandCase(command, lists)).join("");
  return `#compdef ${tree.program}
# zsh completion for ${tree.program} ${tree.version}
${lists
  .all()
  .map((list) => `${list.name}() { compadd "$@" -- ${list.words} }\n`)
  .join("")}${name}() {
  local command=$words[2]
  local -a found specs
  if (( CURRENT == 2 )); then
    found=(${heads.map(({ word, about }) => described(word, about)).join(" ")})
    _describe -t commands command found
    found=('--help:Print what it does' '--version:Print version, commit and target')
    _describe -o -t options option found
    return
  fi
  case $command in
${groups
  .map(
    ({ word, group, alone }) => `    ${word})
      if (( CURRENT == 3 )); then
        found=(${group.map((one) => described(one.word, one.about)).join(" ")})
        _describe -t commands 'sub-command' found${alone ? "" : "\n        return"}
      elif [[ $words[3] == (${group.map((one) => one.word).join("|")}) ]]; then
        command="${word} $words[3]"
        shift words
        (( CURRENT-- ))
      fi ;;
`,
  )
  .join("")}  esac
  shift words
  (( CURRENT-- ))
  case $command in
${cases}    *) return 1 ;;
  esac
  specs+=('--help[Print what it does]')
  _arguments -S : $specs
}
if [[ $funcstack[1] == ${name} || $funcstack[1] == _${tree.program} ]]; then
  ${name} "$@"
else
  compdef ${name} ${tree.program}
fi
`;
}

/** The action that completes a value. */
function action(values: Values, lists: WordLists): string {
  switch (values.kind) {
    case "words":
      return lists.nameOf(values.words) ?? `(${values.words.join(" ")})`;
    case "words-or-files":
      return `_alternative "models\\:model\\:${lists.nameOf(values.words) ?? "_nothing"}" "files\\:file\\:_files"`;
    case "files":
      return "_files";
    case "folders":
      return "_files -/";
    case "any":
      return " ";
  }
}

function commandCase(command: CommandNode, lists: WordLists): string {
  const flags = command.flags.map(({ name, about, values, hint, repeatable }) => {
    const star = repeatable ? "*" : "";
    const text = bracketed(about);
    return quoted(
      values === null
        ? `${star}--${name}[${text}]`
        : `${star}--${name}=[${text}]:${hint.replaceAll(":", "\\:") || "VALUE"}:${action(values, lists)}`,
    );
  });
  const words = command.words.map(({ name, values, required }, index) =>
    quoted(`${index + 1}:${required ? "" : ":"}${name}:${action(values, lists)}`),
  );
  const off = negated(command).map((flag) => quoted(`--${flag}`));
  const turned = off.length === 0 ? "" : `      [[ $PREFIX == --no-* ]] && specs+=(${off.join(" ")})\n`;
  return `    '${command.name}')
      specs=(
${[...flags, ...words].map((spec) => `        ${spec}\n`).join("")}      )
${turned}      ;;
`;
}

function bracketed(text: string): string {
  return text.replace(/[[\]\\]/g, "\\$&");
}

function described(word: string, about: string): string {
  return quoted(`${word}:${about}`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
