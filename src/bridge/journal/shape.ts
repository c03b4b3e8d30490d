import type { Sha256 } from "./record.ts";

/** What a value should have been; null when it is that. */
export type Check = (value: unknown) => string | null;

/** The first field of `value` that is unknown, missing or not what its check wants. */
export function shapeProblem(value: unknown, checks: Readonly<Record<string, Check>>): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "not an object";
  const fields = value as Record<string, unknown>;
  for (const key of Object.keys(fields))
    if (!Object.hasOwn(checks, key)) return `unknown key "${key.slice(0, 60)}"`;
  for (const [key, check] of Object.entries(checks)) {
    if (!Object.hasOwn(fields, key) && check(undefined) !== null) return `${key} is missing`;
    const wanted = check(fields[key]);
    if (wanted !== null) return `${key} is not ${wanted}`;
  }
  return null;
}

export const isText: Check = (value) => (typeof value === "string" && value !== "" ? null : "a text");
export const isWhole: Check = (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? null : "a whole number";
export const isCount: Check = (value) =>
  Number.isSafeInteger(value) && (value as number) > 0 ? null : "a number above 0";
export const isDigest: Check = (value) =>
  typeof value === "string" && /^[0-9a-f]{64}$/.test(value) ? null : "a SHA-256 in hex";

export const isString: Check = (value) => (typeof value === "string" ? null : "text");

/** For a field that a record may lack. */
export function orAbsent(check: Check): Check {
  return (value) => (value === undefined ? null : check(value));
}

export function isOneOf(values: readonly string[]): Check {
  return (value) => (values.includes(value as string) ? null : `one of ${values.join(", ")}`);
}

export function nullOr(check: Check): Check {
  return (value) => (value === null ? null : check(value));
}

export function listOf(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return "a list";
    for (const item of value) {
      const wanted = check(item);
      if (wanted !== null) return `a list of such (${wanted})`;
    }
    return null;
  };
}

/** Largest artifact that travels, decoded. */
const MOST_ARTIFACT_BYTES = 524_288;
const ARTIFACT: Record<string, Check> = {
  path: isText,
  size: isWhole,
  sha256: isDigest,
  dataBase64: (value) => (typeof value === "string" ? null : "text"),
};

/** What is wrong with a stored artifact: its shape, its base64, its size or its digest. */
export function artifactProblem(value: unknown, sha256: Sha256): string | null {
  if (value === null) return null;
  const shape = shapeProblem(value, ARTIFACT);
  if (shape !== null) return `artifact: ${shape}`;
  const { dataBase64, size, sha256: digest } = value as { dataBase64: string; size: number; sha256: string };
  if (size > MOST_ARTIFACT_BYTES) return "artifact: larger than 524,288 bytes";
  const bytes = strictBase64(dataBase64);
  if (bytes === null) return "artifact: dataBase64 is not base64";
  if (bytes.length !== size) return "artifact: size differs from its data";
  return sha256(bytes) === digest ? null : "artifact: sha256 differs from its data";
}

/** Only the one spelling that an encoder gives: padded, no blanks, no stray bits. */
function strictBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  try {
    const binary = atob(text);
    if (btoa(binary) !== text) return null;
    return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}
