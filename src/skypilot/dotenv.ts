/**
 * `--env-file` as python-dotenv reads it, which is what `sky launch` calls: quotes, escapes, `export`,
 * comments, `${NAME}` and `${NAME:-default}`. A key without `=` has no value (null), and SkyPilot then
 * refuses the task; lines that cannot be read are passed over.
 *
 * @param environment the caller's own variables, which `${NAME}` falls back to.
 */
export function readDotenv(
  text: string,
  environment: Readonly<Record<string, string | undefined>>,
): Map<string, string | null> {
  const values = new Map<string, string | null>();
  const scan = new Scan(text.replace(/^\ufeff/, ""));
  while (!scan.done()) {
    const start = scan.at;
    const binding = readBinding(scan);
    if (binding === null) {
      scan.at = Math.max(scan.at, start);
      scan.take(/[^\r\n]*(?:\r|\n|\r\n)?/y);
      if (scan.at === start) break;
    } else if (binding.key !== null) {
      const { value } = binding;
      values.set(binding.key, value === null ? null : resolved(value, values, environment));
    }
  }
  return values;
}

/** A place in the text that only moves over what a sticky pattern matches. */
class Scan {
  at = 0;
  constructor(private readonly text: string) {}

  done(): boolean {
    return this.at >= this.text.length;
  }

  peek(): string {
    return this.text.charAt(this.at);
  }

  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.text);
    if (match !== null) this.at += match[0].length;
    return match;
  }
}

function readBinding(scan: Scan): { key: string | null; value: string | null } | null {
  scan.take(/\s*/y);
  if (scan.done()) return { key: null, value: null };
  scan.take(/(?:export[^\S\r\n]+)?/y);
  let key: string | null = null;
  if (scan.peek() !== "#") {
    const match = scan.peek() === "'" ? scan.take(/'([^']+)'/y) : scan.take(/([^=#\s]+)/y);
    if (match === null) return null;
    key = match[1]!;
  }
  scan.take(/[^\S\r\n]*/y);
  let value: string | null = null;
  const equals = scan.take(/=[^\S\r\n]*/y);
  if (equals !== null) {
    value = equals[0].length > 1 && scan.peek() === "#" ? "" : readValue(scan);
    if (value === null) return null;
  }
  scan.take(/(?:[^\S\r\n]*#[^\r\n]*)?/y);
  return scan.take(/[^\S\r\n]*(?:\r\n|\n|\r|$)/y) === null ? null : { key, value };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

function readValue(scan: Scan): string | null {
  switch (scan.peek()) {
    case "'":
      return unescaped(scan.take(/'((?:\\.|[^'\\])*)'/sy), /\\([\\'])/g);
    case '"':
      return unescaped(scan.take(/"((?:\\.|[^"\\])*)"/sy), /\\([\\'"abfnrtv])/g);
    case "":
    case "\n":
    case "\r":
      return "";
    default:
      return scan
        .take(/[^\r\n]*/y)![0]
        .replace(/\s+#.*/, "")
        .trimEnd();
  }
}

function unescaped(match: RegExpExecArray | null, pattern: RegExp): string | null {
  if (match === null) return null;
  return (match[1] ?? "").replace(pattern, (_, char: string) => ESCAPES[char] ?? char);
}

function resolved(
  value: string,
  values: ReadonlyMap<string, string | null>,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  return value.replace(/\$\{([^}:]*)(?::-([^}]*))?\}/g, (_, name: string, fallback: string | undefined) => {
    if (values.has(name)) return values.get(name) ?? "";
    return Object.hasOwn(environment, name) ? (environment[name] ?? "") : (fallback ?? "");
  });
}
