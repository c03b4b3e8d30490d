import { capacityGb } from "../lib/units.ts";
import type { Card, CardTable } from "../request/types.ts";
import { cut, printable } from "./text.ts";

/** The card table in force, for people: what is compared and suggested first, then what is judged as asked. */
export function humanCards(table: CardTable): string {
  const suggested = table.cards.filter((card) => card.candidate);
  const others = table.cards.filter((card) => !card.candidate);
  const lines = [
    "Compared, suggested and rewritten to:",
    ...rows(suggested, table),
    ...(others.length > 0 ? ["", "Judged when asked for:", ...rows(others, table)] : []),
    "",
    printable(`Prices are USD per card-hour: ${table.priceSource}.`),
  ];
  return `${lines.join("\n")}\n`;
}

function rows(cards: readonly Card[], table: CardTable): string[] {
  const cells = cards.map((card) => [
    cut(table.nameOf(card), 40),
    capacityGb(card.gb),
    card.usdPerHour === null ? "-" : `$${card.usdPerHour.toFixed(2)}`,
    card.vendor,
    cut(others(card, table), 60),
  ]);
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...cells.map((row) => row[column]!.length)));
  return cells.map((row) =>
    `  ${row.map((cell, column) => (column === 1 || column === 2 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column] ?? 0))).join("  ")}`.trimEnd(),
  );
}

/** The other names a card answers to. */
function others(card: Card, table: CardTable): string {
  const own = table.nameOf(card).toLowerCase();
  return [...new Set([card.id, ...card.names])].filter((name) => name.toLowerCase() !== own).join(", ");
}

/** What `cards --json` prints: every card in force, GB = 1e9 bytes, USD per card-hour. */
export function cardsDocument(table: CardTable): unknown {
  return {
    schema: "neurarch-gate/cards",
    version: 1,
    priceSource: table.priceSource,
    cards: table.cards.map((card) => ({ ...card, name: table.nameOf(card) })),
  };
}
