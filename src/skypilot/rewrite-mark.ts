import { withTaskEnv } from "./task-env.ts";

/** One request that a rewrite left, and the batch it had over all its cards before. */
export interface MarkedRequest {
  /** `A100:8`, or the same as `to` where the candidate was kept as it was. */
  readonly from: string;
  /** `L40S:1` */
  readonly to: string;
  /** Samples a step over all cards before the rewrite. */
  readonly globalBatch: number;
}

/**
 * What a rewrite leaves behind where judging the rewritten request on its own would rewrite it again. It holds only
 * as long as request and batch are still those of the rewrite.
 */
export interface RewriteMark {
  /** Samples per device at the time. */
  readonly batch: number;
  readonly requests: readonly MarkedRequest[];
  /** The cards that the task listed before candidates were dropped; null where it listed one. */
  readonly among: readonly string[] | null;
}

/** The variable of a task's `envs` that holds a mark in a SkyPilot request, where comments do not survive. */
export const MARK_VARIABLE = "NEURARCH_REWRITTEN";

const FORM = /^at batch ([1-9]\d*): (.+?)(?: \(of (\S+(?:, \S+)*)\))?$/;
const REQUEST = /^(\S+) to (\S+) with ([1-9]\d*) in all$/;

/** `at batch 4: A100:8 to L40S:1 with 32 in all`, further requests after commas. */
export function markText({ batch, requests, among }: RewriteMark): string {
  const list = requests.map(({ from, to, globalBatch }) => `${from} to ${to} with ${globalBatch} in all`);
  return `at batch ${batch}: ${list.join(", ")}${among === null ? "" : ` (of ${among.join(", ")})`}`;
}

/** The mark in a text; null when it is none. */
export function readMark(text: string): RewriteMark | null {
  const match = FORM.exec(text.trim());
  if (match === null) return null;
  const requests: MarkedRequest[] = [];
  for (const part of match[2]!.split(", ")) {
    const request = REQUEST.exec(part);
    if (request === null) return null;
    requests.push({ from: request[1]!, to: request[2]!, globalBatch: Number(request[3]) });
  }
  return { batch: Number(match[1]), requests, among: match[3]?.split(", ") ?? null };
}

const commentHead = (task: number) => `# neurarch-gate: task ${task + 1} rewritten `;

/** The mark of a file's task, a comment line of its own; `task` counts from 0. */
export function markInFile(text: string, task: number): RewriteMark | null {
  const head = commentHead(task);
  const line = text.split("\n").find((one) => one.startsWith(head));
  return line === undefined ? null : readMark(line.slice(head.length));
}

/** The file with a mark for a task at its top, in place of an earlier one. */
export function withFileMark(text: string, task: number, mark: RewriteMark): string {
  const head = commentHead(task);
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  const lines = text.slice(start).split("\n");
  const end = text.includes("\r\n") ? "\r" : "";
  const others = lines.filter((line) => !line.startsWith(head));
  return `${text.slice(0, start)}${head}${markText(mark)}${end}\n${others.join("\n")}`;
}

/** A request's task with a mark among its `envs`; null where none can be put there. */
export function withEnvMark(text: string, mark: RewriteMark): string | null {
  return withTaskEnv(text, MARK_VARIABLE, markText(mark));
}
