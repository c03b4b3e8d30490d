import {
  type Alias,
  Composer,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { shown } from "../lib/shown.ts";
import { lenientTokens } from "./lexer.ts";
import { placeOf, syntaxError, Unreadable } from "./problem.ts";
import { plainScalar, pyScalar, ScalarError, taggedScalar, type YamlScalar } from "./scalar.ts";
import { pyPairs, type YamlEntry, type YamlValue } from "./value.ts";

/** A task carries its setup and run scripts, twice in an admin-policy request; more than this is not a task. */
const MAX_CHARS = 4 << 20;
const MAX_DEPTH = 100;
const MAX_DOCUMENTS = 1000;
/** Values that the aliases of one document may stand for in all: stops a text that doubles itself. */
const MAX_WEIGHT = 1_000_000;

const MERGE = "tag:yaml.org,2002:merge";

/**
 * Reads all documents of a text as SkyPilot does, with PyYAML's safe loader (YAML 1.1); an empty document is a
 * null value. The nodes of the `yaml` package stay with the values, so that a rewrite can change single ranges.
 *
 * @param refuseDuplicates SkyPilot refuses a repeated key in a file, and takes the last one in a request.
 * @throws Unreadable
 */
export function readYaml(text: string, refuseDuplicates: boolean): YamlValue[] {
  if (text.length > MAX_CHARS) {
    throw new Unreadable(`The text has ${text.length} characters; at most ${MAX_CHARS} are read as YAML.`);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what PyYAML's reader refuses
  const control = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/.exec(text);
  if (control !== null) throw syntaxError(text, control.index, "a control character stands in it");
  const tokens: CST.Token[] = [];
  for (const token of lenientTokens(text)) tokens.push(token);
  refuseDepth(text, tokens);
  const composer = new Composer({
    version: "1.1",
    schema: "failsafe",
    merge: false,
    uniqueKeys: false,
    strict: false,
    resolveKnownTags: false,
    keepSourceTokens: true,
    prettyErrors: false,
    logLevel: "silent",
  });
  const documents: YamlValue[] = [];
  for (const document of composer.compose(tokens, false, text.length)) {
    if (documents.length === MAX_DOCUMENTS) {
      throw new Unreadable(`The text holds more than ${MAX_DOCUMENTS} YAML documents.`);
    }
    const error = document.errors[0];
    if (error !== undefined) throw syntaxError(text, error.pos[0], lowered(error.message));
    documents.push(new Reader(text, refuseDuplicates).read(document.contents as Node | null));
  }
  return documents;
}

/** An error of the `yaml` package as the end of a sentence, without the text that it quotes: that may be a secret. */
function lowered(message: string): string {
  const bare = message.replace(/: "[\s\S]*$/, "").replace(/\b(token|alias|tag|anchor)\b[\s\S]*$/i, "$1");
  return bare.slice(0, 1).toLowerCase() + bare.slice(1, 300);
}

/** The composer calls itself once a level, so the depth is bounded before it runs. */
function refuseDepth(text: string, tokens: readonly CST.Token[]): void {
  const stack: { token: CST.Token; depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { token, depth } = top;
    if (depth > MAX_DEPTH) {
      throw syntaxError(text, token.offset ?? 0, `it nests more than ${MAX_DEPTH} levels`);
    }
    if (token.type === "document" && token.value) stack.push({ token: token.value, depth });
    if ("items" in token) {
      for (const item of token.items) {
        if (item.key) stack.push({ token: item.key, depth: depth + 1 });
        if (item.value) stack.push({ token: item.value, depth: depth + 1 });
      }
    }
  }
}

/** One document: aliases are shared, merge keys laid under, scalars typed. */
class Reader {
  private readonly anchors = new Map<string, YamlValue | null>();
  private readonly weights = new WeakMap<Node, number>();
  private weight = 0;

  constructor(
    private readonly text: string,
    private readonly refuseDuplicates: boolean,
  ) {}

  read(node: Node | null): YamlValue {
    if (node === null) return { kind: "null", at: 0, node: null, alias: false };
    const before = this.weight;
    if (isAlias(node)) return this.alias(node);
    const anchor = (node as Scalar | YAMLMap | YAMLSeq).anchor;
    if (anchor !== undefined) {
      if (this.anchors.has(anchor)) throw this.fail(node, "an anchor of this name is set already");
      this.anchors.set(anchor, null);
    }
    this.add(1, node);
    const value = this.plain(node);
    if (anchor !== undefined) this.anchors.set(anchor, value);
    this.weights.set(node, this.weight - before);
    return value;
  }

  private plain(node: Node): YamlValue {
    if (isMap(node)) return this.map(node as YAMLMap<Node, Node | null>);
    if (isSeq(node)) {
      this.refuseTag(node, ["seq", "omap", "pairs"]);
      const items = (node.items as Node[]).map((item) => this.read(item));
      if (/:(?:omap|pairs)$/.test(node.tag ?? "")) {
        const repr = pyPairs(items);
        if (repr === null) throw this.fail(node, "its tag wants items of one pair each");
        return { kind: "other", type: "list", text: repr, repr, at: offsetOf(node), node, alias: false };
      }
      return { kind: "list", items, at: offsetOf(node), node, alias: false };
    }
    if (isScalar(node)) {
      try {
        return { ...this.scalar(node), at: offsetOf(node), node, alias: false };
      } catch (error) {
        if (error instanceof ScalarError) throw this.fail(node, error.message);
        throw error;
      }
    }
    throw this.fail(node, "this is neither a value, a list nor a mapping");
  }

  private scalar(node: Scalar): YamlScalar {
    const text = String(node.value ?? "");
    if (node.tag !== undefined && node.tag !== "!") {
      const tagged = taggedScalar(node.tag, text);
      if (tagged === null)
        throw new ScalarError("a tag stands here that is not known (quote a text that begins with !)");
      return tagged;
    }
    if (node.type === "PLAIN" || node.type === undefined) return plainScalar(text);
    // A block that ends the text without a line end has none in PyYAML either.
    const block = node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED";
    const open = block && node.range?.[1] === this.text.length && !/\n[ \t]*$/.test(this.text);
    return { kind: "str", value: open ? text.replace(/\n$/, "") : text };
  }

  private map(node: YAMLMap<Node, Node | null>): YamlValue {
    this.refuseTag(node, ["map", "set"]);
    const seen = new Map<string, number>();
    const own: YamlEntry[] = [];
    const merged: YamlEntry[] = [];
    for (const pair of node.items as Pair<Node, Node | null>[]) {
      const keyNode = pair.key;
      if (this.refuseDuplicates && isScalar(keyNode)) this.refuseRepeat(keyNode, seen);
      if (isMergeKey(keyNode)) {
        for (const entry of this.mergedEntries(pair, node)) merged.push({ ...entry, pair: null });
        continue;
      }
      const key = isScalar(keyNode) && keyNode.value === "=" ? this.equalsKey(keyNode) : this.read(keyNode);
      if (key.kind === "list" || key.kind === "map") throw this.fail(keyNode, "a key is not a single value");
      own.push({ key, value: this.read(pair.value), pair });
    }
    const entries = new Map<string, YamlEntry>();
    for (const entry of [...withoutRepeats(merged), ...own]) {
      const name = identity(entry.key);
      const first = entries.get(name);
      entries.set(name, first === undefined ? entry : { ...entry, key: first.key });
    }
    const set = node.tag === "tag:yaml.org,2002:set";
    return { kind: "map", entries: [...entries.values()], set, at: offsetOf(node), node, alias: false };
  }

  private equalsKey(node: Scalar): YamlValue {
    return { kind: "str", value: String(node.value), at: offsetOf(node), node, alias: false };
  }

  private mergedEntries(pair: Pair<Node, Node | null>, map: Node): readonly YamlEntry[] {
    // A mapping may merge itself while it is being read; PyYAML then adds nothing.
    if (isAlias(pair.value) && this.anchors.get(pair.value.source) === null) return [];
    const value = this.read(pair.value);
    const parts = value.kind === "list" ? value.items : [value];
    return parts.flatMap((part) => {
      if (part.kind !== "map") throw this.fail(map, "<<: stands before something that is not a mapping");
      return part.entries;
    });
  }

  private alias(node: Alias): YamlValue {
    const target = this.anchors.get(node.source);
    if (target === undefined)
      throw this.fail(node, "this alias names no anchor set before it (quote a text that begins with *)");
    if (target === null) throw this.fail(node, "an alias stands inside what it names");
    this.add(target.node === null ? 1 : (this.weights.get(target.node) ?? 1), node);
    return { ...target, at: offsetOf(node), alias: true };
  }

  private refuseRepeat(key: Scalar, seen: Map<string, number>): void {
    const name = String(key.value ?? "");
    const first = seen.get(name);
    if (first === undefined) {
      seen.set(name, offsetOf(key));
      return;
    }
    const { line } = placeOf(this.text, first);
    throw this.fail(key, `the key ${shown(name)} stands twice, first at line ${line}`);
  }

  private refuseTag(node: YAMLMap | YAMLSeq, known: readonly string[]): void {
    const tag = node.tag;
    if (tag === undefined || tag === "!" || known.some((name) => tag === `tag:yaml.org,2002:${name}`)) return;
    throw this.fail(node, "a tag stands here that is not known");
  }

  private add(amount: number, node: Node): void {
    this.weight += amount;
    if (this.weight > MAX_WEIGHT)
      throw this.fail(node, `its aliases stand for more than ${MAX_WEIGHT} values`);
  }

  private fail(node: Node, what: string): Unreadable {
    return syntaxError(this.text, offsetOf(node), what);
  }
}

function isMergeKey(node: Node): boolean {
  if (!isScalar(node)) return false;
  if (node.tag !== undefined) return node.tag === MERGE;
  return node.type === "PLAIN" && node.value === "<<";
}

/** PyYAML 6.0.4: of several merged mappings the last one wins, but for keys of one letter the first does. */
function withoutRepeats(entries: readonly YamlEntry[]): YamlEntry[] {
  const seen = new Set<string>();
  return entries.filter(({ key }) => {
    if (key.kind !== "str" || [...key.value].length > 1) return true;
    if (seen.has(key.value)) return false;
    seen.add(key.value);
    return true;
  });
}

/** Equal for keys that are one key of a Python dict: `1`, `1.0` and `True` are. */
function identity(key: YamlValue): string {
  if (key.kind === "bool") return `n${Number(key.value)}`;
  if (key.kind === "int") return `n${key.value}`;
  if (key.kind === "float") return Number.isInteger(key.value) ? `n${BigInt(key.value)}` : `n${key.value}`;
  return key.kind === "list" || key.kind === "map" ? "" : `${key.kind}:${pyScalar(key)}`;
}

export function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}
