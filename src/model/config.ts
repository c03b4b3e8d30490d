import { GateError } from "../lib/errors.ts";

/** Above these no size in a config is believable. They keep every count finite and every walk over layers short. */
const LARGEST_LAYERS = 10_000;
const LARGEST_WIDTH = 10_000_000;
const LARGEST_LENGTH = 1_000_000_000;
const LARGEST_RATIO = 1000;

/** What names of lengths and vocabularies hold. */
const LONG = ["vocab", "position", "length", "context", "n_ctx", "window"];

// By words and not by patterns: the first pattern of a process costs more than reading all of a config.
function largest(key: string): number {
  if (key.endsWith("layers") || key.endsWith("layer") || key === "depth") return LARGEST_LAYERS;
  for (const word of LONG) if (key.includes(word)) return LARGEST_LENGTH;
  return LARGEST_WIDTH;
}

export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value of the config as a message shows it: short, one line, no control characters. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object") return "an object";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const text = String(JSON.stringify(value)).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, "");
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}

/** The value under the first of `keys` in one section, with its key's full name. */
function valueIn(
  layer: Json,
  keys: string | readonly string[],
  prefix: string,
): { readonly key: string; readonly value: unknown } | null {
  const count = typeof keys === "string" ? 1 : keys.length;
  for (let i = 0; i < count; i++) {
    const key = typeof keys === "string" ? keys : keys[i]!;
    const value = layer[key];
    if (value !== undefined && value !== null) return { key: prefix + key, value };
  }
  return null;
}

/**
 * A config.json read with care. `null` counts as absent (Hugging Face writes `head_dim: null`), a nested
 * section wins over the flat keys of older files, and every value read remembers its key in `used`.
 *
 * Throws `GateError("config-invalid")` naming the key where a needed one is missing or senseless.
 */
export class ConfigReader {
  constructor(
    private readonly raw: Json,
    private readonly base: Json | null = null,
    private readonly where = "",
    private readonly defaults: Json | null = null,
    /** `hidden_size` -> `config key hidden_size`, or `default of the family`; shared by all sections. */
    readonly used = new Map<string, { readonly value: unknown; readonly from: string }>(),
  ) {}

  /**
   * The same config with the class defaults of its `model_type` beneath it: a nested section may leave out
   * any key (real llava-1.5 leaves out `hidden_size`), and Hugging Face then takes the class's own.
   */
  withDefaults(defaults: Json): ConfigReader {
    return new ConfigReader(this.raw, this.base, this.where, { ...this.defaults, ...defaults }, this.used);
  }

  /** The same config with `values` over its own: what a part must take from the whole. */
  withValues(values: Json): ConfigReader {
    return new ConfigReader({ ...this.raw, ...values }, this.base, this.where, this.defaults, this.used);
  }

  /** The key is there and null: some classes then derive the value instead of taking their default. */
  isNull(key: string): boolean {
    return this.raw[key] === null || (this.raw[key] === undefined && this.base?.[key] === null);
  }

  /** The first of `architectures`, or "". */
  architecture(): string {
    const first = this.list("architectures")?.[0];
    return typeof first === "string" ? first : "";
  }

  /** The value under the first of `keys` that is present and not null. */
  raw_(keys: string | readonly string[]): { key: string; value: unknown } | null {
    return valueIn(this.raw, keys, this.where) ?? (this.base && valueIn(this.base, keys, ""));
  }

  private default_(keys: string | readonly string[]): unknown {
    return this.defaults === null ? undefined : valueIn(this.defaults, keys, "")?.value;
  }

  has(keys: string | readonly string[]): boolean {
    return this.raw_(keys) !== null;
  }

