import { PYTHON_TOKEN } from "./tokens.ts";

/**
 * The index of the word that an interpreter reads as source text (`sh -c TEXT`, `python -c TEXT`, `node -e TEXT`,
 * `env -S TEXT`), also behind `env` with its options and assignments; null where there is none.
 */
export function sourceIndex(words: readonly string[]): number | null {
  let index = 0;
  // `env env sh -c ...` is as good as `sh -c ...`.
  while (baseName(words[index]) === "env") {
    const inner = behindEnv(words, index + 1);
    if (inner.source !== null) return inner.source;
    if (inner.command === null) return null;
    index = inner.command;
  }
  const program = baseName(words[index]);
  if (/^(?:ba|da|z|k|mk|a)?sh$/.test(program)) return shellSource(words, index + 1);
  if (/^(?:python|pypy)\d*(?:\.\d+)*$/.test(program) || words[index] === PYTHON_TOKEN)
    return optionValue(words, index + 1, PYTHON);
  if (program === "node" || program === "nodejs") return optionValue(words, index + 1, NODE);
  return null;
}

function baseName(word: string | undefined): string {
  return word === undefined ? "" : word.slice(word.lastIndexOf("/") + 1);
}

/** GNU env's options that take the next word (env(1)); `-S` takes a text that env splits and runs. */
const ENV_WITH_VALUE = /^(?:-[iv0]*[uCa]|--unset|--chdir|--argv0)$/;

function behindEnv(
  words: readonly string[],
  from: number,
): { readonly source: number | null; readonly command: number | null } {
  const at = (index: number) => (index < words.length ? index : null);
  for (let index = from; index < words.length; index++) {
    const word = words[index]!;
    if (word === "--") {
      index++;
      while (/^[^=]+=/.test(words[index] ?? "")) index++;
      return { source: null, command: at(index) };
    }
    if (/^-[iv0]*S$/.test(word) || word === "--split-string") return { source: at(index + 1), command: null };
    if (/^-[iv0]*S./.test(word) || word.startsWith("--split-string="))
      return { source: index, command: null };
    if (ENV_WITH_VALUE.test(word)) index++;
    else if (!word.startsWith("-") && !/^[^=]+=/.test(word)) return { source: null, command: index };
  }
  return { source: null, command: null };
}

/** A shell's `-c`, alone or among other letters (`-lc`); a long or `-o` option may stand before it. */
function shellSource(words: readonly string[], from: number): number | null {
  for (let index = from; index < words.length; index++) {
    const word = words[index]!;
    if (word === "--" || !/^[-+]/.test(word) || word === "-") return null;
    if (/^-[A-Za-z]*c[A-Za-z]*$/.test(word)) {
      // Options may stand between -c and its text.
      let text = index + 1;
      while (/^[-+][A-Za-z]+$/.test(words[text] ?? "")) text++;
      if (words[text] === "--") text++;
      return text < words.length ? text : null;
    }
    if (
      /^[-+]o$/.test(word) ||
      word === "--rcfile" ||
      word === "--init-file" ||
      word === "-O" ||
      word === "+O"
    )
      index++;
  }
  return null;
}

interface Options {
  /** The option whose next word is source text. */
  readonly source: RegExp;
  /** The same with the text in the word itself. */
  readonly inline: RegExp | null;
  /** Options that take the next word for something else. */
  readonly withValue: RegExp;
}

const PYTHON: Options = {
  source: /^-[bBdEhiIOPqRsSuvVx]*c$/,
  inline: /^-[bBdEhiIOPqRsSuvVx]*c./,
  withValue: /^-[WX]$|^--check-hash-based-pycs$/,
};
const NODE: Options = {
  source: /^(?:-e|-p|-pe|--eval|--print)$/,
  inline: /^--(?:eval|print)=/,
  withValue: /^(?:-r|--require|--import|-C|--conditions|--loader|--env-file)$/,
};

function optionValue(words: readonly string[], from: number, options: Options): number | null {
  for (let index = from; index < words.length; index++) {
    const word = words[index]!;
    if (options.source.test(word)) return index + 1 < words.length ? index + 1 : null;
    if (options.inline?.test(word)) return index;
    // The program's own arguments begin with the first word that is no option.
    if (!word.startsWith("-") || word === "-" || word === "--" || word === "-m") return null;
    if (options.withValue.test(word)) index++;
  }
  return null;
}
