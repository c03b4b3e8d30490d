import { plainScalar, ScalarError } from "./scalar.ts";
import type { YamlEntry, YamlMapValue, YamlValue } from "./value.ts";

/** Deeper than any task. */
const MAX_DEPTH = 20;
const KEY = /^([A-Za-z0-9_./~][A-Za-z0-9_./~-]*):(?: (.+))?$/;
const PLAIN = /^(?:[A-Za-z0-9_./~$]|-[0-9.])[^\t]*$/;
/** What a plain scalar does not hold without being something else. */
const NOT_PLAIN = /: |:$| #| $/;

interface Line {
  readonly indent: number;
  readonly text: string;
  /** Of `text`, in the whole. */
  readonly at: number;
}

/** Thrown where a text is more than this reader knows. */
const UNSURE = new Error("not the plain form");

/**
 * Reads the form that PyYAML's writer gives nearly every task of a request: mappings and lists in block style, each
 * value on the line of its key. Some ten times faster than the whole reader, which has to take what is not of that
 * form: null for a text in which anything else occurs. `readYaml` gives the same values for every text read here; it
 * keeps the nodes that a rewrite needs, and here are none.
 */
export function readBlock(text: string): YamlMapValue | null {
  // Other characters may be line ends, or what PyYAML refuses.
  if (/[^\x20-\x7e\n]/.test(text)) return null;
  try {
    return new BlockReader(linesOf(text)).document();
  } catch (error) {
    if (error === UNSURE || error instanceof ScalarError) return null;
    throw error;
  }
}

function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    const stop = end < 0 ? text.length : end;
    let at = from;
    while (at < stop && text[at] === " ") at++;
    if (at < stop) lines.push({ indent: at - from, text: text.slice(at, stop), at });
    from = stop + 1;
  }
  return lines;
}

class BlockReader {
  private next = 0;
  private readonly anchors = new Map<string, YamlValue>();
  private aliases = 0;

  constructor(private readonly lines: Line[]) {}

  document(): YamlMapValue {
    if (this.lines[0]?.indent !== 0) throw UNSURE;
    const map = this.map(0, 0);
    if (this.next < this.lines.length) throw UNSURE;
    return map;
  }

  private map(indent: number, depth: number): YamlMapValue {
    if (depth > MAX_DEPTH) throw UNSURE;
    const entries: YamlEntry[] = [];
    const seen = new Set<string>();
    const { at: start } = this.lines[this.next]!;
    for (let line = this.lines[this.next]; line?.indent === indent; line = this.lines[this.next]) {
      if (line.text.startsWith("- ")) break;
      const [, key, text] = KEY.exec(line.text) ?? [];
      // Of a repeated key the last value counts: the whole reader knows.
      if (key === undefined || seen.has(key)) throw UNSURE;
      seen.add(key);
      this.next++;
      const at = line.at + line.text.length - (text?.length ?? 0);
      const anchor = text === undefined ? undefined : /^&(id[0-9]+)$/.exec(text)?.[1];
      const { aliases } = this;
      const value =
        text === undefined || anchor !== undefined
          ? this.below(indent, at, depth)
          : this.scalar(text, at, indent);
      if (anchor !== undefined) this.name(anchor, value, this.aliases > aliases);
      entries.push({ key: { ...plainScalar(key), ...placed(line.at) }, value, pair: null });
    }
    // One line has one key at least, or it is none of this mapping.
    if (entries.length === 0) throw UNSURE;
    // `1` and `0x1` are one key in Python, `null` and `~` too.
    const others = entries.filter(({ key }) => key.kind !== "str");
    if (others.length > 1 || others.some(({ key }) => key.kind !== "null")) throw UNSURE;
    return { kind: "map", entries, set: false, ...placed(start) };
  }

  /**
   * The writer names what stands at several places, as the labels of all candidates do. Names within named values can
   * double themselves without end: the whole reader counts them.
   */
  private name(anchor: string, value: YamlValue, holdsAliases: boolean): void {
    if (holdsAliases || this.anchors.has(anchor) || (value.kind !== "map" && value.kind !== "list"))
      throw UNSURE;
    this.anchors.set(anchor, value);
  }

  /** What stands under a key that has nothing on its own line. */
  private below(indent: number, at: number, depth: number): YamlValue {
    const line = this.lines[this.next];
    const isList = line?.text.startsWith("- ") === true;
    if (line === undefined || line.indent < indent || (line.indent === indent && !isList))
      return { kind: "null", ...placed(at) };
    return isList ? this.list(line.indent, depth + 1) : this.map(line.indent, depth + 1);
  }

  private list(indent: number, depth: number): YamlValue {
    const items: YamlValue[] = [];
    const { at: start } = this.lines[this.next]!;
    for (let line = this.lines[this.next]; line?.indent === indent; line = this.lines[this.next]) {
      if (!line.text.startsWith("- ")) break;
      const text = line.text.slice(2);
      if (KEY.test(text)) {
        this.lines[this.next] = { indent: indent + 2, text, at: line.at + 2 };
        items.push(this.map(indent + 2, depth + 1));
      } else {
        this.next++;
        items.push(this.scalar(text, line.at + 2, indent));
      }
    }
    return { kind: "list", items, ...placed(start) };
  }

  private scalar(text: string, at: number, indent: number): YamlValue {
    // It goes on in the next line.
    if ((this.lines[this.next]?.indent ?? 0) > indent) throw UNSURE;
    if (text[0] === "*") {
      const named = this.anchors.get(text.slice(1));
      if (named === undefined) throw UNSURE;
      this.aliases++;
      return { ...named, at, alias: true };
    }
    if (text === "{}") return { kind: "map", entries: [], set: false, ...placed(at) };
    if (text === "[]") return { kind: "list", items: [], ...placed(at) };
    if (/^'(?:[^']|'')*'$/.test(text))
      return { kind: "str", value: text.slice(1, -1).replaceAll("''", "'"), ...placed(at) };
    if (/^"[^"\\]*"$/.test(text)) return { kind: "str", value: text.slice(1, -1), ...placed(at) };
    if (!PLAIN.test(text) || NOT_PLAIN.test(text)) throw UNSURE;
    return { ...plainScalar(text), ...placed(at) };
  }
}

function placed(at: number) {
  return { at, node: null, alias: false } as const;
}
