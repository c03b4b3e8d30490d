import { valibotSchema } from "../../bridge/campaign/json-schema.ts";
import { FACT_SPECS, type FactSpec } from "../../facts/keys.ts";
import { SITE_SCHEMA } from "../../gate/site-file.ts";
import { DIALECT, FLAG, type JsonSchema, listOf, NAME, orNull } from "../../render/schema-parts.ts";
import { SITE_FLAGS } from "../flags.ts";

/*
 * The schemas of a site's files. What they cannot say the readers say: whether a name is that of a card, whether a card
 * that is not built in has its memory.
 */

const SCHEMA_KEY = { $schema: { type: "string" } };

const PRICE: JsonSchema = { type: "number", minimum: 0, exclusiveMaximum: 1_000_000 };
const MEMORY: JsonSchema = { type: "number", exclusiveMinimum: 0, maximum: 100_000 };

const CARD: JsonSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    id: { description: "The card's id, where it is no key." },
    gb: {
      ...MEMORY,
      description: "Memory in GB, as the scheduler hands it out; a built-in card has its own.",
    },
    usd_per_hour: { ...orNull(PRICE), description: "US dollars per card-hour; null = no price." },
    names: { ...listOf(NAME), minItems: 1, description: "Names it is asked by; the first one is suggested." },
    vendor: { enum: ["cuda", "rocm", "hpu", "other"] },
    candidate: { ...FLAG, description: "It is compared and suggested (true)." },
    slice: { ...FLAG, description: "A slice of a card, never sharded with others." },
  },
};

function tableOf(title: string, values: JsonSchema): JsonSchema {
  return {
    $schema: DIALECT,
    title,
    type: "object",
    properties: SCHEMA_KEY,
    propertyNames: NAME,
    additionalProperties: values,
  };
}

export const CARDS_FILE_SCHEMA = tableOf("A site's cards (--cards): id -> memory in GB, or what differs", {
  anyOf: [MEMORY, CARD],
});
export const PRICES_FILE_SCHEMA = tableOf(
  "A site's prices (--prices): card -> US dollars per card-hour",
  PRICE,
);
export const GPU_MAP_SCHEMA = tableOf("A site's GPU types (--gpu-map): type -> card", NAME);
export const PARTITION_MAP_SCHEMA: JsonSchema = {
  ...tableOf("The GPU type of untyped requests (--partition-map): partition -> type", {
    type: "string",
    minLength: 1,
  }),
  propertyNames: {},
};

/** Values of a fact that a site may set for jobs that do not name it. */
function defaultOf({ form, about, byDefaultText }: FactSpec): JsonSchema {
  const description = `${about} (${byDefaultText})`;
  switch (form.kind) {
    case "choice":
      return { description, enum: form.values };
    case "switch":
      return { description, anyOf: [{ enum: ["on", "off"] }, FLAG] };
    case "share":
      return {
        description,
        anyOf: [
          { type: "number", minimum: 0, exclusiveMaximum: 1 },
          { type: "string", pattern: "^(0(\\.[0-9]*)?|\\.[0-9]+)$" },
        ],
      };
    case "model":
      return { description, type: "string" };
    default:
      return {
        description,
        anyOf: [
          { type: "integer", minimum: 1, maximum: form.most },
          { type: "string", pattern: "^[1-9][0-9]*$" },
        ],
      };
  }
}

/** `/etc/neurarch/gate.toml`, made from what its reader reads by, with the words of the flags. */
export function siteSchema(): JsonSchema {
  const base = valibotSchema(SITE_SCHEMA) as { readonly properties: Record<string, JsonSchema> };
  const tables: Record<string, JsonSchema> = {
    cards: CARDS_FILE_SCHEMA,
    prices: PRICES_FILE_SCHEMA,
    gpu_map: GPU_MAP_SCHEMA,
    partition_map: PARTITION_MAP_SCHEMA,
  };
  const properties = Object.entries(base.properties).map(([key, schema]) => {
    const flag = key === "timeout_s" ? "timeout" : key.replaceAll("_", "-");
    const known = Object.hasOwn(SITE_FLAGS, flag) ? SITE_FLAGS[flag as keyof typeof SITE_FLAGS] : null;
    const words = known === null ? {} : { description: known.description };
    const table = tables[key];
    if (table === undefined) return [key, { ...schema, ...words }];
    const { $schema: _, title, properties: __, ...own } = table;
    return [key, { description: title, anyOf: [{ type: "string", pattern: "^/" }, own] }];
  });
  const facts = FACT_SPECS.filter(({ core }) => !core);
  return {
    $schema: DIALECT,
    title: "A site's settings (/etc/neurarch/gate.toml)",
    ...base,
    properties: {
      ...Object.fromEntries(properties),
      defaults: {
        description: "Usual values of facts that jobs rarely name.",
        type: "object",
        additionalProperties: false,
        properties: Object.fromEntries(facts.map((spec) => [spec.flag, defaultOf(spec)])),
      },
    },
  };
}
