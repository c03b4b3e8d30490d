import {
  type CST,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
} from "yaml";
import { plainScalar } from "./scalar.ts";

/**
 * Changes of single ranges of a YAML text: everything outside them, comments and order too, stays byte for
 * byte. Each function returns null where the text cannot be changed in place.
 */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;

/** Applies edits that do not overlap. */
export function applyEdits(text: string, edits: readonly Edit[]): string | null {
  const sorted = [...edits].sort((a, b) => a.start - b.start || a.end - b.end);
  let result = "";
  let at = 0;
  for (const edit of sorted) {
    if (edit.start < at) return null;
    result += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return result + text.slice(at);
}

/** A string as YAML writes it, plain where it stays a string, in the quotes of what it replaces. */
export function spelled(text: string, like: Scalar.Type | undefined): string {
  if (like === "QUOTE_SINGLE") return `'${text.replaceAll("'", "''")}'`;
  const plain = /^[A-Za-z0-9](?:[\w.+:/ -]*[\w.+/-])?$/.test(text) && !/:(?: |$)/.test(text);
  if (like !== "QUOTE_DOUBLE" && plain && isPlainString(text)) return text;
  return JSON.stringify(text);
}

function isPlainString(text: string): boolean {
  try {
    return plainScalar(text).kind === "str";
  } catch {
    return false;
  }
}

/** Puts a string where a scalar or an alias stands. */
export function replaceValue(node: Node, text: string): Edit | null {
  if (node.range == null || (!isScalar(node) && !isAlias(node))) return null;
  const [start, end] = node.range;
  const type = isScalar(node) ? (node.type as Scalar.Type | undefined) : undefined;
  if (type === "BLOCK_FOLDED" || type === "BLOCK_LITERAL") return null;
  return { start, end, text: spelled(text, type) };
}

/** Puts a bare word (a number, null) where a scalar stands. */
export function replaceWord(node: Node, word: string): Edit | null {
  const edit = replaceValue(node, word);
  return edit === null ? null : { ...edit, text: word };
}

/** Removes items of a list, or pairs of a mapping, by index; at least one must stay. */
export function removeItems(text: string, collection: Node, indexes: ReadonlySet<number>): Edit[] | null {
  if (!isCollection(collection) || collection.srcToken === undefined) return null;
  const token = collection.srcToken as Collection;
  const tokens = itemTokens(token);
  if (tokens.length !== collection.items.length || indexes.size >= tokens.length) return null;
  const ends = collection.items.map((item, index) => contentEnd(item as Node | Pair, tokens[index]!));
  if (token.type === "flow-collection") return removeFromFlow(tokens, ends, indexes);
  const edits: Edit[] = [];
  for (const index of indexes) {
    const start = text.lastIndexOf("\n", contentStart(tokens[index]!) - 1) + 1;
    const newline = text.indexOf("\n", ends[index]!);
    if (text.slice(start, contentStart(tokens[index]!)).trim() !== "") return null;
    edits.push({ start, end: newline === -1 ? text.length : newline + 1, text: "" });
  }
  return edits;
}

function removeFromFlow(
  tokens: readonly CST.CollectionItem[],
  ends: readonly number[],
  indexes: ReadonlySet<number>,
): Edit[] | null {
  const first = tokens.findIndex((_, index) => !indexes.has(index));
  const edits: Edit[] = [];
  if (first > 0) edits.push({ start: contentStart(tokens[0]!), end: contentStart(tokens[first]!), text: "" });
  for (const index of indexes) {
    if (index < first) continue;
    const comma = tokens[index]!.start.find((one) => one.type === "comma");
    if (comma === undefined) return null;
    edits.push({ start: comma.offset, end: ends[index]!, text: "" });
  }
  return edits;
}

/** The tokens of real items: a trailing comma or comment leaves an empty one behind. */
function itemTokens(token: Collection): CST.CollectionItem[] {
  return (token.items as CST.CollectionItem[]).filter(
    (item) =>
      item.key != null ||
      item.value != null ||
      (item.sep?.length ?? 0) > 0 ||
      item.start.some((one) => one.type === "seq-item-ind" || one.type === "explicit-key-ind"),
  );
}

const FILLER: ReadonlySet<string> = new Set(["space", "newline", "comment", "comma"]);

function contentStart(item: CST.CollectionItem): number {
  const opening = item.start.find((one) => !FILLER.has(one.type));
  return opening?.offset ?? item.key?.offset ?? item.sep?.[0]?.offset ?? item.value?.offset ?? 0;
}

/** Where the last character of an item's own text ends; comments and line ends after it are not its own. */
function contentEnd(item: Node | Pair, token: CST.CollectionItem): number {
  const marks = [...token.start, ...(token.sep ?? [])].filter((one) => !FILLER.has(one.type));
  const markEnd = Math.max(0, ...marks.map((one) => one.offset + one.source.length));
  if (!("key" in item)) return Math.max(markEnd, nodeEnd(item as Node));
  const key = item.key === null ? 0 : nodeEnd(item.key as Node);
  const value = item.value === null ? 0 : nodeEnd(item.value as Node);
  return Math.max(markEnd, key, value);
}

function nodeEnd(node: Node): number {
  if (isScalar(node) && node.value === "" && node.type === "PLAIN") return 0;
  if (isScalar(node) && (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED")) {
    return Math.max((node.range?.[1] ?? 1) - 1, 0);
  }
  if ((isMap(node) || isSeq(node)) && node.srcToken !== undefined && node.flow !== true) {
    const tokens = itemTokens(node.srcToken as Collection);
    const last = node.items.length - 1;
    if (last >= 0 && tokens[last] !== undefined)
      return contentEnd(node.items[last] as Node | Pair, tokens[last]);
  }
  return node.range?.[1] ?? 0;
}

/** Puts a new pair before the first one of a mapping. */
export function insertPair(text: string, map: Node, key: string, value: string): Edit | null {
  if (!isMap(map) || map.srcToken === undefined) return null;
  const token = map.srcToken as CST.BlockMap | CST.FlowCollection;
  const pair = `${key}: ${spelled(value, undefined)}`;
  if (token.type === "flow-collection") {
    const at = token.start.offset + token.start.source.length;
    return { start: at, end: at, text: map.items.length === 0 ? pair : `${pair}, ` };
  }
  const first = itemTokens(token)[0];
  if (first === undefined) return null;
  const at = contentStart(first);
  const column = at - (text.lastIndexOf("\n", at - 1) + 1);
  return { start: at, end: at, text: `${pair}${lineEnd(text)}${" ".repeat(column)}` };
}

/** The line end a text uses. */
export function lineEnd(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

/**
 * Anchors that the edits remove while aliases outside them remain: the first of those aliases gets the anchored
 * value, written on one line. (SkyPilot's own text shares labels this way.)
 */
export function movedAnchors(root: Node, text: string, edits: readonly Edit[]): Edit[] {
  const removed = (node: Node): boolean =>
    edits.some(({ start, end }) => (node.range?.[0] ?? 0) >= start && (node.range?.[1] ?? 0) <= end);
  const gone = new Map<string, Node>();
  const moved: Edit[] = [];
  visitNodes(root, (node) => {
    if (isAlias(node)) {
      const target = gone.get(node.source);
      if (target === undefined || removed(node) || node.range == null) return;
      gone.delete(node.source);
      moved.push({ start: node.range[0], end: node.range[1], text: onOneLine(target, text) });
    } else {
      const { anchor } = node as Scalar;
      if (anchor !== undefined && removed(node)) gone.set(anchor, node);
    }
  });
  return moved;
}

function visitNodes(node: Node, visit: (node: Node) => void): void {
  visit(node);
  if (isSeq(node)) for (const item of node.items) visitNodes(item as Node, visit);
  if (!isMap(node)) return;
  for (const pair of node.items as Pair<Node, Node | null>[]) {
    visitNodes(pair.key, visit);
    if (pair.value !== null) visitNodes(pair.value, visit);
  }
}

function onOneLine(node: Node, text: string): string {
  if (isAlias(node)) return `*${node.source}`;
  const { anchor, tag } = node as Scalar;
  const props = `${anchor === undefined ? "" : `&${anchor} `}${tag === undefined ? "" : `!<${tag}> `}`;
  if (isSeq(node)) return `${props}[${node.items.map((item) => onOneLine(item as Node, text)).join(", ")}]`;
  if (isMap(node)) {
    const pairs = (node.items as Pair<Node, Node | null>[]).map(
      ({ key, value }) => `${onOneLine(key, text)}: ${value === null ? "null" : onOneLine(value, text)}`,
    );
    return `${props}{${pairs.join(", ")}}`;
  }
  if (!isScalar(node)) return "null";
  const value = String(node.value ?? "");
  if (node.type !== "PLAIN") return props + JSON.stringify(value);
  if (value === "") return `${props}null`;
  return props + (/[,[\]{}\n]|:$/.test(value) ? JSON.stringify(value) : value);
}
