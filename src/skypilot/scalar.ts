/**
 * Plain scalars as PyYAML's safe loader types them, and Python's `str()` of what comes out: SkyPilot turns
 * the values of `envs` into text with it, so `010` reaches a job as `8` and `yes` as `True`.
 *
 * Source of the patterns: PyYAML 6 `resolver.py` (implicit resolvers) and `constructor.py`.
 */

export type YamlScalar =
  | { readonly kind: "null" }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "int"; readonly value: bigint }
  | { readonly kind: "float"; readonly value: number }
  | { readonly kind: "str"; readonly value: string }
  /** A date, a time or bytes: only its `str()` and its `repr()` matter here. */
  | { readonly kind: "other"; readonly type: string; readonly text: string; readonly repr: string };

const BOOL = /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/;
const FLOAT =
  /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const INT =
  /^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$/;
const NULL = /^(?:~|null|Null|NULL|)$/;
const TIMESTAMP =
  /^([0-9]{4})-([0-9][0-9]?)-([0-9][0-9]?)(?:(?:[Tt]|[ \t]+)([0-9][0-9]?):([0-9][0-9]):([0-9][0-9])(?:\.([0-9]*))?(?:[ \t]*(Z|([-+])([0-9][0-9]?)(?::([0-9][0-9]))?))?)?$/;
const DATE_ONLY = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/;

/** Python refuses to read longer decimal integers (`sys.int_info.default_max_str_digits`). */
const MAX_DIGITS = 4300;

/** A scalar that PyYAML refuses: the message is the middle of a sentence, without the text, which may be a secret. */
export class ScalarError extends Error {}

/** Types a plain (unquoted, untagged) scalar. @throws ScalarError where PyYAML raises. */
export function plainScalar(text: string): YamlScalar {
  if (BOOL.test(text)) return boolScalar(text);
  if (FLOAT.test(text)) return floatScalar(text);
  if (INT.test(text)) return intScalar(text);
  if (NULL.test(text)) return { kind: "null" };
  if (isTimestamp(text)) return timestampScalar(text);
  if (text === "=" || text === "<<") throw new ScalarError(`a lone ${text} is not a value`);
  return { kind: "str", value: text };
}

/** Types a scalar by its explicit tag (`!!int "8"`); null when the safe loader has no such tag. */
export function taggedScalar(tag: string, text: string): YamlScalar | null {
  switch (tag) {
    case "tag:yaml.org,2002:str":
      return { kind: "str", value: text };
    case "tag:yaml.org,2002:int":
      return intScalar(text);
    case "tag:yaml.org,2002:float":
      return floatScalar(text);
    case "tag:yaml.org,2002:bool":
      if (!BOOL.test(text)) throw new ScalarError("this is not a boolean");
      return boolScalar(text);
    case "tag:yaml.org,2002:null":
      return { kind: "null" };
    case "tag:yaml.org,2002:timestamp":
      return timestampScalar(text);
    case "tag:yaml.org,2002:binary":
      return bytesScalar(text);
    default:
      return null;
  }
}

function boolScalar(text: string): YamlScalar {
  return { kind: "bool", value: ["yes", "true", "on"].includes(text.toLowerCase()) };
}

function intScalar(text: string): YamlScalar {
  const bare = text.replaceAll("_", "");
  const negative = bare.startsWith("-");
  const digits = bare.replace(/^[-+]/, "");
  const value = intValue(digits);
  if (value === null) throw new ScalarError("this is not a whole number");
  return { kind: "int", value: negative ? -value : value };
}

function intValue(digits: string): bigint | null {
  if (digits.length > MAX_DIGITS) return null;
  if (/^0[bx]/.test(digits)) {
    return /^0b[01]+$|^0x[0-9a-fA-F]+$/.test(digits) ? BigInt(digits) : null;
  }
  if (/^0[0-7]+$/.test(digits)) return BigInt(`0o${digits.slice(1)}`);
  if (digits.includes(":")) {
    const parts = digits.split(":");
    if (!parts.every((part) => /^[0-9]+$/.test(part))) return null;
    return parts.reduce((total, part) => total * 60n + BigInt(part), 0n);
  }
  return /^(?:0|[1-9][0-9]*)$/.test(digits) ? BigInt(digits) : null;
}

