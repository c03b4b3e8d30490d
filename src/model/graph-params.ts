import type { Json } from "./config.ts";

/** Thrown while a graph is read, and turned into the reader's result: a part of a sentence without a stop. */
export class GraphFault extends Error {}

/** A size that a component cannot do without and does not state. */
export class Absent extends GraphFault {}

/** Largest size that a component may state; beyond it a file is taken to be damaged. */
export const MOST = 1e9;

/** The parameters of one component; every number is checked when it is asked for. */
export class GraphParams {
  constructor(
    private readonly values: Json,
    /** The component, for messages: component `conv1` (conv2d). */
    readonly where: string,
  ) {}

  /** The first of the keys that is there; null without one. Throws `GraphFault` where it is no size. */
  size(...keys: readonly string[]): number | null {
    for (const key of keys) {
      const value = this.values[key];
      if (value !== undefined && value !== null) return this.checked(key, value);
    }
    return null;
  }

  /** `size` of a key that the component cannot do without. */
  needed(...keys: readonly string[]): number {
    const value = this.size(...keys);
    if (value === null) throw new Absent(`${this.where} names no ${keys[0]}`);
    return value;
  }

  /** A side a dimension: one number for all, or a list. */
  sides(key: string, dimensions: number, fallback: number): number[] {
    const value = this.values[key];
    if (Array.isArray(value)) {
      const list = value.map((side) => this.checked(key, side));
      if (list.length !== dimensions)
        throw new GraphFault(`${this.where} has ${list.length} numbers in ${key}, not ${dimensions}`);
      return list;
    }
    // "same" and "valid" are paddings too.
    const one =
      value === undefined || value === null || typeof value === "string"
        ? fallback
        : this.checked(key, value);
    return new Array<number>(dimensions).fill(one);
  }

  /** A size, or the product of a list of them. */
  product(key: string): number | null {
    const value = this.values[key];
    if (!Array.isArray(value)) return this.size(key);
    return value.reduce((all: number, side) => all * this.checked(key, side), 1);
  }

  has(key: string): boolean {
    return this.values[key] !== undefined && this.values[key] !== null;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.values[key];
    return typeof value === "boolean" ? value : fallback;
  }

  text(key: string): string | null {
    const value = this.values[key];
    return typeof value === "string" ? value : null;
  }

  /** A number of any size, for rates. */
  rate(key: string): number | null {
    const value = this.values[key];
    return typeof value === "number" && Number.isFinite(value) ? value : null;
  }

  /** A list of sizes; null where there is none. */
  shape(key: string): number[] | null {
    const value = this.values[key];
    if (!Array.isArray(value)) return null;
    return value.map((side) => this.checked(key, side));
  }

  private checked(key: string, value: unknown): number {
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > MOST)
      throw new GraphFault(`${this.where} has ${key} = ${told(value)}, not a whole number up to ${MOST}`);
    return value;
  }
}

/** A value as a message shows it. */
export function told(value: unknown): string {
  const plain = typeof value === "number" ? value : (JSON.stringify(value) ?? value);
  const text = typeof value === "string" ? `"${value}"` : String(plain);
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}
