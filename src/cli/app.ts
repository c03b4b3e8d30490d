import { GateError } from "../lib/errors.ts";
import type { Command, CommandOutput } from "./command.ts";
import { exitOfError } from "./exit.ts";

/** The command tree; a name of two words is a sub-command. Each command's code is loaded only when it runs: start-up is what every submit pays. */
export const COMMANDS: Readonly<Record<string, () => Promise<{ command: Command }>>> = {
  judge: () => import("./commands/judge.ts"),
  slurm: () => import("./commands/slurm.ts"),
  size: () => import("./commands/size.ts"),
  cards: () => import("./commands/cards.ts"),
  rightsize: () => import("./commands/rightsize.ts"),
  doctor: () => import("./commands/doctor.ts"),
  "doctor bridge": () => import("./commands/doctor-bridge.ts"),
  serve: () => import("./commands/serve.ts"),
  "policy apply": () => import("./commands/policy/apply.ts"),
  "policy check": () => import("./commands/policy/check.ts"),
  "policy explain": () => import("./commands/policy/explain.ts"),
  ledger: () => import("./commands/ledger.ts"),
  evaluate: () => import("./commands/evaluate.ts"),
  bridge: () => import("./commands/bridge/index.ts"),
  "bridge run": () => import("./commands/bridge/run.ts"),
  "bridge status": () => import("./commands/bridge/status.ts"),
  "bridge cancel": () => import("./commands/bridge/cancel.ts"),
  "bridge release": () => import("./commands/bridge/release.ts"),
  "bridge check": () => import("./commands/bridge/check.ts"),
  "bridge notes": () => import("./commands/bridge/notes.ts"),
  "bridge mounts": () => import("./commands/bridge/mounts.ts"),
  "bridge capabilities": () => import("./commands/bridge/capabilities.ts"),
  "bridge rewrite": () => import("./commands/bridge/rewrite.ts"),
  "ledger reconcile": () => import("./commands/ledger/reconcile.ts"),
  "ledger send": () => import("./commands/ledger/send.ts"),
  "ledger prune": () => import("./commands/ledger/prune.ts"),
  schema: () => import("./commands/schema.ts"),
  "print-lua": () => import("./commands/print-lua.ts"),
  "print-python": () => import("./commands/print-python.ts"),
  completion: () => import("./commands/completion.ts"),
  man: () => import("./commands/man.ts"),
  "self-test": () => import("./commands/self-test.ts"),
};

/** Runs one command line to its output; never throws. */
export async function runApp(words: readonly string[]): Promise<CommandOutput> {
  const [name, ...rest] = joined(words);
  // `slurm` answers a submit: whatever happens there, the answer is a decision and the exit code is 0.
  if (name === "slurm")
    return { ...(await (await import("./commands/slurm.ts")).runOpen(rest)), always: true };
  // A flag before the command is an error of its own, and one document all the same.
  const json = wantsJson(words);
  try {
    return await dispatch(name, rest);
  } catch (error) {
    return describeError(error, name, json);
  }
}

/** The words with a sub-command's two names as one. */
function joined(words: readonly string[]): readonly string[] {
  const name = `${words[0]} ${words[1]}`;
  return Object.hasOwn(COMMANDS, name) ? [name, ...words.slice(2)] : words;
}

/** What is to be said of a name that is no command by itself: the help of its sub-commands, or which is meant. */
async function groupHelp(name: string, rest: readonly string[]): Promise<CommandOutput | null> {
  const group = Object.keys(COMMANDS).filter((command) => command.startsWith(`${name} `));
  if (group.length === 0) return null;
  const next = rest[0];
  if (next === undefined || asksForHelp(rest)) {
    const { rootHelp } = await import("./help.ts");
    return { out: await rootHelp(name), exit: next === undefined ? 2 : 0 };
  }
  const { nearest } = await import("../lib/nearest.ts");
  const known = group.map((command) => command.slice(name.length + 1));
  const near = nearest(next, known);
  throw new GateError(
    "usage",
    `${name} has no sub-command ${next}`,
    near === null ? `It has ${known.join(", ")}.` : `Did you mean \`neurarch-gate ${name} ${near}\`?`,
  );
}

