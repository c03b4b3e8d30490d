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

export function isTerminal(stream: "stdout" | "stderr"): boolean {
  return process[stream].isTTY === true;
}

/** Columns of the terminal behind stdout; null when it is none. */
export function terminalColumns(): number | null {
  return process.stdout.isTTY === true ? process.stdout.columns : null;
}
