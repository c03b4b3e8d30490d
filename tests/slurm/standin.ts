import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A program in place of neurarch-gate that records how it was called and then does as told. */
export class StandIn {
  readonly path: string;
  readonly #calls: string;

  /** `body` is sh; it runs after the call was recorded. */
  constructor(
    readonly folder: string,
    body: string,
    name = "stand-in",
  ) {
    mkdirSync(folder, { recursive: true });
    this.path = join(folder, name);
    this.#calls = join(folder, `${name}.calls`);
    writeFileSync(
      this.path,
      `#!/bin/sh\n{ printf '%s\\0' "$@"; printf '\\n'; } >>'${this.#calls}'\nenv >'${this.#calls}.env'\n${body}\n`,
    );
    chmodSync(this.path, 0o755);
  }

  /** One that answers with these lines and the closing `end`. */
  static answering(folder: string, lines: readonly string[], name?: string): StandIn {
    const text = [...lines, "end"].map((line) => `'${line.replaceAll("'", `'\\''`)}'`).join(" ");
    return new StandIn(folder, `printf '%s\\n' ${text}`, name);
  }

  /** The words of each call so far. */
  get calls(): string[][] {
    if (!existsSync(this.#calls)) return [];
    const text = readFileSync(this.#calls, "utf8");
    return text
      .split("\0\n")
      .filter((call) => call !== "")
      .map((call) => call.split("\0"));
  }

  /** The environment of the last call. */
  get env(): Record<string, string> {
    const rows = readFileSync(`${this.#calls}.env`, "utf8").split("\n");
    return Object.fromEntries(
      rows
        .filter((row) => row.includes("="))
        .map((row) => [row.slice(0, row.indexOf("=")), row.slice(row.indexOf("=") + 1)]),
    );
  }

  forget(): void {
    rmSync(this.#calls, { force: true });
  }
}

/** Stand-ins that hold a submit up do so for 20 s or more; a submit that took less was not held up by them. */
export const HELD_UP_MS = 15_000;
