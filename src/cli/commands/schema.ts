import { GateError } from "../../lib/errors.ts";
import { nearest } from "../../lib/nearest.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";

/** Every schema by name; each is loaded only when it is asked for. */
const SCHEMAS: Readonly<Record<string, () => Promise<unknown>>> = {
  policy: async () => (await import("../../policy/schema.ts")).POLICY_SCHEMA,
  campaign: async () => (await import("../../bridge/campaign/json-schema.ts")).campaignSchema("campaign"),
  clusters: async () => (await import("../../bridge/campaign/json-schema.ts")).campaignSchema("clusters"),
  resources: async () => (await import("../../bridge/campaign/json-schema.ts")).campaignSchema("resources"),
  run: async () => (await import("../../bridge/campaign/json-schema.ts")).campaignSchema("run"),
};

export const command: Command = {
  name: "schema",
  description: "Print the JSON Schema of a file that is read, for editors",
  args: { name: { type: "positional", description: `one of ${Object.keys(SCHEMAS).join(", ")}` } },
  examples: [
    ["neurarch-gate schema policy > policy.schema.json", "of .neurarch.yml"],
    ["neurarch-gate schema campaign > campaign.schema.json", "of a campaign of the bridge"],
  ],
  run,
};

async function run({ words }: ParsedWords): Promise<CommandOutput> {
  const name = words[0]!;
  const load = Object.hasOwn(SCHEMAS, name) ? SCHEMAS[name] : undefined;
  if (load === undefined) {
    const near = nearest(name, Object.keys(SCHEMAS));
    throw new GateError(
      "usage",
      `there is no schema \`${name}\``,
      near === null ? `There is ${Object.keys(SCHEMAS).join(", ")}.` : `Did you mean \`${near}\`?`,
    );
  }
  return { out: `${JSON.stringify(await load(), null, 2)}\n`, exit: 0 };
}
