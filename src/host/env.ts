/** The environment this process was started with. Read once; nothing else touches `process.env`. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/** The folder that relative paths start at; `/` where it was deleted under us. */
export function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return "/";
  }
}

export function userId(): number {
  return process.getuid?.() ?? 0;
}

/** Command-line words after the program's own name. A compiled binary has two words of its own before them. */
export function commandLine(): string[] {
  return process.argv.slice(2);
}

/** The running executable, for `print-lua` and doctors. */
export function executablePath(): string {
  return process.execPath;
}

/** The words that start this very program: the executable, and from its sources the script behind it. */
export function ownWords(): readonly string[] {
  return Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
}

export function isTerminal(stream: "stdout" | "stderr"): boolean {
  return process[stream].isTTY === true;
}

/** Whether what is on stdout may be coloured: a terminal reads it, and neither `NO_COLOR` nor `TERM` speaks against it. */
export function showsColour(): boolean {
  const { NO_COLOR, TERM } = process.env;
  return isTerminal("stdout") && (NO_COLOR ?? "") === "" && TERM !== "dumb";
}

/** Columns of the terminal behind stdout; null when it is none. */
export function terminalColumns(): number | null {
  return process.stdout.isTTY === true ? process.stdout.columns : null;
}

/** Whether what reads stdout can be expected to show more than ASCII, by the locale as POSIX reads it. */
export function showsUnicode(): boolean {
  const { LC_ALL, LC_CTYPE, LANG, TERM } = process.env;
  // The console of a bare machine has a font of a few hundred characters.
  if (TERM === "linux" || TERM === "dumb") return false;
  const locale = LC_ALL || LC_CTYPE || LANG || "";
  return locale === "" || /utf-?8/i.test(locale);
}