  /** A positive whole number; `fallback` is the class default of the family, without one the key is needed. */
  size(keys: string | readonly string[], fallback?: number): number {
    const found = this.raw_(keys);
    const name = typeof keys === "string" ? keys : (keys[0] ?? "");
    if (found === null) {
      const stated = this.default_(keys);
      if (typeof stated === "number") return this.note(name, stated, "default of the family");
      if (fallback === undefined) {
        throw new GateError(
          "config-invalid",
          `the config has no \`${this.where}${name}\``,
          "Check that it is the model's own config.json.",
        );
      }
      return this.note(name, fallback, "default of the family");
    }
    const value = found.value;
    const limit = largest(found.key);
    if (typeof value !== "number" || !Number.isInteger(value) || value < 1 || value > limit) {
      throw new GateError(
        "config-invalid",
        `\`${found.key}\` is ${shown(value)}, not a whole number from 1 to ${limit}`,
        "Check that it is the model's own config.json.",
      );
    }
    return this.note(name, value, `config key ${found.key}`);
  }

  /** As `size`, but 0 is a value too (no experts, no token types). */
  sizeOrZero(keys: string | readonly string[], fallback: number): number {
    const found = this.raw_(keys);
    return found !== null && found.value === 0 ? 0 : this.size(keys, fallback);
  }

  /** As `size`, but absent, null, 0 and -1 all mean "none". */
  sizeOrNull(keys: string | readonly string[]): number | null {
    const found = this.raw_(keys);
    if (found === null) return typeof this.default_(keys) === "number" ? this.size(keys) : null;
    return found.value === 0 || found.value === -1 ? null : this.size(keys);
  }

  /** A finite number, or the fallback. */
  number(keys: string | readonly string[], fallback: number): number {
    const found = this.raw_(keys);
    return found !== null && typeof found.value === "number" && Number.isFinite(found.value)
      ? found.value
      : fallback;
  }

  /** A factor of a size: above 0 and finite, or the fallback where it is absent. */
  ratio(keys: string | readonly string[], fallback: number): number {
    const found = this.raw_(keys);
    if (found === null) return fallback;
    const value = found.value;
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0 || value > LARGEST_RATIO) {
      throw new GateError(
        "config-invalid",
        `\`${found.key}\` is ${shown(value)}, not a number above 0`,
        "Check that it is the model's own config.json.",
      );
    }
    return value;
  }

  flag(keys: string | readonly string[], fallback: boolean): boolean {
    const found = this.raw_(keys);
    const name = typeof keys === "string" ? keys : (keys[0] ?? "");
    if (found === null) {
      const stated = this.default_(keys);
      return this.note(name, typeof stated === "boolean" ? stated : fallback, "default of the family");
    }
    const value = found.value === 1 ? true : found.value === 0 ? false : found.value;
    if (typeof value !== "boolean") {
      throw new GateError(
        "config-invalid",
        `\`${found.key}\` is ${shown(value)}, not true or false`,
        "Check that it is the model's own config.json.",
      );
    }
    return this.note(name, value, `config key ${found.key}`);
  }

  text(keys: string | readonly string[], fallback: string): string {
    const found = this.raw_(keys);
    const value = found === null ? this.default_(keys) : found.value;
    return typeof value === "string" ? value : fallback;
  }

  list(keys: string | readonly string[]): readonly unknown[] | null {
    const found = this.raw_(keys);
    return found !== null && Array.isArray(found.value) ? found.value : null;
  }

  /** The nested section laid over the flat keys (nested wins); the flat keys alone where there is none. */
  section(key: string): ConfigReader {
    const nested = this.raw[key];
    return isObject(nested)
      ? new ConfigReader(nested, this.raw, `${this.where}${key}.`, null, this.used)
      : new ConfigReader({}, this.raw, "", null, this.used);
  }

  /** The nested section alone, or null. */
  only(key: string): ConfigReader | null {
    const nested = this.raw[key];
    return isObject(nested) ? new ConfigReader(nested, null, `${this.where}${key}.`, null, this.used) : null;
  }

  private note<T>(name: string, value: T, from: string): T {
    this.used.set(this.where + name, { value, from });
    return value;
  }
}
