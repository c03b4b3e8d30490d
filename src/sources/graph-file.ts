import { listDirectory, pathKind, readText } from "../host/fs.ts";
import { join } from "../host/paths.ts";
import { fail, ok, type Result } from "../lib/result.ts";
import { shown } from "../lib/shown.ts";
import { readGraph, unwrapped } from "../model/graph.ts";
import { parseConfig } from "../model/read.ts";
import type { LocatedStructure } from "../model/types.ts";
import type { Unsized } from "../sizing/types.ts";
import { pathOf } from "./names.ts";

/** Largest graph file that is read: a trace of 20,000 modules is a third of it. */
export const MAX_GRAPH_BYTES = 32_000_000;

/** The graph file that a name stands for: the file, or the one graph of a folder without a config; null = none. */
export function graphFileOf(model: string, host: Parameters<typeof pathOf>[1]): string | null {
  const path = pathOf(model.trim(), host);
  if (path === null) return null;
  const kind = pathKind(path);
  if (kind !== "directory") return kind === "file" && path.endsWith(".json") ? path : null;
  if (pathKind(join(path, "config.json")) !== "none") return null;
  const graphs = listDirectory(path).filter((name) => name.endsWith(".neurarch.json"));
  return graphs.length === 1 ? join(path, graphs[0]!) : null;
}

/** The graph in a file as it is written, out of its wrapping; not whether it can be sized here. */
export function rawGraphAt(path: string): Result<unknown, Unsized> {
  const text = readText(path, MAX_GRAPH_BYTES);
  if (!text.ok) return fail({ reason: "model-not-found", message: `${shown(text.error.message, 300)}.` });
  const raw = parseConfig(text.value);
  if (!raw.ok) return fail({ reason: "config-invalid", message: notGraph(path, "it is not valid JSON") });
  const graph = unwrapped(raw.value);
  return graph === null
    ? fail({ reason: "config-invalid", message: notGraph(path, "it holds no graph with components") })
    : ok(graph);
}

/** What is wrong, and where it does not say what to do, that too. */
function withHelp(message: string): string {
  return /; /.test(message) ? `${message}.` : `${message}. Trace the module again, or correct the file.`;
}

function notGraph(path: string, why: string): string {
  return `${shown(path, 300)} cannot be used: ${why}; trace the module again.`;
}

/** The structure of the graph at a path, or a sentence on why there is none. */
export function graphAt(
  model: string,
  path: string,
  notes: readonly string[],
): Result<LocatedStructure, Unsized> {
  const text = readText(path, MAX_GRAPH_BYTES);
  if (!text.ok) return fail({ reason: "model-not-found", message: `${shown(text.error.message, 300)}.` });
  const name = shown(path, 300);
  const raw = parseConfig(text.value);
  if (!raw.ok) return fail({ reason: "config-invalid", message: notGraph(path, "it is not valid JSON") });
  const read = readGraph(raw.value);
  if (!read.ok)
    return fail({
      reason: read.error.reason,
      message: `${name} cannot be used: ${withHelp(read.error.message)}`,
    });
  const structure = { ...read.value, notes: [...read.value.notes, ...notes] };
  return ok({ structure, model, source: "path", revision: null, from: name });
}
