import {
  type CommandNode,
  type CommandTree,
  firstWords,
  negated,
  type Values,
  WordLists,
} from "./command-tree.ts";

/**
 * Completion for bash 3.2 and later, without the bash-completion package. Every list stands in the script itself, so
 * that no key press starts a process.
 */
export function bashCompletion(tree: CommandTree): string {
  const heads = firstWords(tree);
  const groups = heads.filter(({ group }) => group.length > 0);
  const name = identifier(tree.program);
  const lists = new WordLists(`_${name}`);
  const cases = tree.commands.map((command) => commandCase(command, name, lists)).join("");
  return `# bash completion for ${tree.program} ${tree.version}: source it, or put it into
# ~/.local/share/bash-completion/completions/${tree.program}
${lists
  .all()
  .map((list) => `${list.name}='${list.words}'\n`)
  .join("")}_${name}_words() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -W "$1" -- "$cur")
}
_${name}_paths() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$1" -- "$cur")
  compopt -o filenames 2>/dev/null
}
_${name}() {
  local IFS=$' \\t\\n' cur=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  local command=\${COMP_WORDS[1]} flag='' prefix='' flags=- off=''
  COMPREPLY=()
  # Bash takes = and : for words of their own, unless someone took them out of COMP_WORDBREAKS.
  if [[ $cur == : || $before == : ]]; then return; fi
  if [[ $cur == = ]]; then cur='' flag=$before
  elif [[ $before == = ]]; then flag=\${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $cur == --*=* ]]; then flag=\${cur%%=*} prefix=\${cur%%=*}= cur=\${cur#*=}
  elif [[ $before == --* ]]; then flag=$before
  fi
  if (( COMP_CWORD == 1 )); then
    _${name}_words '${heads.map(({ word }) => word).join(" ")} --help --version'
    return
  fi
  case $command in
${groups
  .map(
    ({ word, group, alone }) => `    ${word})
      if (( COMP_CWORD == 2 )); then _${name}_words '${group.map((one) => one.word).join(" ")}'${alone ? "" : "; return"}; fi
      if (( COMP_CWORD > 2 )); then case \${COMP_WORDS[2]} in ${group.map((one) => one.word).join("|")}) command="${word} \${COMP_WORDS[2]}" ;; esac; fi ;;
`,
  )
  .join("")}  esac
  case $command in
${cases}    *) return ;;
  esac
  if [[ -n $prefix ]]; then COMPREPLY=("\${COMPREPLY[@]/#/$prefix}"); return; fi
  [[ $flags != - ]] || return
  if [[ $cur == --no-* ]]; then _${name}_words "$off"; fi
  if [[ $cur == -* || ($cur == '' && \${#COMPREPLY[@]} == 0) ]]; then _${name}_words "$flags --help"; fi
}
complete -F _${name} ${tree.program}
`;
}

/** One command: what each flag's value may be, else what its words may be, and its flags. */
function commandCase(command: CommandNode, name: string, lists: WordLists): string {
  const taking = command.flags.flatMap(({ name: flag, values }) =>
    values === null ? [] : [{ flag, code: valueCode(values, name, lists) }],
  );
  const codes = [...new Set(taking.map(({ code }) => code))];
  const cases = codes.map((code) => {
    const flags = taking.filter((one) => one.code === code).map(({ flag }) => `--${flag}`);
    return `        ${flags.join("|")}) ${code};;\n`;
  });
  const words = command.words[0] === undefined ? "" : valueCode(command.words[0].values, name, lists);
  const own = words === "" ? "" : `          if [[ $cur != -* ]]; then ${words}; fi\n`;
  return `    '${command.name}')
      case $flag in
${cases.join("")}        *)
${own}          flags='${command.flags.map(({ name: flag }) => `--${flag}`).join(" ")}'
          off='${negated(command)
            .map((flag) => `--${flag}`)
            .join(" ")}' ;;
      esac ;;
`;
}

function valueCode(values: Values, name: string, lists: WordLists): string {
  const listed = (words: readonly string[]) => {
    const list = lists.nameOf(words);
    return `_${name}_words ${list === null ? `'${words.join(" ")}'` : `"$${list}"`}`;
  };
  switch (values.kind) {
    case "words":
      return `${listed(values.words)} `;
    case "words-or-files":
      return `${listed(values.words)}; _${name}_paths -f `;
    case "files":
      return `_${name}_paths -f `;
    case "folders":
      return `_${name}_paths -d `;
    case "any":
      return "";
  }
}

/** A program's name as a part of a shell function's. */
export function identifier(program: string): string {
  return program.replace(/\W/g, "_");
}
