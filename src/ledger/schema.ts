import { ENTRY_FORM } from "./read.ts";
import { ENTRY_VERSION } from "./types.ts";

type Schema = { readonly [keyword: string]: unknown };

function schemaOf(form: (typeof ENTRY_FORM)[keyof typeof ENTRY_FORM]): Schema {
  if (typeof form !== "string") return { enum: form };
  if (form === "id") return { type: "string", pattern: "^[\\w-]{8,64}$" };
  const optional = form.endsWith("?");
  const own: Schema = form.startsWith("text")
    ? { type: "string" }
    : form === "boolean"
      ? { type: "boolean" }
      : { type: "number", minimum: 0 };
  return optional ? { anyOf: [own, { type: "null" }] } : own;
}

const TIME = { type: "string", pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" };

/** A line of a ledger, made from the form that the reader reads by. What a later program adds is passed over. */
export const LEDGER_LINE_SCHEMA: Schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "One verdict as a line of a ledger",
  type: "object",
  required: Object.keys(ENTRY_FORM).filter((key) => key !== "id"),
  properties: {
    ...Object.fromEntries(Object.entries(ENTRY_FORM).map(([key, form]) => [key, schemaOf(form)])),
    v: { const: ENTRY_VERSION },
    time: TIME,
  },
};