async function dispatch(name: string | undefined, rest: readonly string[]): Promise<CommandOutput> {
  // `help judge` is `judge --help`.
  if (name === "help" && rest[0] !== undefined && !rest[0].startsWith("-"))
    return dispatch(joined(rest)[0], ["--help"]);
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    const { rootHelp } = await import("./help.ts");
    return { out: await rootHelp(), exit: name === undefined ? 2 : 0 };
  }
  if (name === "--version" || name === "-v" || name === "version") {
    const { versionLine } = await import("./version.ts");
    return { out: `${versionLine()}\n`, exit: 0 };
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (load === undefined) {
    const group = await groupHelp(name, rest);
    if (group !== null) return group;
    const { nearest } = await import("../lib/nearest.ts");
    const near = nearest(name, Object.keys(COMMANDS));
    const kind = name.startsWith("-") ? "flag" : "command";
    throw new GateError(
      "usage",
      `unknown ${kind} ${name}`,
      near === null
        ? "`neurarch-gate --help` lists the commands."
        : `Did you mean \`neurarch-gate ${near}\`?`,
    );
  }
  const { command } = await load();
  if (asksForHelp(rest)) {
    const { commandHelp } = await import("./help.ts");
    return { out: await commandHelp(command), exit: 0 };
  }
  // A word that this command has no place for is meant as one of its sub-commands.
  const takesWords =
    command.raw === true || Object.values(command.args).some(({ type }) => type === "positional");
  if (!takesWords && rest[0] !== undefined && !rest[0].startsWith("-")) await groupHelp(name, rest);
  const { parseStrict } = await import("./strict.ts");
  if (command.raw === true) return command.run({ values: {}, lists: {}, switches: {}, words: rest });
  const input = parseStrict(rest, command.args, command);
  const output = await command.run(input);
  // What ends well has nothing on stderr but remarks.
  const remarks = input.switches.quiet === true && [0, 1, 3, 10].includes(output.exit);
  return remarks ? { ...output, err: "" } : output;
}

/** `--help` before a `--`; after it the word belongs to someone else. */
function asksForHelp(words: readonly string[]): boolean {
  for (const word of words) {
    if (word === "--") return false;
    if (word === "--help" || word === "-h") return true;
  }
  return false;
}

function wantsJson(words: readonly string[]): boolean {
  return words.some(
    (word, index) =>
      word === "--json" || word === "--output=json" || (word === "--output" && words[index + 1] === "json"),
  );
}

/** A sentence with one mark at its end: its own, or else a full stop. */
function ended(sentence: string): string {
  return /[?!]$/.test(sentence) ? sentence : `${sentence.replace(/\.+$/, "")}.`;
}

/** An error as one line for people, or as one JSON document where the caller reads JSON. */
async function describeError(
  error: unknown,
  command: string | undefined,
  json: boolean,
): Promise<CommandOutput> {
  const known =
    error instanceof GateError
      ? error
      : new GateError(
          "internal",
          `internal error: ${error instanceof Error ? error.message : String(error)}`,
          "This is a bug of neurarch-gate; report it with the command line.",
        );
  const { printable } = await import("../render/text.ts");
  const message = printable(known.message);
  const hint = known.hint === null ? null : printable(known.hint);
  if (json) {
    const { errorDocument } = await import("../render/json.ts");
    return {
      out: `${JSON.stringify(errorDocument(known.code, message, hint))}\n`,
      exit: exitOfError(known.code),
    };
  }
  const where =
    command === undefined || !Object.hasOwn(COMMANDS, command) ? "neurarch-gate" : `neurarch-gate ${command}`;
  // A report for a CI says it too, where one was asked for (`judge --output sarif`).
  const report = "report" in known && typeof known.report === "string" ? { out: known.report } : {};
  return {
    ...report,
    err: `${where}: ${ended(message)}${hint === null ? "" : ` ${hint}`}\n`,
    exit: exitOfError(known.code),
  };
}
