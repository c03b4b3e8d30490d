import { type ArgsDef, type CommandDef, renderUsage } from "citty";
import { wrap } from "../render/text.ts";
import { ABOUT } from "./about.ts";
import { COMMANDS } from "./app.ts";
import type { Command } from "./command.ts";
import { version } from "./version.ts";

function asCitty(command: Command): CommandDef<ArgsDef> {
  return { meta: { name: command.name, description: command.description }, args: command.args };
}

/** citty colours by its own reading of the environment; here colour is decided once, and help has none. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
  return text.replace(/\u001B\[[0-9;]*m/g, "");
}

/** Widest column of flags; a longer flag has its description on the next line. */
const FLAG_COLUMN = 34;

/** Widest column of what they mean. */
const TEXT_COLUMN = 80;

/** citty sets its columns flush right as wide as the longest flag; here they are set left and stay narrow. */
function columns(text: string): string {
  return text
    .split("\n")
    .map((line) => {
      const match = /^ +(\S.*?) {2,}(\S.*?) *$/.exec(line);
      if (match === null) return line.trimEnd();
      const [, left = "", right = ""] = match;
      const gap =
        left.length > FLAG_COLUMN ? `\n  ${" ".repeat(FLAG_COLUMN)}` : " ".repeat(FLAG_COLUMN - left.length);
      const margin = `\n${" ".repeat(FLAG_COLUMN + 4)}`;
      return `  ${left}${gap}  ${wrap(right, TEXT_COLUMN).join(margin)}`;
    })
    .join("\n");
}

function exampleLines(examples: Command["examples"]): string {
  if (examples.length === 0) return "";
  return `EXAMPLES\n\n${examples.map(([line, what]) => `  ${line}\n      ${what}`).join("\n")}\n\n`;
}

/** The help of one command: examples first, then usage and flags. */
export async function commandHelp(command: Command): Promise<string> {
  const usage = plain(
    await renderUsage(asCitty(command), { meta: { name: "neurarch-gate", version: version() } }),
  );
  const [heading, ...rest] = usage.split("\n");
  return `${heading}\n\n${exampleLines(command.examples)}${columns(rest.join("\n").trim())}\n`;
}

/** The help of the program: what it is, three examples, the commands. With a `group` only its sub-commands. */
export async function rootHelp(group: string | null = null): Promise<string> {
  const subCommands: Record<string, CommandDef<ArgsDef>> = {};
  for (const [name, load] of Object.entries(COMMANDS)) {
    if (group === null || name.startsWith(`${group} `)) subCommands[name] = asCitty((await load()).command);
  }
  const usage = plain(
    await renderUsage({
      meta: { name: "neurarch-gate", version: version(), description: ABOUT },
      subCommands,
    }),
  );
  // citty lists every command in one line, and again below it.
  const [heading, ...rest] = usage.replace(/^(USAGE \S+) .*$/m, "$1 COMMAND").split("\n");
  if (group !== null) return `${heading}\n\n${columns(rest.join("\n").trim())}\n`;
  const examples = exampleLines([
    ["neurarch-gate judge --skypilot task.yaml", "judge a SkyPilot task file"],
    ["neurarch-gate judge --slurm job.sbatch", "judge a batch script"],
    ["neurarch-gate size Qwen/Qwen3-8B --batch 8 --explain", "size a model's training peak, term by term"],
  ]);
  return `${heading}\n\n${examples}${columns(rest.join("\n").trim())}\n`;
}
