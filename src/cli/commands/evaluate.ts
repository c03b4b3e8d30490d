import type { EvaluationKind } from "../../bridge/types.ts";
import { areSupported, evaluate } from "../../daemon/client.ts";
import { later, sha256Hex } from "../../host/client-host.ts";
import { removeDurably, writeAtomically } from "../../host/durable-file.ts";
import { onInterrupt } from "../../host/editor.ts";
import { environment } from "../../host/env.ts";
import { makePrivateFolder } from "../../host/folder.ts";
import { smallText } from "../../host/fs.ts";
import { hasReaderGone, writeError, writeOut } from "../../host/out.ts";
import { randomHex } from "../../host/random.ts";
import { GateError } from "../../lib/errors.ts";
import { nearest } from "../../lib/nearest.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { foreignCode } from "../exit.ts";

const CALLER_STATE = "VIBESYS_SKYPILOT_CALLER_STATE";
const PROFILE = "there is no remote profiler: a bridge runs the trusted accuracy and benchmark commands only";

export const command: Command = {
  name: "evaluate",
  description: "Ask a bridge for a trusted evaluation of the candidate, inside the editor's sandbox",
  raw: true,
  args: {
    kind: { type: "positional", description: "accuracy or benchmark" },
    flag: { type: "positional", required: false, description: "the benchmark's output flag" },
    path: { type: "positional", required: false, description: "/tmp/vibesys-framework-benchmark-*.json" },
    socket: {
      type: "string",
      valueHint: "PATH",
      description: "the bridge's socket (NEURARCH_BRIDGE_SOCKET)",
    },
    timeout: { type: "string", valueHint: "S", description: "cancel the evaluation after so many seconds" },
  },
  examples: [
    ["neurarch-gate evaluate accuracy --socket /opt/bridge/bridge.sock", "end with 0, 1 (failed) or 130"],
    [
      "neurarch-gate evaluate benchmark --output-json /tmp/vibesys-framework-benchmark-1.json --socket PATH",
      "and write the benchmark's result file",
    ],
  ],
  run,
};

interface Asked {
  readonly kind: EvaluationKind;
  readonly given: readonly string[];
  readonly socketPath: string;
  readonly timeoutS: number | null;
}

async function run({ words }: ParsedWords): Promise<CommandOutput> {
  const { kind, given, socketPath, timeoutS } = read(words);
  const callerState = environment()[CALLER_STATE];
  if (callerState === undefined || callerState === "")
    throw new GateError(
      "usage",
      `${CALLER_STATE} names no caller state directory`,
      "`neurarch-gate bridge mounts` prints the environment of a sandbox.",
    );
  if (!areSupported(kind, given))
    return { err: "neurarch-gate evaluate: unsupported evaluator arguments.\n", exit: 2 };
  const exit = await evaluate(
    { kind, arguments: given, socketPath, callerState, timeoutS },
    {
      out: writeOut,
      err: writeError,
      isOutputGone: hasReaderGone,
      readToken: smallText,
      writeFile: writeAtomically,
      removeFile: removeDurably,
      makeFolder: makePrivateFolder,
      newId: () => randomHex(16),
      sha256Text: sha256Hex,
      sha256Bytes: sha256Hex,
      onInterrupt,
      after: later,
    },
  );
  return { exit: exit === 130 ? foreignCode(exit) : exit };
}

/** Our own flags may stand anywhere; every other word is the evaluator's, in its order. */
function read(words: readonly string[]): Asked {
  let socketPath: string | null = environment().NEURARCH_BRIDGE_SOCKET || null;
  let timeoutS: number | null = null;
  const rest: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    const [flag, inline] = word.startsWith("--") ? split(word) : [word, null];
    if (flag !== "--socket" && flag !== "--timeout") {
      rest.push(word);
      continue;
    }
    const value = inline ?? words[++index];
    if (value === undefined || value === "")
      throw new GateError(
        "usage",
        `${flag} needs a value`,
        `Write \`${flag} ${flag === "--socket" ? "PATH" : "S"}\`.`,
      );
    if (flag === "--socket") socketPath = value;
    else timeoutS = seconds(value);
  }
  const [kind, ...given] = rest;
  if (kind === "profile") throw new GateError("usage", PROFILE);
  if (kind !== "accuracy" && kind !== "benchmark") {
    if (kind === undefined)
      throw new GateError("usage", "what is to be evaluated is missing", "Write accuracy or benchmark.");
    const near = nearest(kind, ["accuracy", "benchmark", "--socket", "--timeout"]);
    throw new GateError(
      "usage",
      kind.startsWith("-") ? `unknown flag ${kind}` : `${kind} is no evaluation`,
      near === null ? "Write accuracy or benchmark." : `Did you mean ${near}?`,
    );
  }
  if (socketPath === null)
    throw new GateError("usage", "--socket is missing", "Name the bridge's socket: `--socket PATH`.");
  return { kind, given, socketPath, timeoutS };
}

function split(word: string): readonly [string, string | null] {
  const equals = word.indexOf("=");
  return equals === -1 ? [word, null] : [word.slice(0, equals), word.slice(equals + 1)];
}

function seconds(text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value <= 0 || value > 1e7)
    throw new GateError("usage", `--timeout is \`${text}\`, not a number of seconds above 0`);
  return value;
}
