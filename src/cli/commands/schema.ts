import { GateError } from "../../lib/errors.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { SCHEMAS } from "../schemas/index.ts";
import { oneOfWords } from "../words.ts";

const NAMES = Object.keys(SCHEMAS);

export const command: Command = {
  name: "schema",
  description: "Print the JSON Schema of a file or message that is read or printed, for editors and programs",
  args: {
    name: { type: "positional", required: false, description: `one of ${NAMES.join(", ")}` },
    list: { type: "boolean", description: "the names, a line each with what it is of" },
  },
  completes: { name: NAMES },
  examples: [
    ["neurarch-gate schema policy > policy.schema.json", "of .neurarch.yml"],
    ["neurarch-gate schema campaign > campaign.schema.json", "of a campaign of the bridge"],
    ["neurarch-gate schema --list", "of what there is one"],
  ],
  run,
};

async function run({ words, switches }: ParsedWords): Promise<CommandOutput> {
  const [name] = words;
  if (switches.list === true) {
    if (name !== undefined)
      throw new GateError("usage", `--list takes no name, and \`${name}\` is one`, "Leave one out.");
    const width = Math.max(...NAMES.map((one) => one.length)) + 2;
    const lines: string[] = [];
    for (const one of NAMES) lines.push(`${one.padEnd(width)}${String((await SCHEMAS[one]!()).title)}\n`);
    return { out: lines.join(""), exit: 0 };
  }
  if (name === undefined)
    throw new GateError("usage", "NAME is missing: whose schema is meant", "`schema --list` has the names.");
  return {
    out: `${JSON.stringify(await SCHEMAS[oneOfWords("schema", name, NAMES)]!(), null, 2)}\n`,
    exit: 0,
  };
}
