import type * as v from "valibot";
import { GateError } from "../../lib/errors.ts";
import { RUN } from "./run-schema.ts";
import { CAMPAIGN, CLUSTERS, RESOURCES } from "./schemas.ts";

type JsonSchema = Record<string, unknown>;
/** What is read of a schema here, of whatever kind it is. */
interface Part {
  readonly kind: string;
  readonly type: string;
  readonly pipe?: readonly Part[];
  readonly entries?: Readonly<Record<string, Part>>;
  readonly wrapped?: Part;
  readonly item?: Part;
  readonly key?: Part;
  readonly value?: Part;
  readonly options?: readonly unknown[];
  readonly literal?: unknown;
  readonly requirement?: unknown;
  readonly description?: string;
}

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** The JSON Schemas of the campaign's files, for editors; made from what the readers themselves read by. */
export function campaignSchema(name: "campaign" | "clusters" | "resources" | "run"): JsonSchema {
  const [schema, title] = {
    campaign: [CAMPAIGN, "A campaign of the bridge (--campaign)"],
    clusters: [CLUSTERS, "The operator's profiles (clusters.toml)"],
    resources: [RESOURCES, "What an experiment needs (resources.toml)"],
    run: [RUN, "A run's record (run.json in its state folder)"],
  }[name] as [v.GenericSchema, string];
  return { $schema: DIALECT, title, ...jsonSchemaOf(schema as unknown as Part) };
}

/** The JSON Schema of what a valibot schema reads, without dialect and title. */
export function valibotSchema(schema: v.GenericSchema): JsonSchema {
  return jsonSchemaOf(schema as unknown as Part);
}

function jsonSchemaOf(part: Part): JsonSchema {
  if (part.pipe !== undefined) {
    const [first, ...more] = part.pipe;
    // A piped schema is its own first part; without its pipe it is what it was.
    const plain = { ...first! } as Part & { pipe?: readonly Part[] };
    const own = first!.pipe === part.pipe;
    if (own) delete (plain as { pipe?: unknown }).pipe;
    return { ...jsonSchemaOf(plain), ...merged(more, first!.type) };
  }
  switch (part.type) {
    case "strict_object": {
      const entries = Object.entries(part.entries!);
      const required = entries.filter(([, entry]) => entry.type !== "optional").map(([key]) => key);
      return {
        type: "object",
        additionalProperties: false,
        ...(required.length === 0 ? {} : { required }),
        properties: Object.fromEntries(entries.map(([key, entry]) => [key, jsonSchemaOf(entry)])),
      };
    }
    case "optional":
      return jsonSchemaOf(part.wrapped!);
    case "nullable":
      return { anyOf: [jsonSchemaOf(part.wrapped!), { type: "null" }] };
    case "record": {
      const key = jsonSchemaOf(part.key!);
      return {
        type: "object",
        ...("pattern" in key ? { propertyNames: { pattern: key.pattern } } : {}),
        additionalProperties: jsonSchemaOf(part.value!),
      };
    }
    case "array":
      return { type: "array", items: jsonSchemaOf(part.item!) };
    case "union":
      return { anyOf: part.options!.map((option) => jsonSchemaOf(option as Part)) };
    case "picklist":
      return { enum: part.options };
    case "literal":
      return { const: part.literal };
    case "unknown":
      return {};
    case "string":
    case "number":
    case "boolean":
      return { type: part.type };
    default:
      throw new GateError("internal", `no JSON Schema is known for ${part.type}`);
  }
}

/** What the checks behind a schema add to it. */
function merged(parts: readonly Part[], of: string): JsonSchema {
  return Object.assign({}, ...parts.map((part) => actionOf(part, of))) as JsonSchema;
}

function actionOf(part: Part, of: string): JsonSchema {
  switch (part.type) {
    case "description":
      return { description: part.description };
    case "regex":
      return { pattern: (part.requirement as RegExp).source };
    case "integer":
      return { type: "integer" };
    case "min_value":
      return { minimum: part.requirement };
    case "max_value":
      return { maximum: part.requirement };
    case "gt_value":
      return { exclusiveMinimum: part.requirement };
    case "min_length":
      return of === "string" ? { minLength: part.requirement } : { minItems: part.requirement };
    case "starts_with":
      return { pattern: `^${part.requirement}` };
    case "min_entries":
      return { minProperties: part.requirement };
    case "finite":
      return {};
    default:
      throw new GateError("internal", `no JSON Schema is known for ${part.type}`);
  }
}
