import { GateError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";
import { hasControls, shown } from "../lib/shown.ts";
import type { Card, Vendor } from "./types.ts";

/** Where a value that a site gave is said to come from. */
export const SITE_CARDS = "the site's cards";
export const SITE_PRICES = "the site's prices";

/** Largest memory of one card that is believed, in GB: today's largest has 288. */
const MAX_CARD_GB = 100_000;
const VENDORS: readonly Vendor[] = ["cuda", "rocm", "hpu", "other"];

/** One entry of a `--cards` file; what it leaves out stays as the built-in card of that id has it. */
export interface SiteCard {
  readonly id: string;
  readonly gb?: number;
  readonly usdPerHour?: number | null;
  readonly names?: readonly string[];
  readonly vendor?: Vendor;
  readonly candidate?: boolean;
  readonly slice?: boolean;
}

const CARD_KEYS = ["id", "gb", "usd_per_hour", "names", "vendor", "candidate", "slice"] as const;

/**
 * Reads a `--cards` file: `{"H100-64": 64, "H100-96": {"gb": 96, "usd_per_hour": 3, "names": ["h100_96gb"]}}`, or a
 * list of such objects with an `id`. Throws `GateError("settings-invalid")` naming card and key.
 */
export function siteCards(raw: unknown): readonly SiteCard[] {
  if (raw === undefined || raw === null) return [];
  if (Array.isArray(raw)) return raw.map((entry, index) => siteCard(`entry ${index + 1}`, null, entry));
  if (!isObject(raw))
    throw invalid("The card file holds no object", 'Write it as {"CARD": {"gb": 80}, ...}.');
  return Object.entries(raw).map(([id, entry]) => siteCard(`card \`${shown(id)}\``, id, entry));
}

function siteCard(where: string, key: string | null, entry: unknown): SiteCard {
  const fields = typeof entry === "number" ? { gb: entry } : entry;
  if (!isObject(fields))
    throw invalid(`${where} is not an object`, 'Write {"gb": 80}, or its memory in GB alone.');
  for (const name of Object.keys(fields)) {
    if ((CARD_KEYS as readonly string[]).includes(name)) continue;
    const near = nearest(name, CARD_KEYS);
    const hint = near === null ? `The keys are ${CARD_KEYS.join(", ")}.` : `Did you mean \`${near}\`?`;
    throw invalid(`${where} has the unknown key \`${shown(name)}\``, hint);
  }
  const id = key ?? fields.id;
  if (!isName(id)) throw invalid(`${where} has no id`, 'Write "id": "H100-64", say.');
  const { gb, names, vendor } = fields;
  const price = fields.usd_per_hour;
  if (gb !== undefined && !(typeof gb === "number" && gb > 0 && gb <= MAX_CARD_GB))
    throw invalid(`\`gb\` of ${where} is not a memory in GB`, 'Write "gb": 80, say.');
  if (names !== undefined && !(Array.isArray(names) && names.length > 0 && names.every(isName)))
    throw invalid(`\`names\` of ${where} is not a list of names`, `Write "names": ["${shown(id)}"], say.`);
  if (vendor !== undefined && !VENDORS.some((known) => known === vendor))
    throw invalid(
      `\`vendor\` of ${where} is not one of ${VENDORS.join(", ")}`,
      'Write "vendor": "cuda", say.',
    );
  for (const flag of ["candidate", "slice"] as const) {
    if (fields[flag] !== undefined && typeof fields[flag] !== "boolean")
      throw invalid(`\`${flag}\` of ${where} is not true or false`, `Write "${flag}": true, say.`);
  }
  return {
    id,
    ...(gb === undefined ? {} : { gb: gb as number }),
    ...(price === undefined
      ? {}
      : { usdPerHour: price === null ? null : usd(price, `\`usd_per_hour\` of ${where}`) }),
    ...(names === undefined ? {} : { names: names as string[] }),
    ...(vendor === undefined ? {} : { vendor: vendor as Vendor }),
    ...(fields.candidate === undefined ? {} : { candidate: fields.candidate as boolean }),
    ...(fields.slice === undefined ? {} : { slice: fields.slice as boolean }),
  };
}

/** A site's entry laid over the built-in card of that id, or a card of its own; it becomes a candidate. */
export function withSiteCard(base: Card | null, site: SiteCard): Card {
  const gb = site.gb ?? base?.gb;
  if (gb === undefined) throw invalid(`card \`${shown(site.id)}\` has no \`gb\``, 'Write "gb": 80, say.');
  const priced = site.usdPerHour !== undefined;
  return {
    id: base?.id ?? site.id,
    gb,
    usdPerHour: priced ? (site.usdPerHour ?? null) : (base?.usdPerHour ?? null),
    names: site.names ?? base?.names ?? [site.id],
    vendor: site.vendor ?? base?.vendor ?? "cuda",
    candidate: site.candidate ?? true,
    slice: site.slice ?? base?.slice ?? false,
    source: {
      capacity: site.gb === undefined ? (base?.source.capacity ?? SITE_CARDS) : SITE_CARDS,
      price: priced ? (site.usdPerHour === null ? null : SITE_CARDS) : (base?.source.price ?? null),
    },
  };
}

/** Reads a `--prices` file: card id or any of its names -> USD per card-hour. */
export function sitePrices(raw: unknown): readonly (readonly [string, number])[] {
  if (raw === undefined || raw === null) return [];
  if (!isObject(raw)) throw invalid("The price file holds no object", 'Write it as {"H100": 2.5, ...}.');
  return Object.entries(raw).map(
    ([name, price]) => [name, usd(price, `the price of \`${shown(name)}\``)] as const,
  );
}

/** Reads a `--gpu-map` file: a site's GPU type -> card id or name. */
export function siteTypes(raw: unknown): readonly (readonly [string, string])[] {
  if (raw === undefined || raw === null) return [];
  if (!isObject(raw)) throw invalid("The GPU map holds no object", 'Write it as {"a100": "A100-80", ...}.');
  return Object.entries(raw).map(([type, name]) => {
    if (!isName(type))
      throw invalid("The GPU map has an empty or unprintable type", 'Write it as {"a100": "A100-80"}.');
    if (!isName(name))
      throw invalid(
        `\`${shown(type)}\` in the GPU map names no card`,
        `Write "${shown(type)}": "A100-80", say.`,
      );
    return [type.trim(), name] as const;
  });
}

function usd(value: unknown, what: string): number {
  if (typeof value === "number" && value >= 0 && value < 1e6) return value;
  throw invalid(`${what} is not an amount in USD per hour`, "Write a number such as 2.5.");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= 200 && !hasControls(value);
}

/** A site's file cannot be used: what and where, and what to write. */
export function invalid(message: string, hint: string): GateError {
  return new GateError("settings-invalid", message, hint);
}