function floatScalar(text: string): YamlScalar {
  const bare = text.replaceAll("_", "").toLowerCase();
  const sign = bare.startsWith("-") ? -1 : 1;
  const digits = bare.replace(/^[-+]/, "");
  if (digits === ".inf") return { kind: "float", value: sign * Number.POSITIVE_INFINITY };
  if (digits === ".nan") return { kind: "float", value: Number.NaN };
  const parts = digits.split(":");
  if (!parts.every((part) => /^(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?$/.test(part))) {
    throw new ScalarError("this is not a number");
  }
  return { kind: "float", value: sign * parts.reduce((total, part) => total * 60 + Number(part), 0) };
}

function isTimestamp(text: string): boolean {
  const match = TIMESTAMP.exec(text);
  return match !== null && (match[4] !== undefined || DATE_ONLY.test(text));
}

function timestampScalar(text: string): YamlScalar {
  const match = TIMESTAMP.exec(text);
  if (match === null) throw new ScalarError("this is not a date");
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const days = new Date(Date.UTC(2000, month ?? 0, 0));
  days.setUTCFullYear(year ?? 0, month ?? 0, 0);
  const inRange =
    year! >= 1 && month! >= 1 && month! <= 12 && day! >= 1 && day! <= days.getUTCDate() && hour! < 24;
  if (!inRange || minute! > 59 || second! > 59) throw new ScalarError("this is not a date");
  const date = `${pad(year!, 4)}-${pad(month!)}-${pad(day!)}`;
  if (match[4] === undefined) {
    return { kind: "other", type: "date", text: date, repr: `datetime.date(${year}, ${month}, ${day})` };
  }
  const micro = (match[7] ?? "").slice(0, 6).padEnd(6, "0");
  const zone =
    match[9] === undefined
      ? match[8] === undefined
        ? ""
        : "+00:00"
      : `${match[9]}${pad(Number(match[10]))}:${pad(Number(match[11] ?? 0))}`;
  const shown = `${date} ${pad(hour!)}:${pad(minute!)}:${pad(second!)}${micro === "000000" ? "" : `.${micro}`}${zone}`;
  return { kind: "other", type: "datetime", text: shown, repr: `datetime.datetime(${shown})` };
}

function bytesScalar(text: string): YamlScalar {
  let decoded: string;
  try {
    decoded = atob(text.replace(/[^A-Za-z0-9+/=]/g, ""));
  } catch {
    throw new ScalarError("the text of a !!binary value is not base64");
  }
  const shown = `b${pyRepr(decoded, true)}`;
  return { kind: "other", type: "bytes", text: shown, repr: shown };
}

function pad(value: number, width = 2): string {
  return String(value).padStart(width, "0");
}

/** Python's `str()` of a scalar: `True`, `None`, `1.5`, `1e+16`. */
export function pyScalar(scalar: YamlScalar): string {
  switch (scalar.kind) {
    case "null":
      return "None";
    case "bool":
      return scalar.value ? "True" : "False";
    case "int":
      return scalar.value.toString();
    case "float":
      return pyFloat(scalar.value);
    case "str":
      return scalar.value;
    case "other":
      return scalar.text;
  }
}

/** Python's `repr()` of a float: the shortest digits, an exponent below 1e-4 and from 1e16 on. */
export function pyFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent < -4 || exponent >= 16) {
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${pad(Math.abs(exponent))}`;
  }
  const plain =
    exponent < 0 ? value.toFixed(mantissa.replace(/[-.]/g, "").length - 1 - exponent) : String(value);
  return plain.includes(".") ? plain : `${plain}.0`;
}

/** Python's `repr()` of a string (or, with `bytes`, of a bytes object without its `b`). */
export function pyRepr(text: string, bytes = false): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let body = "";
  for (const char of text) {
    const code = char.codePointAt(0)!;
    if (char === quote || char === "\\") body += `\\${char}`;
    else if (char === "\n") body += "\\n";
    else if (char === "\r") body += "\\r";
    else if (char === "\t") body += "\\t";
    else if (code < 32 || code === 127 || (bytes && code > 127))
      body += `\\x${code.toString(16).padStart(2, "0")}`;
    else body += char;
  }
  return quote + body + quote;
}
