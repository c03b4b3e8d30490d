import { declaredProblem, USUAL_FILE_BYTES, USUAL_FILES } from "../../bridge/declared/globs.ts";
import type { Declared, EvaluationKind } from "../../bridge/types.ts";
import { areSupported, evaluate } from "../../daemon/client.ts";
import { beginFileBelow } from "../../host/caller-folder.ts";
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
    artifact: {
      type: "string",
      valueHint: "GLOB",
      description: "files that the evaluation writes in its folder and that come back; repeatable",
    },
    "artifact-dir": { type: "string", valueHint: "DIR", description: "folder that they are put into" },
    "artifact-files": { type: "string", valueHint: "N", description: "most of them (100; at most 1000)" },
    "artifact-bytes": {
      type: "string",
      valueHint: "N",
      description: "most bytes of all of them together (67108864; at most 1073741824)",
    },
  },
  completes: { kind: ["accuracy", "benchmark"] },
  examples: [
    ["neurarch-gate evaluate accuracy --socket /opt/bridge/bridge.sock", "end with 0, 1 (failed) or 130"],
    [
      "neurarch-gate evaluate benchmark --output-json /tmp/vibesys-framework-benchmark-1.json --socket PATH",
      "and write the benchmark's result file",
    ],
    [
      "neurarch-gate evaluate benchmark --artifact 'profile/*.json' --artifact-dir returned --socket PATH",
      "and put what matches below `returned`",
    ],
  ],
  run,
};

interface Asked {
  readonly kind: EvaluationKind;
  readonly given: readonly string[];
  readonly socketPath: string;
  readonly timeoutS: number | null;
  readonly declared: { readonly asked: Declared; readonly folder: string } | null;
}

async function run({ words }: ParsedWords): Promise<CommandOutput> {
  const { kind, given, socketPath, timeoutS, declared } = read(words);
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
    {
      kind,
      arguments: given,
      socketPath,
      callerState,
      timeoutS,
      ...(declared === null ? {} : { declared }),
    },
    {
      out: writeOut,
      err: writeError,
      isOutputGone: hasReaderGone,
      readToken: smallText,
      writeFile: writeAtomically,
      removeFile: removeDurably,
      beginFile: beginFileBelow,
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
  const own: Record<string, string> = {};
  const globs: string[] = [];
  const rest: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!;
    const [flag, inline] = word.startsWith("--") ? split(word) : [word, null];
    const hint = HINTS[flag];
    if (hint === undefined) {
      rest.push(word);
      continue;
    }
    const value = inline ?? words[++index];
    if (value === undefined || value === "")
      throw new GateError("usage", `${flag} needs a value`, `Write \`${flag} ${hint}\`.`);
    if (flag === "--artifact") globs.push(value);
    else own[flag] = value;
  }
  const [kind, ...given] = rest;
  if (kind === "profile") throw new GateError("usage", PROFILE);
  if (kind !== "accuracy" && kind !== "benchmark") {
    if (kind === undefined)
      throw new GateError("usage", "what is to be evaluated is missing", "Write accuracy or benchmark.");
    const near = nearest(kind, ["accuracy", "benchmark", ...Object.keys(HINTS)]);
    throw new GateError(
      "usage",
      kind.startsWith("-") ? `unknown flag ${kind}` : `${kind} is no evaluation`,
      near === null ? "Write accuracy or benchmark." : `Did you mean ${near}?`,
    );
  }
  const socketPath = own["--socket"] ?? (environment().NEURARCH_BRIDGE_SOCKET || null);
  if (socketPath === null)
    throw new GateError("usage", "--socket is missing", "Name the bridge's socket: `--socket PATH`.");
  const timeout = own["--timeout"];
  const timeoutS = timeout === undefined ? null : seconds(timeout);
  return { kind, given, socketPath, timeoutS, declared: declaredOf(globs, own) };
}

/** Our own flags, and what stands behind each. */
const HINTS: Readonly<Record<string, string>> = {
  "--socket": "PATH",
  "--timeout": "S",
  "--artifact": "GLOB",
  "--artifact-dir": "DIR",
  "--artifact-files": "N",
  "--artifact-bytes": "N",
};

function declaredOf(globs: readonly string[], own: Readonly<Record<string, string>>): Asked["declared"] {
  const folder = own["--artifact-dir"];
  if (globs.length === 0) {
    const without = Object.keys(own).find((flag) => flag.startsWith("--artifact-"));
    if (without === undefined) return null;
    throw new GateError("usage", `${without} is given and no --artifact`, "Write `--artifact GLOB`.");
  }
  if (folder === undefined)
    throw new GateError(
      "usage",
      "--artifact needs a folder to put the files into",
      "Write `--artifact-dir DIR`.",
    );
  const asked = {
    globs,
    maxFiles: whole(own, "--artifact-files", USUAL_FILES),
    maxBytes: whole(own, "--artifact-bytes", USUAL_FILE_BYTES),
  };
  const problem = declaredProblem(asked);
  if (problem !== null) throw new GateError("usage", problem);
  return { asked, folder };
}

function whole(own: Readonly<Record<string, string>>, flag: string, usual: number): number {
  const text = own[flag];
  if (text === undefined) return usual;
  if (!/^[1-9]\d{0,9}$/.test(text))
    throw new GateError("usage", `${flag} is \`${text}\`, not a whole number above 0`);
  return Number(text);
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
