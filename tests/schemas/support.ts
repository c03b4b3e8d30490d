import type { ValidateFunction } from "ajv";
import Ajv from "ajv/dist/2020";
import { SCHEMAS } from "../../src/cli/schemas/index.ts";

// `$schema`-relative keywords that stand beside a type in `if`/`oneOf` are no fault of a schema.
const ajv = new Ajv({ allErrors: true, strict: true, strictRequired: false, strictTypes: false });

/** What a document violates of the schema of that name. */
export async function violations(name: string, document: unknown): Promise<string[]> {
  const validate = await validator(name);
  validate(document);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

const known = new Map<string, ValidateFunction>();

export async function validator(name: string): Promise<ValidateFunction> {
  const found = known.get(name) ?? ajv.compile({ ...(await SCHEMAS[name]!()) });
  known.set(name, found);
  return found;
}
