export type Schema = Record<string, unknown>;

/** Whether a value agrees with a schema, for the keywords that ours use; an unknown keyword is a fault of the test. */
export function agrees(schema: Schema, value: unknown): boolean {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const map = isObject ? (value as Record<string, unknown>) : {};
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  return Object.entries(schema).every(([keyword, given]) => {
    switch (keyword) {
      case "$schema":
      case "title":
      case "description":
        return true;
      case "type":
        if (given === "array") return Array.isArray(value);
        if (given === "integer") return Number.isInteger(value);
        if (given === "null") return value === null;
        return given === "object" ? isObject : typeof value === given;
      case "const":
        return value === given;
      case "enum":
        return (given as unknown[]).includes(value);
      case "pattern":
        return typeof value !== "string" || new RegExp(given as string).test(value);
      case "minimum":
        return typeof value !== "number" || value >= (given as number);
      case "maximum":
        return typeof value !== "number" || value <= (given as number);
      case "exclusiveMinimum":
        return typeof value !== "number" || value > (given as number);
      case "minItems":
        return !Array.isArray(value) || value.length >= (given as number);
      case "minProperties":
        return !isObject || Object.keys(map).length >= (given as number);
      case "items":
        return !Array.isArray(value) || value.every((item) => agrees(given as Schema, item));
      case "required":
        return !isObject || (given as string[]).every((name) => Object.hasOwn(map, name));
      case "properties":
        return Object.entries(map).every(
          ([key, item]) => !Object.hasOwn(properties, key) || agrees(properties[key]!, item),
        );
      case "additionalProperties": {
        const others = Object.entries(map).filter(([key]) => !Object.hasOwn(properties, key));
        return given === false
          ? others.length === 0
          : others.every(([, item]) => agrees(given as Schema, item));
      }
      case "propertyNames":
        return Object.keys(map).every((key) => agrees(given as Schema, key));
      case "not":
        return !agrees(given as Schema, value);
      case "anyOf":
        return (given as Schema[]).some((one) => agrees(one, value));
      default:
        throw new Error(`the test does not know ${keyword}`);
    }
  });
}
