/** What stands in place of a secret. */
export const MASK = "***";
/** Shorter values are words like `1` or `yes`: masking them would take the text apart and hide nothing. */
const LEAST_SECRET = 4;
/** Longest line that is kept back until its end is there. */
const MAX_LINE = 262_144;
/** Lines of a private key at most; a key that is never closed does not swallow the rest for ever. */
const MAX_KEY_LINES = 200;

const KEY_BEGIN = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/;
const KEY_END = /-----END [A-Z0-9 ]*PRIVATE KEY-----/;

/** Secrets by their form, wherever they come from; what is kept is in the first group. */
const FORMS: readonly RegExp[] = [
  // Header fields: everything up to the line's end, since schemes and quotes differ.
  /\b((?:proxy-)?authorization["']?\s*[:=]\s*)\S.*$/gi,
  /\b((?:x-(?:api-key|auth-token)|(?:set-)?cookie)["']?\s*:\s*)\S.*$/gi,
  /\b(bearer\s+)[A-Za-z0-9._~+/=-]{4,}/gi,
  // NAME_TOKEN=..., "password": "...".
  /(\b[\w-]*(?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key)["']?\s*[=:]\s*["']?)[^\s"',;]{4,}/gi,
  // User and password in an address (RFC 3986, userinfo).
  /\b([a-z][a-z0-9+.-]*:\/\/)[^\s/?#@"']+@/gi,
  // Tokens by their issuers' prefixes.
  /()\bhf_[A-Za-z0-9]{8,}/g,
  /()\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,})/g,
  /()\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}/g,
  /()\bxox[a-z]-[A-Za-z0-9-]{8,}/g,
  /()\bsk-[A-Za-z0-9_-]{16,}/g,
  /()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
];

/**
 * Masks secrets in a stream of text: values of the environment, and what has the form of a credential. It works on
 * whole lines, so a part of a line is kept back until its end comes (`end` gives what is left); a line ends at a line
 * feed or, as progress bars have it, at a carriage return.
 */
export class Redactor {
  private readonly secrets: readonly string[];
  private rest = "";
  private keyLines = 0;
  private tooLong = false;

  /** `values`: the environment's, in any order. Those of less than 4 characters are no secrets. */
  constructor(values: readonly string[]) {
    this.secrets = secretsOf(values);
  }

  /** Takes text and gives what is complete of it, masked. */
  push(text: string): string {
    let out = "";
    let from = 0;
    for (let at = nextEnd(text, 0); at !== -1; at = nextEnd(text, from)) {
      out += this.line(this.rest + text.slice(from, at), text[at]!);
      this.rest = "";
      from = at + 1;
    }
    const more = text.slice(from);
    // Such a line is no message; its beginning cannot be told from a secret's.
    if (this.tooLong || this.rest.length + more.length > MAX_LINE) {
      this.tooLong = true;
      this.rest = "";
    } else this.rest += more;
    return out;
  }

  /** What is left when no more comes. */
  end(): string {
    const last = this.rest === "" && !this.tooLong ? "" : this.line(this.rest, "");
    this.rest = "";
    return last;
  }

  private line(line: string, ending: string): string {
    if (this.tooLong) {
      this.tooLong = false;
      return `(a line of more than ${MAX_LINE} characters is left out)${ending}`;
    }
    if (this.keyLines > 0) {
      const closing = KEY_END.exec(line);
      this.keyLines = closing === null ? this.keyLines - 1 : 0;
      return closing === null ? "" : `${this.masked(line.slice(closing.index + closing[0].length))}${ending}`;
    }
    const opening = KEY_BEGIN.exec(line);
    if (opening === null) return `${this.masked(line)}${ending}`;
    const before = this.masked(line.slice(0, opening.index));
    const behind = line.slice(opening.index + opening[0].length);
    const closing = KEY_END.exec(behind);
    if (closing === null) {
      this.keyLines = MAX_KEY_LINES;
      return `${before}${MASK}${ending}`;
    }
    return `${before}${MASK}${this.masked(behind.slice(closing.index + closing[0].length))}${ending}`;
  }

  private masked(line: string): string {
    let text = line;
    for (const secret of this.secrets) if (text.includes(secret)) text = text.replaceAll(secret, MASK);
    for (const form of FORMS)
      text = text.replace(form, (_, kept: string) => `${kept}${MASK}${kept.endsWith("://") ? "@" : ""}`);
    return text;
  }
}

/** A whole text with its secrets masked. */
export function redact(text: string, values: readonly string[]): string {
  const redactor = new Redactor(values);
  return redactor.push(text) + redactor.end();
}

function nextEnd(text: string, from: number): number {
  const feed = text.indexOf("\n", from);
  const carriage = text.indexOf("\r", from);
  if (feed === -1) return carriage;
  return carriage === -1 ? feed : Math.min(feed, carriage);
}

/** The texts by which values may stand in a line, longest first: as they are, line by line, in JSON and in an address. */
function secretsOf(values: readonly string[]): readonly string[] {
  const forms = values.flatMap((value) => {
    const lines = value.split(/[\r\n]/);
    const encoded = encodeURIComponent(value.toWellFormed());
    return [...lines, JSON.stringify(value).slice(1, -1), encoded, ...lines.map((line) => line.trim())];
  });
  const long = forms.filter((form) => form.trim().length >= LEAST_SECRET && !/[\r\n]/.test(form));
  return [...new Set(long)].sort((a, b) => b.length - a.length || (a < b ? -1 : 1));
}
