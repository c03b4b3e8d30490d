import { shown } from "../lib/shown.ts";
import { ambiguityOf } from "./cards.ts";
import type { CardTable, RequestReason } from "./types.ts";

/**
 * Why a name is no card on file, in the same words for every scheduler: what it may be, the nearest request, or
 * where the known ones are listed.
 */
export function unknownCard(
  name: string,
  count: number,
  table: CardTable,
): { readonly reason: RequestReason; readonly message: string } {
  const quoted = `'${shown(name)}'`;
  if (name.includes("$")) {
    const message = `No variable is filled in where cards are asked for, so ${quoted} stays as written.`;
    return { reason: "unresolved-variable", message };
  }
  const either = ambiguityOf(name);
  if (either !== null) {
    return {
      reason: "card-unknown",
      message: `${quoted} may be ${either}; the site's GPU map or --cards can say which.`,
    };
  }
  if (table.mapped === true) {
    const types = table.cards.map((card) => table.nameOf(card));
    const known = types.slice(0, 12).join(", ") + (types.length > 12 ? ", ..." : "");
    return {
      reason: "card-unknown",
      message: `The site's GPU map does not list ${quoted}; it has ${shown(known, 300)}.`,
    };
  }
  const near = suggestion(name, count, table);
  const hint =
    near === null ? "; `neurarch-gate cards` lists the cards that are." : `. Did you mean ${near}?`;
  return { reason: "card-unknown", message: `No capacity is on file for ${quoted}${hint}` };
}

/** The nearest request: `8xH100` is `H100:8`, `A10GG:2` is `A10G:2`. */
function suggestion(name: string, count: number, table: CardTable): string | null {
  const swapped = /^([0-9]+)\s*[x*]\s*(.+)$/i.exec(name) ?? /^(.+?)\s*[x*]\s*([0-9]+)$/i.exec(name);
  if (swapped !== null) {
    const [, a = "", b = ""] = swapped;
    const [number, card] = /^[0-9]+$/.test(a) ? [a, b] : [b, a];
    if (table.find(card) !== null) return `${shown(card)}:${Number(number) * count}`;
  }
  const nearest = table.nearest(name);
  return nearest === null ? null : `${nearest}:${count}`;
}
