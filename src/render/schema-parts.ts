/** A JSON Schema, or a part of one (2020-12). */
export type JsonSchema = { readonly [keyword: string]: unknown };

export const DIALECT = "https://json-schema.org/draft/2020-12/schema";

export const TEXT: JsonSchema = { type: "string" };
export const NUMBER: JsonSchema = { type: "number" };
export const COUNT: JsonSchema = { type: "integer", minimum: 0 };
export const FLAG: JsonSchema = { type: "boolean" };
/** A name that someone gives: something is in it, no control character, at most 200 characters. */
export const NAME: JsonSchema = {
  type: "string",
  maxLength: 200,
  pattern: "^(?=.*\\S)[^\\p{Cc}\\p{Cs}\\u2028\\u2029]*$",
};

export function orNull(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: "null" }] };
}

export function listOf(items: JsonSchema): JsonSchema {
  return { type: "array", items };
}

export function oneOf(values: readonly unknown[]): JsonSchema {
  return { enum: values };
}

/** An object of these keys and no others, all of them there but those named `optional`. */
export function objectOf(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((key) => !optional.includes(key));
  return { type: "object", additionalProperties: false, required, properties };
}

/** A document of ours: its name and version before its own keys. */
export function documentOf(
  name: string,
  title: string,
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const head = { schema: { const: `neurarch-gate/${name}` }, version: { const: 1 } };
  return { $schema: DIALECT, title, ...objectOf({ ...head, ...properties }, optional) };
}
