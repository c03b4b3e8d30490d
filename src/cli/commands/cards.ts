import { loadSettings } from "../../gate/load.ts";
import { jsonText } from "../../render/json-line.ts";
import type { Command, CommandOutput, ParsedWords } from "../command.ts";
import { OUTPUT_FLAGS, SITE_FLAGS } from "../flags.ts";

export const command: Command = {
  name: "cards",
  description: "Print the card table in force, with prices and their source",
  args: {
    config: SITE_FLAGS.config,
    cards: SITE_FLAGS.cards,
    prices: SITE_FLAGS.prices,
    "gpu-map": SITE_FLAGS["gpu-map"],
    ...OUTPUT_FLAGS,
  },
  examples: [
    ["neurarch-gate cards", "the built-in table, or the site's"],
    ["neurarch-gate cards --gpu-map gpu-map.json", "as a cluster with its own type names sees it"],
  ],
  run,
};

async function run(input: ParsedWords): Promise<CommandOutput> {
  const { table } = await loadSettings(input);
  if (input.switches.json === true || input.values.output === "json") {
    const { cardsDocument } = await import("../../render/cards.ts");
    return { out: `${jsonText(cardsDocument(table))}\n`, exit: 0 };
  }
  const { humanCards } = await import("../../render/cards.ts");
  return { out: humanCards(table), exit: 0 };
}
