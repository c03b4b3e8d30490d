import {
  Composer,
  type CST,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  Parser,
} from "yaml";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import type { FileProblem, Place, Tree, TreeEntry } from "../policy/types.ts";

/** Levels of lists and mappings: the composer calls itself once a level. */
const MAX_DEPTH = 50;
/** Entries that merge keys (`<<`) may bring in, in all. */
const MAX_MERGED = 10_000;

/** Thrown inside the reader and turned into a problem at its door. */
class Unreadable extends Error {
  constructor(
    readonly offset: number,
    readonly what: string,
  ) {
    super(what);
  }
}

/**
 * Reads a policy file's text as YAML 1.2, nothing typed: `off` is a word and a date a text. Aliases and merge keys
 * are followed; a key that stands twice, a second document and too deep a nesting are problems.
 */
export function readPolicyYaml(text: string): Result<Tree, FileProblem> {
  const lines = new LineCounter();
  lines.addNewLine(0);
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(Math.max(0, Math.min(offset, text.length)));
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  try {
    const lexed = new Lexer();
    const parser = new Parser(lines.addNewLine);
    const tokens: CST.Token[] = [];
    for (const lexeme of lexed.lex(text)) for (const token of parser.next(lexeme)) tokens.push(token);
    for (const token of parser.end()) tokens.push(token);
    refuseDepth(tokens);
    return ok(new Reader(placeAt).document(tokens, text));
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const message = `the YAML cannot be read: ${shown(error.what, 200).replace(/[.\s]+$/, "")}`;
    const fix = /reserved character/.test(error.what) ? "Put the value into quotes." : null;
    return fail({ severity: "error", rule: null, message, fix, place: placeAt(error.offset) });
  }
}

function refuseDepth(tokens: readonly CST.Token[]): void {
  const stack: { token: CST.Token; depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { token, depth } = top;
    if (depth > MAX_DEPTH) throw new Unreadable(token.offset ?? 0, `it nests more than ${MAX_DEPTH} levels`);
    if (token.type === "document" && token.value) stack.push({ token: token.value, depth });
    if ("items" in token) {
      for (const { key, value } of token.items) {
        if (key) stack.push({ token: key, depth: depth + 1 });
        if (value) stack.push({ token: value, depth: depth + 1 });
      }
    }
  }
}

class Reader {
  private readonly anchors = new Map<string, Tree | null>();
  private merged = 0;

  constructor(private readonly placeAt: (offset: number) => Place) {}

  document(tokens: readonly CST.Token[], text: string): Tree {
    const composer = new Composer({
      version: "1.2",
      schema: "failsafe",
      merge: false,
      // Its own check compares every key with every other.
      uniqueKeys: false,
      resolveKnownTags: false,
      prettyErrors: false,
      logLevel: "silent",
    });
    let tree: Tree | null = null;
    for (const document of composer.compose(tokens, false, text.length)) {
      const error = document.errors[0];
      if (error !== undefined) throw new Unreadable(error.pos[0], lowered(error.message));
      const contents = document.contents as Node | null;
      if (tree !== null && contents !== null)
        throw new Unreadable(offsetOf(contents), "a second document begins");
      tree ??= contents === null ? null : this.read(contents);
    }
    return tree ?? { kind: "empty", place: this.placeAt(0) };
  }

  private read(node: Node | null, at = 0): Tree {
    if (node === null) return { kind: "empty", place: this.placeAt(at) };
    if (isAlias(node)) {
      const target = this.anchors.get(node.source);
      if (target === undefined)
        throw new Unreadable(offsetOf(node), `the anchor &${node.source} is not set before`);
      if (target === null) throw new Unreadable(offsetOf(node), `*${node.source} stands inside itself`);
      return target;
    }
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.anchors.set(anchor, null);
    const tree = this.plain(node);
    if (anchor !== undefined) this.anchors.set(anchor, tree);
    return tree;
  }

  private plain(node: Node): Tree {
    const place = this.placeAt(offsetOf(node));
    if (isScalar(node)) {
      const text = String(node.value ?? "");
      const plain = node.type === "PLAIN" || node.type === undefined;
      return plain && /^(?:~|null|Null|NULL|)$/.test(text)
        ? { kind: "empty", place }
        : { kind: "text", text, place };
    }
    if (isSeq(node))
      return { kind: "list", items: (node.items as Node[]).map((item) => this.read(item)), place };
    if (isMap(node))
      return { kind: "map", entries: this.entries(node.items as Pair<Node, Node | null>[]), place };
    throw new Unreadable(offsetOf(node), "this is neither a value, a list nor a mapping");
  }

  private entries(pairs: readonly Pair<Node, Node | null>[]): TreeEntry[] {
    const own = new Map<string, TreeEntry>();
    const merged = new Map<string, TreeEntry>();
    for (const { key: keyNode, value } of pairs) {
      if (!isScalar(keyNode)) throw new Unreadable(offsetOf(keyNode), "a key is not a single value");
      const key = String(keyNode.value ?? "");
      const at = offsetOf(keyNode);
      const tree = this.read(value, at);
      if (key === "<<" && keyNode.type === "PLAIN") {
        for (const entry of this.mergedEntries(tree, at))
          if (!merged.has(entry.key)) merged.set(entry.key, entry);
        continue;
      }
      if (own.has(key)) {
        const first = own.get(key)!.keyPlace.line;
        throw new Unreadable(at, `the key ${shown(key)} stands twice, first at line ${first}`);
      }
      own.set(key, { key, keyPlace: this.placeAt(at), value: tree });
    }
    return [...own.values(), ...[...merged.values()].filter(({ key }) => !own.has(key))];
  }

  private mergedEntries(tree: Tree, at: number): readonly TreeEntry[] {
    const parts = tree.kind === "list" ? tree.items : [tree];
    return parts.flatMap((part) => {
      if (part.kind !== "map") throw new Unreadable(at, "<<: stands before something that is not a mapping");
      this.merged += part.entries.length;
      if (this.merged > MAX_MERGED)
        throw new Unreadable(at, `merge keys bring in more than ${MAX_MERGED} entries`);
      return part.entries;
    });
  }
}

function lowered(message: string): string {
  return message.slice(0, 1).toLowerCase() + message.slice(1, 300);
}

function offsetOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}
